package upstream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
	"quayside.io/test/blackhole"
)

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

func TestResponses(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20_000)
	var chunked strings.Builder
	for i := 0; i < len(big); i += 1000 {
		fmt.Fprintf(&chunked, "%x\r\n%s\r\n", len(big[i:min(i+1000, len(big))]), big[i:min(i+1000, len(big))])
	}
	manyFields := strings.Repeat("X-Filler: "+strings.Repeat("x", 90)+"\r\n", 450) // 45 kB
	for _, c := range []struct {
		name, method, answer string
		closes               bool
		status               int
		body                 string
	}{
		{"length", "GET", fine, false, 200, "fine"},
		{"no body", "GET", "HTTP/1.1 204 No Content\r\n\r\n", false, 204, ""},
		{"not modified, with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", false, 304, ""},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n", false, 200, ""},
		{"HEAD, chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 200, ""},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nfi\r\n2;x=y\r\nne\r\n0\r\nTrailer: x\r\n\r\n", false, 200, "fine"},
		{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nfine", true, 200, "fine"},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine", true, 200, "fine"},
		{"large", "GET", "HTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(len(big)) + "\r\n\r\n" + big, false, 200, big},
		{"large, chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked.String() + "0\r\n\r\n", false, 200, big},
		{"large head", "GET", "HTTP/1.1 200 OK\r\n" + manyFields + "Content-Length: 4\r\n\r\nfine", false, 200, "fine"},
		{"very large head", "GET", "HTTP/1.1 200 OK\r\n" + strings.Repeat(manyFields, 5) + "Content-Length: 4\r\n\r\nfine", false, 200, "fine"},
		{"large head and body", "GET", "HTTP/1.1 200 OK\r\n" + manyFields + "Content-Length: " + fmt.Sprint(len(big)) + "\r\n\r\n" + big, false, 200, big},
		{"informational first", "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + fine, false, 200, "fine"},
		{"error status", "GET", "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", false, 500, "no"},

		{"too much head", "GET", "HTTP/1.1 200 OK\r\n" + strings.Repeat(manyFields, 6) + "\r\n", true, 502, "too long"},
		{"garbage", "GET", "SSH-2.0-OpenSSH\r\n\r\n", true, 502, "status line"},
		{"two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", true, 502, "two Content-Length"},
		{"nothing", "POST", "", true, 502, "closed the connection"},
		{"half a head", "GET", "HTTP/1.1 200 OK\r\nConte", true, 502, "closed the connection"},
		{"endless information", "GET", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20) + fine, true, 502, "informational"},
		{"protocol switched unasked", "GET", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", true, 502, "unasked"},
		{"cut short", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfine", true, 200, "error: " + upstream.ErrTruncated.Error()},
		{"chunks cut short", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n", true, 200, "error: " + upstream.ErrTruncated.Error()},
		{"bad chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nfine", true, 502, "chunk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			act := say(c.answer)
			if c.closes {
				act = once(c.answer)
			}
			s := play(t, act)
			_, b := newEngine(t, upstream.Options{})
			b.SetEndpoints(endpoints(s.addr))
			for range 3 {
				status, body := forward(b, c.method, "")
				if status != c.status || body != c.body && (status < 500 || !strings.Contains(body, c.body)) {
					t.Fatalf("got %d %.200q, want %d %.200q", status, body, c.status, c.body)
				}
			}
			if n := s.conns.Load(); !c.closes && n != 1 {
				t.Errorf("three requests used %d connections, want one", n)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	fineOne := play(t, say(fine))
	for _, c := range []struct {
		name, method, body string
		first              func(net.Conn, *bufio.Reader) // what the first connection meets
		then               func(net.Conn)                // what it does before the second request
		status             int
	}{
		// The second request meets a connection that dies without an answer.
		{"GET on a reused connection", "GET", "", diesOnSecond, nil, 200},
		{"POST on a reused connection is not repeated", "POST", "", diesOnSecond, nil, 502},
		{"PUT with a body is not repeated", "PUT", "body", diesOnSecond, nil, 502},
		{"POST is sent on a fresh connection when the idle one has been closed", "POST", "body", once(fine), func(c net.Conn) { c.Close() }, 200},
		{"a response nobody asked for is not taken for the answer", "GET", "", once(fine), func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			idle, did := make(chan struct{}), make(chan struct{})
			s := play(t, func(conn net.Conn, r *bufio.Reader) {
				c.first(conn, r)
				if c.then != nil {
					<-idle
					c.then(conn)
					close(did)
					io.Copy(io.Discard, r)
				}
			}, say(fine))
			_, b := newEngine(t, upstream.Options{})
			b.SetEndpoints(endpoints(s.addr))
			if status, body := forward(b, c.method, c.body); status != 200 {
				t.Errorf("at first: %d %q", status, body)
			}
			if c.then != nil {
				close(idle)
				<-did
				time.Sleep(30 * time.Millisecond) // in which the kernel carries it over
			}
			status, body := forward(b, c.method, c.body)
			if status != c.status || status == 200 && body != "fine" {
				t.Errorf("got %d %q, want %d", status, body, c.status)
			}
		})
	}
	t.Run("an endpoint that refuses is passed over, whatever the method", func(t *testing.T) {
		e, b := newEngine(t, upstream.Options{})
		b.SetEndpoints(endpoints(fineOne.addr, closedPort(t)))
		for range 10 {
			if status, body := forward(b, "POST", "body"); status != 200 {
				t.Errorf("got %d %q", status, body)
			}
		}
		if n := metric(t, e, "quayside_http_upstream_retries_total"); n < 1 {
			t.Errorf("%v retries were counted", n)
		}
	})
	t.Run("when all refuse it is a 502", func(t *testing.T) {
		_, b := newEngine(t, upstream.Options{})
		b.SetEndpoints(endpoints(closedPort(t), closedPort(t)))
		if status, body := forward(b, "GET", ""); status != 502 || !strings.Contains(body, "Service default/web refused") || strings.Contains(body, "127.0.0.1") {
			t.Errorf("got %d %q", status, body)
		}
	})
	t.Run("without endpoints it is a 503 that says why", func(t *testing.T) {
		_, b := newEngine(t, upstream.Options{})
		b.SetEndpoints(&balance.Set{Why: "Service default/web has no ready endpoint (2 not ready)"})
		if status, body := forward(b, "GET", ""); status != 503 || body != "503 Service Unavailable: Service default/web has no ready endpoint\n" {
			t.Errorf("got %d %q", status, body)
		}
	})
}

// metric is the sum of a metric over its labels.
func metric(t testing.TB, e *upstream.Engine, name string) (sum float64) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(e.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
			return sum
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// Two classes may lead to one Service port; the metrics name it once.
func TestMetricsOfOnePortUnderTwoNames(t *testing.T) {
	s := play(t, say(fine))
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	of := b.Of()
	of.AnyNode = true
	e.Backend(of).SetEndpoints(endpoints(s.addr))
	forward(b, "GET", "")
	forward(e.Backend(of), "GET", "")
	if n := metric(t, e, "quayside_http_upstream_connects_total"); n != 2 {
		t.Errorf("%v connects were counted, want 2", n)
	}
}

// diesOnSecond answers one request and closes on the next without a word.
func diesOnSecond(c net.Conn, r *bufio.Reader) {
	once(fine)(c, r)
	http.ReadRequest(r)
}

func TestTimeouts(t *testing.T) {
	silent := func(c net.Conn, r *bufio.Reader) { io.Copy(io.Discard, r) }
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		_, b := newEngine(t, upstream.Options{ReadTimeout: 50 * time.Millisecond})
		b.SetEndpoints(endpoints(play(t, silent).addr))
		if status, body := forward(b, "GET", ""); status != 504 || !strings.Contains(body, "did not answer in time") {
			t.Errorf("got %d %q", status, body)
		}
	})
	t.Run("a body that stops coming is broken off", func(t *testing.T) {
		t.Parallel()
		_, b := newEngine(t, upstream.Options{ReadTimeout: 500 * time.Millisecond})
		stalls := func(c net.Conn, r *bufio.Reader) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
			io.Copy(io.Discard, r)
		}
		b.SetEndpoints(endpoints(play(t, stalls).addr))
		if status, body := forward(b, "GET", ""); status != 200 || !strings.HasPrefix(body, "error: ") {
			t.Errorf("got %d %q", status, body)
		}
	})
	t.Run("a slow body is no stalled one", func(t *testing.T) {
		t.Parallel()
		_, b := newEngine(t, upstream.Options{ReadTimeout: time.Second})
		slow := func(c net.Conn, r *bufio.Reader) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
			for range 10 {
				time.Sleep(150 * time.Millisecond)
				io.WriteString(c, "x")
			}
		}
		b.SetEndpoints(endpoints(play(t, slow).addr))
		if status, body := forward(b, "GET", ""); status != 200 || body != "xxxxxxxxxx" {
			t.Errorf("got %d %q", status, body)
		}
	})
}

// A pod that closed its idle connection and now takes no other is waited for
// once, not a second time because the first was in place of the idle one.
func TestHungPodIsWaitedForOnce(t *testing.T) {
	fd, addr := blackhole.Listen(t)
	e, b := newEngine(t, upstream.Options{ConnectTimeout: 200 * time.Millisecond})
	b.SetEndpoints(endpoints(addr))
	answered := make(chan int)
	go func() { status, _ := forward(b, "GET", ""); answered <- status }()
	conn, _, err := syscall.Accept(fd)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Write(conn, []byte(fine))
	if status := <-answered; status != 200 {
		t.Fatalf("got %d", status)
	}
	waits, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	syscall.Close(conn)
	time.Sleep(30 * time.Millisecond) // lets the close arrive
	if status, body := forward(b, "GET", ""); status != 504 {
		t.Errorf("got %d %q", status, body)
	}
	if n := metric(t, e, "quayside_http_upstream_connects_total"); n != 2 {
		t.Errorf("%v connects, want the first and one in vain", n)
	}
}

func TestForwardAllocatesNothing(t *testing.T) {
	s := play(t, say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nfine"))
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	method, target, host, accept := []byte("GET"), []byte("/"), []byte("web"), []byte("Accept")
	pass := func() {
		ex.Reset()
		ex.Request.Method, ex.Request.Target, ex.Request.Host = method, target, host
		ex.Request.Header.AddBorrowed(accept, host)
		b.Forward(ex)
		if ex.Response.Status != 200 {
			t.Fatalf("status %d", ex.Response.Status)
		}
		ex.Response.Body.Close()
	}
	pass()
	before := testing.AllocsPerRun(200, pass)
	// The scripted backend of this process allocates too; what it costs is
	// measured by asking it without the engine.
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 4096)
	own := testing.AllocsPerRun(200, func() {
		c.Write([]byte("GET / HTTP/1.1\r\nHost: web\r\nAccept: web\r\n\r\n"))
		c.Read(buf)
	})
	if before > own {
		t.Errorf("%v allocations per request, of which the test's backend makes %v", before, own)
	}
}
