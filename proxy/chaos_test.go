package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// chaosLasts is how long the chaos goes on: 5 minutes as a soak test.
func chaosLasts() time.Duration {
	switch {
	case os.Getenv("QUAYSIDE_SOAK") != "":
		return 5 * time.Minute
	case os.Getenv("CI") != "":
		return 30 * time.Second
	}
	return 2 * time.Second
}

// faultyConn is a pod's side of a connection, to which something happens when it has
// written so many bytes.
type faultyConn struct {
	net.Conn
	mu     sync.Mutex
	left   int // -1: nothing will
	fault  string
	closed chan struct{}
	once   sync.Once
}

func (c *faultyConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 || len(b) <= c.left {
		if c.left >= 0 {
			c.left -= len(b)
		}
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:c.left])
	c.left = 0
	switch c.fault {
	case "stall":
		<-c.closed
	case "reset":
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
	}
	c.Close()
	return n, net.ErrClosed
}

func (c *faultyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// faultyListener makes something happen to a share of the connections.
type faultyListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*faultyConn
}

func (l *faultyListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &faultyConn{Conn: nc, left: -1, closed: make(chan struct{})}
	if rand.IntN(3) == 0 {
		c.left, c.fault = rand.IntN(1<<rand.IntN(20)), []string{"stall", "reset", "close"}[rand.IntN(3)]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

// chaosPod is a pod of a Service, over HTTP/1.1 or HTTP/2.
type chaosPod struct {
	addr   string
	server *http.Server
	l      *faultyListener
}

func startChaosPod(t *testing.T, http2 bool, asked *chaosRequests) *chaosPod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &chaosPod{addr: l.Addr().String(), l: &faultyListener{Listener: l}, server: &http.Server{Handler: asked, Protocols: new(http.Protocols)}}
	p.server.Protocols.SetHTTP1(!http2)
	p.server.Protocols.SetUnencryptedHTTP2(http2)
	go p.server.Serve(p.l)
	return p
}

// leave is how a pod ends: it lets what it has been asked finish, over HTTP/2 by
// GOAWAY, and then it is gone.
func (p *chaosPod) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	p.server.Shutdown(ctx)
	p.kill()
}

func (p *chaosPod) kill() {
	p.server.Close()
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	for _, c := range p.l.conns {
		c.Close()
	}
}

// chaosByte is what stands at one place of the answer to a request.
func chaosByte(id, at int) byte { return byte(id*31 + at*7 + at>>8) }

// chaosRequests are those that clients have made and pods have got.
type chaosRequests struct {
	t      *testing.T
	made   atomic.Int64
	posted sync.Map // the numbers of POSTs that a pod has seen
}

// ServeHTTP answers a request with its number, how much came with it, and a body of the size
// asked for; at times it breaks off or lies.
func (c *chaosRequests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.URL.Query().Get("id"))
	if r.Method == http.MethodPost {
		if _, again := c.posted.LoadOrStore(id, true); again {
			c.t.Errorf("request %d, a POST over %s, came twice", id, r.Proto)
		}
	}
	size, _ := strconv.Atoi(r.URL.Query().Get("size"))
	got, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("X-Id", strconv.Itoa(id))
	h.Set("X-Size", strconv.Itoa(size))
	h.Set("X-Got", strconv.FormatInt(got, 10))
	body := make([]byte, size)
	for i := range body {
		body[i] = chaosByte(id, i)
	}
	if r.Header.Get("Content-Type") == "application/grpc" {
		answerGRPC(w, id, body)
		return
	}
	switch rand.IntN(12) {
	case 0:
		panic(http.ErrAbortHandler)
	case 1: // half of it
		w.Write(body[:size/2])
		panic(http.ErrAbortHandler)
	case 2: // it says more than it has
		h.Set("Content-Length", strconv.Itoa(size+1))
		w.Write(body)
	case 3: // it has more than it says
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Id: %d\r\nX-Size: %d\r\nX-Got: %d\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\nX-Id: 0\r\nContent-Length: 4\r\n\r\nevil",
				id, size, got, size, body)
			return
		}
		fallthrough
	case 4:
		w.WriteHeader(http.StatusEarlyHints)
		fallthrough
	default:
		w.Write(body)
	}
}

// answerGRPC does so as a gRPC server: its status is in a trailer, and at times another
// than 0, of which the head knows already.
func answerGRPC(w http.ResponseWriter, id int, body []byte) {
	h, status := w.Header(), "0"
	h.Set("Content-Type", "application/grpc")
	h.Set("Trailer", "Grpc-Status, X-Id")
	h.Del("X-Id")
	half := len(body) / 2
	switch rand.IntN(12) {
	case 0: // reset before there is a head
		panic(http.ErrAbortHandler)
	case 1: // and in the middle
		w.Write(body[:half])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case 2: // GOAWAY, while this stream and others go on
		h.Set("Connection", "close")
	case 3: // it says more than it has
		h.Set("Content-Length", strconv.Itoa(len(body)+1))
	case 4: // it fails, and may have sent something before
		status = []string{"2", "4", "13", "14"}[rand.IntN(4)]
		body = body[:half]
		h.Set("X-Size", strconv.Itoa(half))
	}
	h.Set("X-Status", status)
	w.Write(body[:half])
	http.NewResponseController(w).Flush()
	w.Write(body[half:])
	h.Set("Grpc-Status", status)
	h.Set("X-Id", strconv.Itoa(id))
}

// fewAnswers are too few to tell by chance from chaos.
const fewAnswers = 300

// tally is how many answers of one way were right, and how many were honest errors.
type tally struct{ fine, other atomic.Int64 }

// chaosClient sends requests by one way and judges the answers.
type chaosClient struct {
	t    *testing.T
	rt   http.RoundTripper
	url  string // up to the query
	host string
	grpc bool
	*tally
}

// ask sends one request. Whatever is no right answer must say so.
func (c *chaosClient) ask(id int) {
	size := rand.IntN(1 << rand.IntN(18))
	method, sent := "GET", 0
	var body io.Reader
	if c.grpc || rand.IntN(3) == 0 {
		method, sent = "POST", rand.IntN(1<<rand.IntN(18))
		if body = bytes.NewReader(make([]byte, sent)); rand.IntN(2) == 0 {
			body = io.MultiReader(body) // without a length
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s?id=%d&size=%d", c.url, id, size), body)
	if err != nil {
		c.t.Error(err)
		return
	}
	req.Host = c.host
	if c.grpc {
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("TE", "trailers")
	}
	resp, err := c.rt.RoundTrip(req)
	if err != nil {
		// Over HTTP/1.1 a client that still sends may miss an early answer.
		if c.other.Add(1); method == "GET" || errors.Is(err, context.DeadlineExceeded) {
			c.t.Errorf("request %d, %s, %d bytes up, %d down: %v", id, method, sent, size, err)
		}
		return
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if why := c.judge(resp, got, err, id, sent, size); why != "" {
		c.t.Errorf("request %d to %s, %s, %d bytes up, %d down: status %d, %d bytes, %v: %s", id, c.url, method, sent, size, resp.StatusCode, len(got), err, why)
	}
}

// judge returns what is dishonest about an answer.
func (c *chaosClient) judge(resp *http.Response, body []byte, err error, id, sent, size int) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it hangs"
	}
	if c.grpc {
		done, why := c.judgeGRPC(resp, err, id, sent)
		if done || why != "" {
			return why
		}
		size, _ = strconv.Atoi(resp.Header.Get("X-Size"))
	} else if resp.StatusCode != 200 {
		c.other.Add(1)
		return dishonest(resp.StatusCode, string(body))
	} else if resp.Header.Get("X-Id") != strconv.Itoa(id) || resp.Header.Get("X-Got") != strconv.Itoa(sent) || resp.Header.Get("X-Size") != strconv.Itoa(size) {
		return fmt.Sprintf("it is another's answer: %v", resp.Header)
	}
	for i := range body {
		if body[i] != chaosByte(id, i) {
			return "its body is another's"
		}
	}
	if err != nil {
		c.other.Add(1)
		return ""
	}
	if len(body) != size {
		return "its body was cut and looks whole"
	}
	c.fine.Add(1)
	return ""
}

// judgeGRPC is judge for what is not in the body, and reports whether that is all.
func (c *chaosClient) judgeGRPC(resp *http.Response, err error, id, sent int) (done bool, why string) {
	ours, theirs := resp.Header.Get("Grpc-Status"), resp.Trailer.Get("Grpc-Status")
	switch {
	case resp.StatusCode != 200:
		return true, "gRPC knows no status but 200"
	case ours != "": // of the proxy: all of it is one head
		c.other.Add(1)
		message := resp.Header.Get("Grpc-Message")
		status, _ := strconv.Atoi(message[:min(3, len(message))])
		if want := map[int]string{502: "14", 504: "4"}[status]; ours != want {
			return true, fmt.Sprintf("grpc-status %s says %q", ours, message)
		}
		return true, dishonest(status, message)
	case resp.Header.Get("X-Got") != strconv.Itoa(sent):
		return true, fmt.Sprintf("the pod got %q bytes", resp.Header.Get("X-Got"))
	case err != nil:
		return false, "" // what has come is to be right
	case theirs != resp.Header.Get("X-Status"):
		return true, fmt.Sprintf("grpc-status %q, and the pod says %q", theirs, resp.Header.Get("X-Status"))
	case resp.Trailer.Get("X-Id") != strconv.Itoa(id):
		return true, "it is another's trailer: " + resp.Trailer.Get("X-Id")
	}
	return false, ""
}

// dishonest returns what is wrong with an answer of the proxy. There are three endpoints at
// any time, without a limit and a check, so none ever has to be missing; else it says what
// pods do here.
func dishonest(status int, text string) string {
	for _, told := range map[int][]string{
		502: {" refused the connection", " closed the connection before it answered", " sent an invalid response"},
		504: {" did not accept a connection in time", " did not read the request in time", " did not answer in time"},
	}[status] {
		if strings.HasPrefix(text, strconv.Itoa(status)) && strings.Contains(text, told) {
			return ""
		}
	}
	return fmt.Sprintf("it is neither right nor an honest error: %.200q", text)
}

// leavesNothing sees to it that the test, in a process of its own, leaves no goroutine and
// no descriptor behind.
func leavesNothing(t *testing.T) {
	before, open := goleak.IgnoreCurrent(), descriptors(t)
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		// fasthttp has a clock for ever, and sweepers that look every 5 s whether they are to end.
		clock, sweeper := goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")
		err := goleak.Find(before, clock, sweeper)
		for try := 0; err != nil && try < 10; try++ { // each waits for a second or so
			err = goleak.Find(before, clock, sweeper)
		}
		if err != nil {
			t.Error(err)
		}
		eventually(t, "every descriptor is closed", func() bool { return descriptors(t) <= open })
	})
}

// beChaos is TestChaos in a process of its own.
func beChaos(t *testing.T) {
	leavesNothing(t)
	metrics := prometheus.NewRegistry()
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C, o.GracePeriod, o.Registerer = true, true, time.Second, metrics
	})
	for _, name := range []string{"one", "two"} {
		ing := ingress(name, name+".example", "/", name, number)
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{name + ".example"}, SecretName: name}}
		ing.Annotations = map[string]string{"ingress.quayside.io/ssl-redirect": "false", "ingress.quayside.io/proxy-read-timeout": "1"}
		if name == "two" {
			ing.Annotations["ingress.quayside.io/backend-protocol"] = "H2C"
		}
		files.Put(service(name, corev1.ServicePort{Port: 80}), ing, certificate.Secret(t, "default/"+name, time.Now().Add(time.Hour), name+".example"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), chaosLasts())
	defer cancel()
	var changing sync.WaitGroup
	ready, asked := make(chan struct{}, 2), &chaosRequests{t: t}
	changing.Go(func() { asked.changePods(ctx, files, "one", false, ready) })
	changing.Go(func() { asked.changePods(ctx, files, "two", true, ready) })
	changing.Go(func() { changeRoutes(ctx, t, files) })
	<-ready
	<-ready
	eventually(t, "the routes are served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) >= 2 })
	used, drains := inUse(), 0
	changing.Go(func() { drains = asked.drainProxies(ctx, files) })
	tallies := asked.ask(ctx, p)
	cancel()
	changing.Wait()
	eventually(t, "no stream is left", func() bool { return gauge(t, metrics, "quayside_http2_streams") == 0 })
	grown := inUse() - used
	t.Logf("%d drains, %d KiB more in use", drains, grown>>10)
	for way, n := range tallies {
		fine, other := n.fine.Load(), n.other.Load()
		t.Logf("%s: %d right answers, %d honest errors", way, fine, other)
		if few := fine+other < fewAnswers; fine == 0 || !few && (fine <= other || other == 0) {
			t.Errorf("%s: that was no chaos, or nothing else", way)
		}
	}
	if drains == 0 {
		t.Error("no proxy was drained")
	}
	if grown > chaosHeap && !racing {
		t.Errorf("%d KiB more are in use than before", grown>>10)
	}
}

// gauge is the value of a metric without labels.
func gauge(t *testing.T, metrics prometheus.Gatherer, name string) float64 {
	t.Helper()
	all, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// descriptors is how many the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// changePods exchanges the pods of a Service one by one. Some are gone before the
// endpoints say so.
func (c *chaosRequests) changePods(ctx context.Context, files *cluster.Files, name string, http2 bool, ready chan<- struct{}) {
	var leaving sync.WaitGroup
	defer leaving.Wait()
	var pods []*chaosPod
	for range 3 {
		pods = append(pods, startChaosPod(c.t, http2, c))
	}
	defer func() {
		for _, p := range pods {
			p.kill()
		}
	}()
	sliceOf := func(p *chaosPod) *discoveryv1.EndpointSlice { // each pod has its own port
		s := slice(name, "", p.addr)
		s.Name = name + "-" + p.addr[strings.LastIndexByte(p.addr, ':')+1:]
		return s
	}
	for _, p := range pods {
		files.Put(sliceOf(p))
	}
	ready <- struct{}{}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		old, joins := pods[0], startChaosPod(c.t, http2, c)
		pods = append(pods[1:], joins)
		files.Put(sliceOf(joins))
		if rand.IntN(2) == 0 {
			leaving.Go(old.leave)
			time.Sleep(20 * time.Millisecond) // it is asked all the same
			files.Delete(snapshot.EndpointSlice, snapshot.KeyOf(sliceOf(old)))
		} else {
			files.Delete(snapshot.EndpointSlice, snapshot.KeyOf(sliceOf(old)))
			leaving.Go(old.leave)
		}
	}
}
