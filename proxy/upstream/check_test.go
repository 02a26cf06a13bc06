package upstream_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// patient is a health check that asks often, and waits for long.
func patient() balance.HealthCheck {
	return balance.HealthCheck{Path: "/healthz?full=1", Interval: 25 * time.Millisecond, Timeout: time.Minute, Failures: 2, Successes: 3}
}

// checkedPod says its name, and of itself what status says.
type checkedPod struct {
	status  atomic.Int64
	asked   atomic.Int64
	checked atomic.Int64
}

func (p *checkedPod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == patient().Path && r.UserAgent() == "quayside-health-check" && r.Host != "" {
		w.WriteHeader(int(p.status.Load()))
		p.checked.Add(1)
		return
	}
	p.asked.Add(1)
	io.WriteString(w, "fine")
}

// until waits for as long as it takes: that something happens, not how soon.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

func checkedBackend(t *testing.T, c balance.HealthCheck, http2 bool) *upstream.Backend {
	e, _ := newEngine(t, upstream.Options{})
	return e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}, Port: balance.PortRef{Number: 80}, Policy: balance.Policy{HealthCheck: c}, HTTP2: http2})
}

// An endpoint that says it is not well is left out until it says otherwise, whatever it
// speaks and though it answers.
func TestHealthChecks(t *testing.T) {
	for _, c := range []struct {
		name        string
		http2, over bool
	}{{name: "HTTP/1.1"}, {name: "HTTP/2", http2: true}, {name: "TLS", over: true}, {name: "HTTP/2 over TLS", http2: true, over: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var pods [3]checkedPod
			var addrs []string
			for i := range pods {
				pods[i].status.Store(204)
				s := httptest.NewUnstartedServer(&pods[i])
				s.Config.ErrorLog = log.New(io.Discard, "", 0) // a check may be given up in a handshake
				s.Config.Protocols = new(http.Protocols)
				s.Config.Protocols.SetHTTP1(!c.http2)
				s.Config.Protocols.SetHTTP2(c.http2)
				s.Config.Protocols.SetUnencryptedHTTP2(c.http2)
				if s.EnableHTTP2 = c.http2; c.over {
					s.StartTLS()
				} else {
					s.Start()
				}
				t.Cleanup(s.Close)
				addrs = append(addrs, s.Listener.Addr().String())
			}
			b := checkedBackend(t, patient(), c.http2)
			if c.over {
				b.SetTLS(&tls.Config{InsecureSkipVerify: true, NextProtos: map[bool][]string{true: {"h2"}}[c.http2]})
			}
			set := endpoints(addrs...)
			b.SetEndpoints(set)
			first := map[string]int{}
			for i, e := range set.Endpoints {
				first[e.Addr.String()] = i
			}
			one := set.Endpoints[first[addrs[0]]].Health

			until(t, "all are asked", func() bool {
				return pods[0].checked.Load() > 3 && pods[1].checked.Load() > 0 && pods[2].checked.Load() > 0
			})
			if one.Ejected() {
				t.Fatal("an endpoint that is well was left out")
			}
			pods[0].status.Store(503)
			until(t, "the first is left out", one.Ejected)
			before := pods[0].asked.Load()
			for range 30 {
				if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
					t.Fatalf("%d %q", status, body)
				}
			}
			if n := pods[0].asked.Load() - before; n != 0 {
				t.Errorf("it was asked %d times", n)
			}
			pods[0].status.Store(302)
			until(t, "it is back", func() bool { return !one.Ejected() })
			for range 30 {
				forward(b, "GET", "")
			}
			if pods[0].asked.Load() == before {
				t.Error("it is never asked again")
			}
			// Where most are not well, the fault is hardly theirs.
			pods[0].status.Store(500)
			pods[1].status.Store(404)
			until(t, "two are left out", func() bool { return one.Ejected() && set.Endpoints[first[addrs[1]]].Health.Ejected() })
			before = pods[0].asked.Load()
			for range 30 {
				forward(b, "GET", "")
			}
			if pods[0].asked.Load() == before {
				t.Error("the only one that is well has all the load")
			}
		})
	}
}

// Whoever does not answer in time, in whatever way, is not well; nor does it hold up
// the end.
func TestHealthChecksOfTheSilent(t *testing.T) {
	drip := func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	mute := func(_ net.Conn, r *bufio.Reader) { io.Copy(io.Discard, r) }
	for name, act := range map[string]func(net.Conn, *bufio.Reader){"mute": mute, "dripping": drip, "closing": func(net.Conn, *bufio.Reader) {}, "another protocol": once("220 mail\r\n\r\n")} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				t.Parallel()
				c := patient()
				c.Timeout = 20 * time.Millisecond
				set := endpoints(play(t, act).addr) // ends after those who ask it
				b := checkedBackend(t, c, http2)
				b.SetEndpoints(set)
				until(t, "it is left out", set.Endpoints[0].Health.Ejected)
			})
		}
	}
	t.Run("the end", func(t *testing.T) {
		s := play(t, mute)
		b := checkedBackend(t, patient(), false) // waits for a minute
		b.SetEndpoints(endpoints(s.addr))
		until(t, "it is asked", func() bool { return s.conns.Load() > 0 })
	})
}

// Another pod that got the address begins anew, and one that left is asked no more.
func TestHealthChecksFollowThePods(t *testing.T) {
	pod := &checkedPod{}
	pod.status.Store(500)
	s := httptest.NewServer(pod)
	t.Cleanup(s.Close)
	b := checkedBackend(t, patient(), false)
	for i := range 3 {
		set := endpoints(s.Listener.Addr().String())
		set.Endpoints[0].Pod = snapshot.Key{Namespace: "default", Name: fmt.Sprint("web-", i)}
		b.SetEndpoints(set)
		until(t, "it is left out", set.Endpoints[0].Health.Ejected)
	}
	b.SetEndpoints(&balance.Set{})
	seen := pod.checked.Load()
	until(t, "nobody asks", func() bool {
		before := seen
		seen = pod.checked.Load()
		time.Sleep(20 * time.Millisecond)
		return seen == before
	})
}
