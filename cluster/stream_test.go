package cluster

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
)

// endlessServer takes a list that is to be streamed for a watch like any other: what exists
// may come, the bookmark that ends it does not.
type endlessServer struct {
	*fleetServer
	life    string // of such a stream, in seconds; "": as long as was asked for
	streams atomic.Int32
}

func (s *endlessServer) RoundTrip(q *http.Request) (*http.Response, error) {
	if query := q.URL.Query(); query.Get("sendInitialEvents") != "" {
		s.streams.Add(1)
		query.Del("sendInitialEvents")
		query.Set("resourceVersion", "7")
		if s.life != "" {
			query.Set("timeoutSeconds", s.life)
		}
		q = q.Clone(q.Context())
		q.URL.RawQuery = query.Encode()
	}
	return s.fleetServer.RoundTrip(q)
}

// A server that never ends the lists it streams is asked for plain ones before a process
// misses its readiness for long, and is not asked for a stream again.
func TestStreamsWithoutAnEnd(t *testing.T) {
	kubeconfig := kubeconfigFor(t, "http://server")
	kinds, secret := []snapshot.Kind{snapshot.Service, snapshot.Node}, snapshot.Key{Namespace: "ns", Name: "tls"}
	for _, c := range []struct {
		what, life string
		within     time.Duration
	}{
		{"the server stays silent", "", streamPatience + 5*time.Second},
		{"the server hangs up, again and again", "3", 10 * time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			inMadeUpTime(t, func(t *testing.T) {
				s := &endlessServer{fleetServer: newFleetServer(), life: c.life}
				a, err := NewAPI(APIOptions{Kubeconfig: Kubeconfig{File: kubeconfig}, Kinds: append(kinds, snapshot.Secret), Referenced: []snapshot.Kind{snapshot.Secret}})
				if err != nil {
					t.Fatal(err)
				}
				serve(t, a, s)
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = a.Run(ctx) })
				defer running.Wait()
				defer stop()
				select {
				case <-a.Synced():
				case <-time.After(c.within):
					t.Fatalf("nothing is known after %v and %d streams", c.within, s.streams.Load())
				}
				time.Sleep(time.Minute) // the watches run
				if faults := a.Snapshot().Faults; len(faults) > 0 {
					t.Errorf("faults %v", faults)
				}
				if running := s.running(); running != len(kinds) {
					t.Errorf("%d watches, want %d", running, len(kinds))
				}
				if c.life != "" {
					return
				}
				select { // nor is another kind, which is asked for later, waited for again
				case <-a.Refer(snapshot.Secret, []snapshot.Key{secret}):
				case <-time.After(5 * time.Second):
					t.Error("a Secret that was named later is not known after 5 s")
				}
				s.mu.Lock()
				s.version++ // it has forgotten what there was: all is listed anew
				s.mu.Unlock()
				s.setAway(true)
				s.setAway(false)
				time.Sleep(time.Minute)
				if running, streams := s.running(), s.streams.Load(); running != len(kinds)+1 || int(streams) != len(kinds) {
					t.Errorf("after a restart %d watches and %d streams, want %d and %d", running, streams, len(kinds)+1, len(kinds))
				}
			})
		})
	}
}
