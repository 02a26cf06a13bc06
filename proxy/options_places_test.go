package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
)

// patientPod holds requests for /wait until it is let, and tells of each.
type patientPod struct {
	entered chan struct{}
	release func()
	held    chan struct{}
}

func newPatientPod() *patientPod {
	p := &patientPod{entered: make(chan struct{}, 10_000), held: make(chan struct{})}
	p.release = sync.OnceFunc(func() { close(p.held) })
	return p
}

func (p *patientPod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/wait" {
		p.entered <- struct{}{}
		<-p.held
	}
	io.WriteString(w, "fine")
}

// crowd are clients of HTTP/2 that ask all at once, and what they are told.
type crowd struct {
	t       *testing.T
	addr    string
	clients []*http.Transport
	asking  sync.WaitGroup
	answers chan int // of status, 0 for something else than an honest answer
}

func newCrowd(t *testing.T, addr string, clients int) *crowd {
	c := &crowd{t: t, addr: addr, answers: make(chan int, 10_000)}
	for range clients {
		c.clients = append(c.clients, unencryptedHTTP2(t))
	}
	return c
}

// meet has each client ask once, so that it has its connection: until it knows that HTTP/2
// is spoken it makes one for each request, and those are more than clients may have.
func (c *crowd) meet(host string) {
	c.ask(1, host, "/")
	c.asking.Wait()
	for range c.clients {
		if status := <-c.answers; status != 200 {
			c.t.Fatalf("alone: %d", status)
		}
	}
}

// ask has each client send so many requests.
func (c *crowd) ask(each int, host, path string) {
	for _, tr := range c.clients {
		for range each {
			c.asking.Go(func() {
				req := httptest.NewRequest("GET", "http://"+c.addr+path, nil)
				req.Host = host
				resp, err := tr.RoundTrip(req)
				if err != nil {
					c.t.Error(err)
					c.answers <- 0
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if fine := resp.StatusCode == 200 && string(text) == "fine"; err != nil || !fine && !isOverload(resp.StatusCode, string(text)) {
					c.t.Errorf("%d %.200q, %v", resp.StatusCode, text, err)
				}
				c.answers <- resp.StatusCode
			})
		}
	}
}

func isOverload(status int, text string) bool {
	return status == 503 && strings.Contains(text, "as many connections to endpoints as there may be")
}

// Over the bound, for all Services together, requests are answered 503 at once, and by
// status 14 over gRPC. Below it all is as before.
func TestUpstreamMaxConnections(t *testing.T) {
	const most, clients, each = 20, 8, 128
	pod := newPatientPod()
	files, p := startGlobal(t, pod, nil, func(o *proxy.Options) { o.H2C = true })
	t.Cleanup(pod.release)
	calls := annotated("calls", "calls.test", map[string]string{"service": "calls", "ingress.quayside.io/backend-protocol": "GRPC"})
	files.Put(configMap("wide", "upstream-max-connections", fmt.Sprint(most)), calls,
		service("calls", corev1.ServicePort{Port: 80}), slice("calls", "", echo(t, "calls")))
	eventually(t, "the ConfigMap is read", func() bool { return p.Table().Connections != nil && len(p.Table().Backends) > 1 })
	all := newCrowd(t, bound(p, false), clients)
	all.meet("a.test")
	all.ask(each, "a.test", "/wait")
	for range most {
		<-pod.entered
	}
	for range clients*each - most {
		if status := <-all.answers; status != 503 {
			t.Fatalf("%d while the pod holds all requests that it has", status)
		}
	}
	if len(pod.entered) > 0 {
		t.Errorf("%d requests more than connections", len(pod.entered))
	}
	if status, text := get(t, all.addr, "a.test", "/"); !isOverload(status, text) {
		t.Errorf("over HTTP/1.1: %d %q", status, text)
	}
	req := httptest.NewRequest("POST", "http://"+all.addr+"/call", strings.NewReader("\x00\x00\x00\x00\x00"))
	req.Host = "calls.test"
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := all.clients[0].RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Grpc-Status") != "14" {
		t.Errorf("over gRPC: %d %v", resp.StatusCode, resp.Header)
	}
	pod.release()
	for range most {
		if status := <-all.answers; status != 200 {
			t.Errorf("of those that the pod held: %d", status)
		}
	}
	all.asking.Wait()
	for range 20 * most { // one by one they find room
		if status, text := get(t, all.addr, "a.test", "/"); status != 200 {
			t.Fatalf("afterwards: %d %q", status, text)
		}
	}
	files.Put(configMap("wide", "upstream-max-connections", "-3"))
	eventually(t, "what is no number is told", func() bool { return strings.Contains(fmt.Sprint(p.Table().Problems), "upstream-max-connections") })
}

// shortVariable makes a test be a proxy that may have few descriptors, before the pod at
// the address in it.
const (
	shortVariable = "QUAYSIDE_TEST_SHORT"
	few           = 600
)

// beShortProxy serves until its input ends, and says for each line that it reads how many
// descriptors are open.
func beShortProxy(t *testing.T, pod string) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = few
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	leavesNothing(t)
	metrics := prometheus.NewRegistry()
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C, o.Registerer = true, true, metrics })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", pod), ingress("web", "a.test", "/", "web", number))
	eventually(t, "the route is there", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
	fmt.Println("serving on", bound(p, false))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("open", descriptors(t), gauge(t, metrics, "quayside_http_upstream_connections_open"))
	}
}

// Clients of HTTP/2 ask for more at once than the proxy has descriptors. It never lacks
// one: whoever it has no connection for is told so, and whoever comes then is answered.
func TestRequestsBeyondDescriptors(t *testing.T) {
	if pod := os.Getenv(shortVariable); pod != "" {
		beShortProxy(t, pod)
		return
	}
	t.Parallel()
	const clients, each = 8, 128
	pod := newPatientPod()
	s := httptest.NewServer(pod)
	t.Cleanup(s.Close)
	t.Cleanup(pod.release)
	short := startApart(t, shortVariable, strings.TrimPrefix(s.URL, "http://"))
	all := newCrowd(t, short.line("serving on "), clients)
	all.meet("a.test")
	all.ask(each, "a.test", "/wait")
	served := few/2 - 64 // the other half is for clients, and some is for the process
	for range clients*each - served {
		if status := <-all.answers; status != 503 {
			t.Fatalf("%d while the pod holds all requests that it has", status)
		}
	}
	for range served {
		<-pod.entered
	}
	if status, text := get(t, all.addr, "a.test", "/"); !isOverload(status, text) {
		t.Errorf("a client that comes then: %d %q", status, text)
	}
	fmt.Fprintln(short.in, "measure")
	var open, toPods int
	if fmt.Sscan(short.line("open "), &open, &toPods); toPods != served || open < served || open > few/2 {
		t.Errorf("%d descriptors are open, of %d, and %d of them lead to pods, want %d", open, few, toPods, served)
	}
	pod.release()
	for range served {
		if status := <-all.answers; status != 200 {
			t.Errorf("of those that the pod held: %d", status)
		}
	}
	all.asking.Wait()
	all.ask(4, "a.test", "/") // which fit
	all.asking.Wait()
	for range clients * 4 {
		if status := <-all.answers; status != 200 {
			t.Errorf("afterwards: %d", status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
