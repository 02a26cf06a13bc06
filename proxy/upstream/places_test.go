package upstream_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

const tooMany = "as many connections to endpoints as there may be"

// holdingPod answers each request when it is let, and tells who has arrived.
func holdingPod(t *testing.T, overTLS bool) (addr string, arrived chan struct{}, release func()) {
	t.Helper()
	arrived, held := make(chan struct{}, 100), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-held
		io.WriteString(w, "fine")
	}))
	if overTLS {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // or Close would wait
	return s.Listener.Addr().String(), arrived, release
}

// holdingFrames is the same over HTTP/2, with one request for each connection.
func holdingFrames(t *testing.T) (addr string, arrived chan struct{}, release func()) {
	t.Helper()
	arrived, held := make(chan struct{}, 100), make(chan struct{})
	p := playFrames(t, podScript{
		settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}},
		answer: func(c *podConn, id uint32) {
			arrived <- struct{}{}
			<-held
			c.fine(id)
		},
	})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return p.addr, arrived, release
}

func backendNamed(e *upstream.Engine, name string, http2 bool) *upstream.Backend {
	return e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: name}, Port: balance.PortRef{Number: 80}, HTTP2: http2})
}

// There are so many connections to all endpoints together. Over them the answer is 503 at
// once, which blames nobody and asks nobody else; and one that is idle makes room.
func TestConnectionsToEndpointsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		http2, over bool
	}{{name: "HTTP/1.1"}, {name: "HTTP/2", http2: true}, {name: "TLS", over: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const most, tooManyTimes = 2, 10
			addr, arrived, release := holdingPod(t, c.over)
			if c.http2 {
				addr, arrived, release = holdingFrames(t)
			}
			fineOnes := endpoints(play(t, say(fine)).addr, play(t, say(fine)).addr)
			e, other := newEngine(t, upstream.Options{MaxOpen: most})
			other.SetEndpoints(fineOnes)
			busy := backendNamed(e, "busy", c.http2)
			if c.over {
				busy.SetTLS(&tls.Config{InsecureSkipVerify: true})
			}
			busy.SetEndpoints(endpoints(addr))
			var asking sync.WaitGroup
			for range most {
				asking.Go(func() {
					if status, body := forward(busy, "GET", ""); status != 200 {
						t.Errorf("of the first: %d %q", status, body)
					}
				})
			}
			for range most {
				<-arrived
			}
			for range tooManyTimes {
				for _, b := range []*upstream.Backend{busy, other} {
					if status, body := forward(b, "GET", ""); status != 503 || !strings.Contains(body, tooMany) {
						t.Errorf("one too many: %d %q", status, body)
					}
				}
			}
			for name, want := range map[string]float64{
				"connections_open": most, "connections_limit": most, "connections_refused_total": 2 * tooManyTimes, "connections_spared_total": 0,
				"connects_total": most, "retries_total": 0, "failures_total": 2 * tooManyTimes,
			} {
				if got := metric(t, e, "quayside_http_upstream_"+name); got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			if faults := faultsOf(t, e); len(faults) > 0 {
				t.Errorf("endpoints are blamed for it: %v", faults)
			}
			for _, b := range []*upstream.Backend{busy, other} {
				for _, endpoint := range b.Endpoints().Endpoints {
					if endpoint.Health.Ejected() {
						t.Errorf("endpoint %v is out of turn for it", endpoint.Addr)
					}
				}
			}
			release()
			asking.Wait()
			until(t, "an idle connection makes room", func() bool { status, _ := forward(other, "GET", ""); return status == 200 })
			if open, spared := metric(t, e, "quayside_http_upstream_connections_open"), metric(t, e, "quayside_http_upstream_connections_spared_total"); open != most || spared != 1 {
				t.Errorf("%v connections are open, of %d, and %v made room, want one", open, most, spared)
			}
		})
	}
}

// Requests that wait for one connection of HTTP/2 hear together that there is none, and
// together use the one that there is.
func TestFollowersHearThatThereIsNoPlace(t *testing.T) {
	addr, arrived, release := holdingPod(t, false)
	frames := playFrames(t, fineScript())
	e, busy := newEngine(t, upstream.Options{MaxOpen: 1})
	busy.SetEndpoints(endpoints(addr))
	shared := backendNamed(e, "shared", true)
	shared.SetEndpoints(endpoints(frames.addr))
	var holding sync.WaitGroup
	holding.Go(func() { forward(busy, "GET", "") })
	<-arrived
	all := func(want int, says string) {
		var asking sync.WaitGroup
		for range 50 {
			asking.Go(func() {
				if status, body := forward(shared, "GET", ""); status != want || !strings.Contains(body, says) {
					t.Errorf("%d %q, want %d", status, body, want)
				}
			})
		}
		asking.Wait()
	}
	all(503, tooMany)
	release()
	holding.Wait()
	all(200, "fine")
	if faults := faultsOf(t, e); len(faults) > 0 {
		t.Errorf("endpoints are blamed: %v", faults)
	}
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A health check that finds no place says nothing about its endpoint. Where there is an
// idle connection, it takes its place.
func TestHealthChecksWithoutAPlace(t *testing.T) {
	addr, arrived, release := holdingPod(t, false)
	var pod checkedPod
	pod.status.Store(204)
	s := httptest.NewServer(&pod)
	t.Cleanup(s.Close)
	var log logged
	e, busy := newEngine(t, upstream.Options{MaxOpen: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	busy.SetEndpoints(endpoints(addr))
	var holding sync.WaitGroup
	holding.Go(func() { forward(busy, "GET", "") })
	<-arrived
	check := patient()
	check.Interval, check.Failures = time.Millisecond, 1
	checked := e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "checked"}, Policy: balance.Policy{HealthCheck: check}})
	checked.SetEndpoints(endpoints(s.Listener.Addr().String()))
	until(t, "checks have found no place", func() bool { return metric(t, e, "quayside_http_upstream_connections_refused_total") >= 5 })
	if pod.checked.Load() > 0 || strings.Contains(log.String(), "fails its health checks") {
		t.Errorf("%d checks, and the log has %s", pod.checked.Load(), log.String())
	}
	release()
	holding.Wait()
	until(t, "an idle connection makes room for a check", func() bool { return pod.checked.Load() > 0 })
}

// The bound holds for what is there, too: connections that are idle close when one is
// needed, until they are few enough. It may be raised again.
func TestTheBoundMoves(t *testing.T) {
	addr, arrived, release := holdingPod(t, false)
	another := play(t, say(fine))
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(addr))
	hold := func(n int) (wait func()) {
		var asking sync.WaitGroup
		for range n {
			asking.Go(func() {
				if status, body := forward(b, "GET", ""); status != 200 {
					t.Errorf("%d %q", status, body)
				}
			})
		}
		for range n {
			<-arrived
		}
		return asking.Wait
	}
	wait := hold(20)
	release()
	wait()
	e.SetKeeping(upstream.Keeping{MaxOpen: 3})
	fresh := backendNamed(e, "fresh", false)
	fresh.SetEndpoints(endpoints(another.addr))
	if status, body := forward(fresh, "GET", ""); status != 200 {
		t.Errorf("with idle ones over the bound: %d %q", status, body)
	}
	if open := metric(t, e, "quayside_http_upstream_connections_open"); open > 3 {
		t.Errorf("%v are open, of 3", open)
	}
	e.SetKeeping(upstream.Keeping{})
	if limit := metric(t, e, "quayside_http_upstream_connections_limit"); limit < 1<<30 {
		t.Errorf("without a bound it is %v", limit)
	}
}

// Many who need a place at once are served from those that are idle: nobody is refused
// because somebody else is just looking.
func TestPlacesForManyAtOnce(t *testing.T) {
	const most = 40
	addr, arrived, release := holdingPod(t, false)
	another := play(t, say(fine))
	e, b := newEngine(t, upstream.Options{MaxOpen: most})
	b.SetEndpoints(endpoints(addr))
	var asking sync.WaitGroup
	ask := func(b *upstream.Backend) {
		asking.Go(func() {
			if status, body := forward(b, "GET", ""); status != 200 {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	for range most {
		ask(b)
	}
	for range most {
		<-arrived
	}
	release()
	asking.Wait()
	for i := range most {
		fresh := backendNamed(e, fmt.Sprint("fresh-", i), false)
		fresh.SetEndpoints(endpoints(another.addr))
		ask(fresh)
	}
	asking.Wait()
	if open := metric(t, e, "quayside_http_upstream_connections_open"); open > most {
		t.Errorf("%v connections are open, of %d", open, most)
	}
}
