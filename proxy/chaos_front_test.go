package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"quayside.io/cluster"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

const (
	// chaosVariable makes TestChaos be the chaos, in a process of its own.
	chaosVariable = "QUAYSIDE_TEST_CHAOS"
	// chaosHeap is how much more memory may be in use when the chaos is over than when
	// it began: that of some buffers, and nothing that grows with its length.
	chaosHeap = 8 << 20
)

// TestChaos: pods that reset, stall at any byte, lie about lengths and leave in the
// middle, while endpoints, routes and certificates change ten times a second, and
// proxies before the same pods drain with streams under way. Every answer is right or an
// honest error, and neither goroutines, descriptors nor memory are left when it is over.
// It has a process of its own, so that other tests may run beside it.
func TestChaos(t *testing.T) {
	if os.Getenv(chaosVariable) != "" {
		beChaos(t)
		return
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChaos$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), chaosVariable+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// inUse is the memory that is, when all is collected that can be: what a pool holds goes
// with the second time.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// changeRoutes makes and removes routes, and renews certificates.
func changeRoutes(ctx context.Context, t *testing.T, files *cluster.Files) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		files.Put(ingress("extra", fmt.Sprintf("extra-%d.example", n%7), "/", "one", number))
		name := []string{"one", "two"}[n%2]
		files.Put(certificate.Secret(t, "default/"+name, time.Now().Add(time.Hour), name+".example"))
	}
}

// drainProxies begins and ends proxies over the same cluster, each with requests under
// way: they too are answered rightly or honestly, whatever is told to leave.
func (c *chaosRequests) drainProxies(ctx context.Context, files *cluster.Files) (drains int) {
	t := c.t
	forever := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for ; ctx.Err() == nil; drains++ {
		p, stop := startOn(t, files.Source, forever, func(o *proxy.Options) {
			o.HTTP2, o.H2C, o.GracePeriod, o.LameDuck = true, true, 30*time.Second, time.Second
		})
		eventually(t, "the routes are served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) >= 2 })
		asking, leaves := context.WithCancel(ctx)
		var drained sync.WaitGroup
		drained.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			time.AfterFunc(100*time.Millisecond, leaves) // while it goes on accepting
			began := time.Now()
			stop()
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("a drain took %v", took)
			}
		})
		c.ask(asking, p)
		drained.Wait()
		leaves()
	}
	return drains
}

// askers are the ways to ask a proxy, and the hosts there are.
func askers(t *testing.T, p *proxy.Proxy) (list map[string]*chaosClient, done func()) {
	t.Helper()
	list = map[string]*chaosClient{}
	plain, h2c := &http.Transport{}, unencryptedHTTP2(t)
	secure := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for _, host := range []string{"one.example", "two.example"} {
		for _, by := range []struct {
			name   string
			rt     http.RoundTripper
			secure bool
			grpc   bool
		}{{"HTTP/1.1", plain, false, false}, {"HTTP/2", h2c, false, false}, {"TLS", secure, true, false}, {"gRPC", h2c, false, true}} {
			if by.grpc && host == "one.example" {
				continue // its pods speak HTTP/1.1
			}
			c := &chaosClient{t: t, rt: by.rt, url: "http://" + bound(p, false) + "/", host: host, grpc: by.grpc, tally: new(tally)}
			if by.secure {
				c.url = "https://" + bound(p, true) + "/"
			}
			list[by.name+" to "+host] = c
		}
	}
	return list, func() {
		plain.CloseIdleConnections()
		secure.CloseIdleConnections()
		h2c.CloseIdleConnections()
	}
}

// ask sends requests over HTTP/1.1, HTTP/2, TLS and gRPC until ctx ends.
func (c *chaosRequests) ask(ctx context.Context, p *proxy.Proxy) map[string]*tally {
	list, done := askers(c.t, p)
	defer done()
	tallies := map[string]*tally{}
	var asking sync.WaitGroup
	for way, client := range list {
		tallies[way] = client.tally
		for range 4 {
			asking.Go(func() {
				for ctx.Err() == nil {
					client.ask(int(c.made.Add(1)))
				}
			})
		}
	}
	asking.Wait()
	return tallies
}
