package upstream_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// pod is a server that stops listening when its endpoint has been removed, as a
// pod does that gets its SIGTERM.
type pod struct {
	addr   netip.AddrPort
	server *http.Server
}

func startPod(t *testing.T) *pod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{addr: netip.MustParseAddrPort(l.Addr().String()), server: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") }),
	}}
	go p.server.Serve(l)
	return p
}

// stop ends the pod: it closes idle connections, which the engine may be about
// to use, and lets requests under way finish.
func (p *pod) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		p.server.Close()
	}
}

func setOf(pods []*pod) *balance.Set {
	s := &balance.Set{}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, balance.Endpoint{Addr: p.addr, Health: &balance.Health{}})
	}
	return s
}

func newEngine(t testing.TB, o upstream.Options) (*upstream.Engine, *upstream.Backend) {
	t.Helper()
	e := upstream.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e, e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}, Port: balance.PortRef{Number: 80}})
}

func request(ex *exchange.Exchange, method, target string) {
	ex.Reset()
	r := &ex.Request
	r.Method, r.Target, r.Host = []byte(method), []byte(target), []byte("web")
}

// One thousand times a pod comes and another goes, while 64 connections send
// requests without a pause. Not one may fail.
func TestEndpointsComeAndGoUnderLoad(t *testing.T) {
	const changes, workers = 1000, 64
	_, b := newEngine(t, upstream.Options{})
	pods := []*pod{startPod(t), startPod(t), startPod(t)}
	b.SetEndpoints(setOf(pods))

	var failed, sent atomic.Int64
	var first sync.Once
	stop := make(chan struct{})
	var working, stopping sync.WaitGroup
	for range workers {
		working.Go(func() {
			ex := &exchange.Exchange{}
			for {
				select {
				case <-stop:
					return
				default:
				}
				request(ex, "GET", "/")
				b.Forward(ex)
				sent.Add(1)
				if ex.Response.Status != 200 {
					failed.Add(1)
					first.Do(func() { t.Errorf("first failure: %d %s", ex.Response.Status, ex.Response.Text) })
				}
				if ex.Response.Body != nil {
					ex.Response.Body.Close()
				}
			}
		})
	}
	for range changes / 2 {
		before := sent.Load()
		pods = append(pods, startPod(t))
		b.SetEndpoints(setOf(pods))
		gone := pods[0]
		pods = pods[1:]
		b.SetEndpoints(setOf(pods))
		stopping.Go(func() { gone.stop() })
		// Each set gets its requests. On a busy machine a pod would be gone else
		// before anybody who was sent there could have arrived, time and again.
		for {
			time.Sleep(2 * time.Millisecond)
			if sent.Load()-before >= workers/2 {
				break
			}
		}
	}
	close(stop)
	working.Wait()
	stopping.Wait()
	for _, p := range pods {
		p.stop()
	}
	t.Logf("%d requests over %d changes", sent.Load(), changes)
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
	if sent.Load() < changes {
		t.Errorf("only %d requests were sent", sent.Load())
	}
}
