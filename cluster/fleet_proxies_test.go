package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
)

// Ten proxies, each with the certificates of four hundred namespaces, start together, and
// lose their API server together. They count each other, and ask at a rate that it can bear:
// without that each took all of it for itself. The time is made up.
func TestProxiesAndTheirServer(t *testing.T) {
	const proxies, namespaces, watched = 10, 400, 5 + 400
	kubeconfig := kubeconfigFor(t, "http://fleet")
	inMadeUpTime(t, func(t *testing.T) {
		s := newFleetServer()
		s.wanted = func() int { return proxies }
		s.ready = func() int { return s.watches / watched }
		var secrets []snapshot.Key
		for i := range namespaces {
			secrets = append(secrets, snapshot.Key{Namespace: fmt.Sprintf("team-%d", i), Name: "tls"})
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range proxies {
			a, err := NewAPI(APIOptions{
				Kubeconfig: Kubeconfig{File: kubeconfig}, Component: "proxy", Instance: "p",
				Kinds:      []snapshot.Kind{snapshot.Service, snapshot.EndpointSlice, snapshot.Ingress, snapshot.IngressClass, snapshot.Namespace, snapshot.Secret},
				Referenced: []snapshot.Kind{snapshot.Secret},
				Fleet:      func(*snapshot.Cluster) int { return proxies },
				Workload:   Workload{Kind: "DaemonSet", Namespace: "quayside-proxy", Name: "quayside-proxy"},
			})
			if err != nil {
				t.Fatal(err)
			}
			serve(t, a, s)
			a.Refer(snapshot.Secret, secrets)
			running.Go(func() { _ = a.Run(ctx) })
		}
		complete := func(when string) time.Duration {
			began := time.Now()
			for s.running() != proxies*watched {
				if time.Since(began) > time.Hour {
					t.Fatalf("%s %d of %d watches run", when, s.running(), proxies*watched)
				}
				time.Sleep(100 * time.Millisecond)
			}
			return time.Since(began)
		}
		busiest := func() (n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range s.requests {
				n = max(n, m)
			}
			s.began, s.requests = time.Now(), map[int]int{}
			return n
		}
		began, start := complete("after the start"), busiest()
		time.Sleep(time.Minute)
		busiest()
		s.setAway(true)
		time.Sleep(time.Minute)
		lost := busiest()
		s.setAway(false)
		took, back := complete("after an outage"), busiest()
		t.Logf("%d proxies, %d watches each: %d requests in the busiest second of the start, all is watched after %v; %d without the server, %d when it is back; all is watched after %v", proxies, watched, start, began, lost, back, took)
		if start > 500 || lost > 500 || back > 500 {
			t.Errorf("%d requests in a second of the start, %d while the server was away, %d when it was back", start, lost, back)
		}
		stop()
		running.Wait()
	})
}
