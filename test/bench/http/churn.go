package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/proxy/route"
)

// churnVariable is the socket at which Quayside is told to change what it serves. It is a
// Unix one, as HAProxy's, and each change is answered, so that both are told alike.
const churnVariable = "QUAYSIDE_BENCH_CHURN"

// What there is while things change: Services of six endpoints each out of eight, which
// change by turns. One of them is "web", which the load asks for; so it changes 50
// times a second. The nth change of the routes redirects changingHost to place(n).
const (
	churningServices = 20
	readyEndpoints   = 6
	allEndpoints     = 8
	changingHost     = "changing.example"
	changesPerSecond = 1010
	routesEvery      = 101 // one in so many changes is one of the routes
)

func place(n int) string { return fmt.Sprintf("http://place-%d.example/", n) }

// serviceOf is the Service whose endpoints the nth change exchanges.
func serviceOf(n int) string {
	if n %= churningServices; n > 0 {
		return fmt.Sprint("web-", n)
	}
	return "web"
}

// endpointsAt are the endpoints of all Services by the nth change: from one turn to the
// next the first leaves and another comes.
func endpointsAt(n int) (addrs []string) {
	for i := range readyEndpoints {
		addrs = append(addrs, fmt.Sprintf("127.0.0.%d", 1+(n/churningServices+i)%allEndpoints))
	}
	return addrs
}

// churningBackends are where the backend listens, so that every endpoint that there
// may be answers. The one that is waited for is the last.
func churningBackends() (addrs []string) {
	_, port, _ := strings.Cut(backendAddr, ":")
	for i := allEndpoints; i > 0; i-- {
		addrs = append(addrs, fmt.Sprintf("127.0.0.%d:%s", i, port))
	}
	return addrs
}

// churn is how what a proxy serves is changed, and how often.
type churn struct {
	every  time.Duration
	change func(ctx context.Context, n int) error
	addr   string   // of the proxy
	made   int      // since it was started
	conn   net.Conn // of tell; nil: not yet
}

// end hangs up.
func (c *churn) end() {
	if c != nil && c.conn != nil {
		c.conn.Close()
	}
}

// changed is what the changes cost.
type changed struct {
	rate float64       // per second, beside the requests
	cpu  time.Duration // of one, without requests
}

// during makes changes while do runs, and returns how many. The last of them must be
// served in the end. Where nothing changes it runs do.
func (c *churn) during(ctx context.Context, do func() error) (int, error) {
	if c == nil {
		return 0, do()
	}
	first, over := c.made, make(chan error, 1)
	changing, stop := context.WithCancel(ctx)
	defer stop()
	go func() { over <- c.run(changing) }()
	err := do()
	stop()
	if failed := <-over; err == nil {
		err = failed
	}
	count := c.made - first
	if err == nil {
		err = c.awaitLast(ctx)
	}
	return count, err
}

// run makes changes until ctx ends. What is late is made up for.
func (c *churn) run(ctx context.Context) error {
	begin := time.Now()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begin.Add(time.Duration(n) * c.every))):
		}
		if err := c.change(ctx, c.made); err != nil {
			return fmt.Errorf("change %d: %w", c.made, err)
		}
		c.made++
	}
}

// awaitLast makes one more change, of the routes, and waits until it is served.
func (c *churn) awaitLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c.made += routesEvery - c.made%routesEvery
	if err := c.change(ctx, c.made); err != nil {
		return err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+"/", nil)
		if err != nil {
			return err
		}
		req.Host = changingHost
		resp, err := client.Do(req)
		if ctx.Err() != nil {
			return fmt.Errorf("change %d was not served: %w", c.made, ctx.Err())
		}
		if err == nil {
			resp.Body.Close()
			if resp.Header.Get("Location") == place(c.made) {
				c.made++
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// alone measures what one change costs where nothing is asked.
func (c *churn) alone(ctx context.Context, proc *process, d time.Duration) (changed, error) {
	if c == nil {
		return changed{}, nil
	}
	var count int
	spent, err := proc.during(func() (err error) {
		count, err = c.during(ctx, func() error { time.Sleep(d); return nil })
		return err
	})
	if err != nil || count == 0 {
		return changed{}, err
	}
	return changed{cpu: spent / time.Duration(count)}, nil
}

// churningPeers are each of the three without changes and with them. A request may fail
// only to the others: nginx closes connections while it loads its configuration.
func churningPeers(dir string, ours, nginx, haproxy peer) ([]peer, error) {
	socket := filepath.Join(dir, "quayside.sock")
	ours.command.Env = append(ours.command.Env, churnVariable+"="+socket)
	if nginx.missing == "" {
		if err := writeNginx(dir, 0); err != nil {
			return nil, err
		}
	}
	if err := writeMaps(dir); err != nil {
		return nil, err
	}
	oursChanging, nginxReloading, haproxyChanging := ours, nginx, haproxy
	oursChanging.name, oursChanging.churn = ours.name+"-changing", &churn{every: time.Second / changesPerSecond, addr: ours.addr}
	oursChanging.churn.change = oursChanging.churn.tell(socket)
	nginxReloading.name, nginxReloading.mayFail = nginx.name+"-reloading", true
	nginxReloading.churn = &churn{every: time.Second, addr: nginx.addr, change: func(_ context.Context, n int) error { return reloadNginx(dir, n) }}
	haproxyChanging.name, haproxyChanging.mayFail = haproxy.name+"-changing", true
	haproxyChanging.churn = &churn{every: time.Second / changesPerSecond, addr: haproxy.addr}
	haproxyChanging.churn.change = haproxyChanging.churn.tellHAProxy(dir)
	return []peer{ours, oursChanging, nginx, nginxReloading, haproxy, haproxyChanging}, nil
}

// tell makes Quayside make changes. It returns when the change is known; until it is
// served others may join it.
func (c *churn) tell(socket string) func(context.Context, int) error {
	return func(ctx context.Context, n int) (err error) {
		if c.conn == nil {
			var dialer net.Dialer
			if c.conn, err = dialer.DialContext(ctx, "unix", socket); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(c.conn, n); err != nil {
			return err
		}
		_, err = io.ReadFull(c.conn, make([]byte, 1))
		return err
	}
}

// serveChanges makes the changes that it is told.
func serveChanges(ctx context.Context, socket string, files *cluster.Files) error {
	putChurning(files)
	os.Remove(socket) // of the process before
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		if err := serveChange(ctx, c, files); err != nil {
			return err
		}
	}
}

func serveChange(ctx context.Context, c net.Conn, files *cluster.Files) error {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	in := bufio.NewScanner(c)
	for in.Scan() {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		if n%routesEvery == 0 {
			files.Put(changingIngress(n))
		} else {
			files.Put(changingSlice(n))
		}
		if _, err := c.Write([]byte{'.'}); err != nil {
			return err
		}
	}
	return in.Err()
}

// putChurning enters what changes later.
func putChurning(files *cluster.Files) {
	class, prefix := "quayside", networkingv1.PathTypePrefix
	files.Put( // or they would be made anew with each change
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.Controller}},
	)
	for n := range churningServices {
		name := serviceOf(n)
		meta := metav1.ObjectMeta{Namespace: "default", Name: name}
		files.Put(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, changingSlice(n))
		if n == 0 {
			continue // it has an Ingress already
		}
		files.Put(&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
			Host: name + ".example", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}},
		}}}})
	}
	files.Put(changingIngress(0))
}

func changingSlice(n int) *discoveryv1.EndpointSlice {
	_, text, _ := strings.Cut(backendAddr, ":")
	number, _ := strconv.Atoi(text)
	name, port := "", int32(number)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: serviceOf(n), Labels: map[string]string{discoveryv1.LabelServiceName: serviceOf(n)}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for _, addr := range endpointsAt(n) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}})
	}
	return slice
}

func changingIngress(n int) *networkingv1.Ingress {
	class, prefix := "quayside", networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "changing", Annotations: map[string]string{route.NginxPrefix + "permanent-redirect": place(n)}},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
			Host: changingHost, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}},
		}}},
	}
}

// writeNginx writes what nginx is to serve by the nth change: each has all of the
// changes of ours in it that are made in the same second.
func writeNginx(dir string, n int) error {
	var text strings.Builder
	fmt.Fprintf(&text, `
daemon off;
worker_processes 1; # and a master, which loads the configuration
pid %[1]s/nginx.pid;
error_log %[1]s/nginx.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 100000000;
  proxy_http_version 1.1;
  proxy_buffering off;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $remote_addr;
  %[2]s
`, dir, forwardingFields)
	_, port, _ := strings.Cut(backendAddr, ":")
	for i := range churningServices {
		name, kind := serviceOf(i), ""
		if i == 0 {
			kind = "default_server"
		}
		fmt.Fprintf(&text, "  upstream %s {", name)
		for _, addr := range endpointsAt(n * churningServices) {
			fmt.Fprintf(&text, " server %s:%s;", addr, port)
		}
		fmt.Fprintf(&text, " keepalive 320; keepalive_requests 100000000; }\n  server { listen %s %s; server_name %s.example; location / { proxy_pass http://%s; } }\n",
			nginxAddr, kind, name, name)
	}
	fmt.Fprintf(&text, "  server { listen %s; server_name %s; location / { return 301 %s; } }\n}\n", nginxAddr, changingHost, place(n))
	return os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(text.String()), 0o600)
}

// reloadNginx makes the nth change.
func reloadNginx(dir string, n int) error {
	if err := writeNginx(dir, n); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "nginx.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGHUP)
}

// printChanges adds what the changes cost, where there were any.
func printChanges(out io.Writer, all []series) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, s := range all {
		var cpu []float64
		var failed []string
		for _, r := range s.rounds {
			if r.changes.cpu > 0 {
				cpu = append(cpu, float64(r.changes.cpu.Nanoseconds())/1000)
			}
			if r.failed != "" {
				failed = append(failed, r.failed)
			}
		}
		if len(cpu) > 0 {
			fmt.Fprintf(w, "%s\t%.0f changes/s\t%s µs of CPU each\tfailed in %d of %d rounds\t%s\t\n",
				s.name, s.rounds[0].changes.rate, spread(cpu), len(failed), len(s.rounds), strings.Join(failed, "; "))
		}
	}
	w.Flush()
}
