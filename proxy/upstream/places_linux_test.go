package upstream_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
	"quayside.io/test/blackhole"
)

// ends counts the descriptors of this process that are connected to one of addrs.
func ends(t *testing.T, addrs map[string]bool) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		fd, _ := strconv.Atoi(entry.Name())
		peer, err := syscall.Getpeername(fd)
		if in, ok := peer.(*syscall.SockaddrInet4); ok && err == nil && addrs[net.JoinHostPort(net.IP(in.Addr[:]).String(), strconv.Itoa(in.Port))] {
			n++
		}
	}
	return n
}

// placesRig is an engine with pods of many kinds, and who knows their addresses.
type placesRig struct {
	engine   *upstream.Engine
	backends []*upstream.Backend
	pods     [][]string // of each
	addrs    map[string]bool
}

func (r *placesRig) add(http2 bool, config *tls.Config, check balance.HealthCheck, addrs ...string) {
	b := r.engine.Backend(route.Backend{
		Service: snapshot.Key{Namespace: "default", Name: fmt.Sprint("web-", len(r.backends))},
		HTTP2:   http2, Policy: balance.Policy{HealthCheck: check},
	})
	b.SetTLS(config)
	r.backends, r.pods = append(r.backends, b), append(r.pods, addrs)
	b.SetEndpoints(endpoints(addrs...))
	for _, a := range addrs {
		r.addrs[a] = true
	}
}

// upgradingPod answers, breaks off, or echoes what it hears over an upgraded connection.
func upgradingPod(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" && r.URL.Path != "/die" {
		io.WriteString(w, "fine")
		return
	}
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	if r.URL.Path != "/die" {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, rw)
	}
}

func newPlacesRig(t *testing.T, most int) *placesRig {
	plain := httptest.NewServer(http.HandlerFunc(upgradingPod))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(upgradingPod))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are given up
	secure.StartTLS()
	t.Cleanup(secure.Close)
	mute := play(t, func(c net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) }) // over TLS it never shakes hands
	frames := playFrames(t, podScript{settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 2}}, answer: (*podConn).fine})
	leaving := playFrames(t, podScript{answer: func(c *podConn, id uint32) { // it takes one request, and one that it does not look at
		c.fine(id)
		c.fr.WriteGoAway(id, http2.ErrCodeNo, nil)
	}})
	insecure := &tls.Config{InsecureSkipVerify: true}
	never := balance.HealthCheck{}
	often := balance.HealthCheck{Path: "/", Interval: 5 * time.Millisecond, Timeout: time.Second, Failures: 1 << 20, Successes: 1}
	brief, hole, refuses := play(t, once(fine)), blackhole.Address(t), closedPort(t)
	e, _ := newEngine(t, upstream.Options{MaxOpen: most, MaxIdle: 2, ConnectTimeout: 3 * time.Second}) // which ends before they do
	r := &placesRig{engine: e, addrs: map[string]bool{}}
	r.add(false, nil, often, plain.Listener.Addr().String())
	r.add(false, insecure, never, secure.Listener.Addr().String())
	r.add(false, insecure, often, secure.Listener.Addr().String(), mute.addr)
	r.add(false, nil, never, brief.addr)
	r.add(false, nil, never, refuses, plain.Listener.Addr().String())
	r.add(false, nil, never, hole, plain.Listener.Addr().String())
	delete(r.addrs, hole) // who is connected there is no engine
	r.add(true, nil, often, frames.addr)
	r.add(true, nil, never, leaving.addr, plain.Listener.Addr().String()) // one does not speak HTTP/2
	return r
}

// step does one thing that a connection may meet.
func (r *placesRig) step(t *testing.T, rnd *rand.Rand) {
	at := rnd.IntN(len(r.backends))
	b := r.backends[at]
	ex := &exchange.Exchange{}
	request(ex, "GET", "/")
	switch rnd.IntN(10) {
	case 0:
		r.engine.SetKeeping(upstream.Keeping{MaxOpen: 3 + rnd.IntN(8), MaxIdle: rnd.IntN(3) - 1})
		return
	case 1:
		b.SetEndpoints(&balance.Set{Why: "they are gone"})
		b.SetEndpoints(endpoints(r.pods[at]...))
		return
	case 2:
		ex.Request.Target = []byte("/die")
	case 3, 4:
		ex.Request.Upgrade = []byte("echo")
	}
	b.Forward(ex)
	switch {
	case ex.Response.Upgraded != nil:
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() { defer close(ended); ex.Response.Upgraded(far) }()
		io.WriteString(near, "hello")
		io.ReadFull(near, make([]byte, len("hello")))
		near.Close()
		<-ended
	case ex.Response.Body != nil:
		if rnd.IntN(2) > 0 { // or it is given up unread
			io.Copy(io.Discard, ex.Response.Body)
		}
		ex.Response.Body.Close()
	case ex.Response.Status < 500:
		t.Errorf("%d %s", ex.Response.Status, ex.Response.Text)
	}
}

// However connections begin and end, those that are counted are those that there are: of
// what the engine counts, the kernel is the twin.
func TestPlacesAreThoseOfTheKernel(t *testing.T) {
	const most, workers, steps = 6, 8, 40
	r := newPlacesRig(t, most)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var working sync.WaitGroup
	for i := range workers {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		working.Go(func() {
			for range steps {
				r.step(t, rnd)
			}
		})
	}
	working.Wait()
	var open, there int
	same := func() bool {
		open, there = int(metric(t, r.engine, "quayside_http_upstream_connections_open")), ends(t, r.addrs)
		return open == there
	}
	for end := time.Now().Add(time.Minute); !same(); time.Sleep(time.Millisecond) { // checks go on, and pods are heard out
		if time.Now().After(end) {
			t.Fatalf("%d connections are counted, %d are there", open, there)
		}
	}
	for name := range map[string]bool{"refused": true, "spared": true} {
		if metric(t, r.engine, "quayside_http_upstream_connections_"+name+"_total") == 0 {
			t.Errorf("none was %s: this test proves little", name)
		}
	}
	r.engine.Retain(func(route.Backend) bool { return false })
	until(t, "no connection is counted, and none is there", func() bool { return same() && open == 0 })
}
