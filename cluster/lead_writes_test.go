package cluster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// TestAWriteOutlivesItsLeader: the server may do what a client has given up, so a leader
// that ends waits for the answer. It begins nothing else.
func TestAWriteOutlivesItsLeader(t *testing.T) {
	for range 20 { // an answer may be as quick as the end
		ctx, end := context.WithCancel(t.Context())
		var asked atomic.Int32
		api := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			end() // while the server is about it
			w.Header().Set("Content-Type", "application/json")
			s := service("web", "8")
			s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
			_ = json.NewEncoder(w).Encode(s)
		})
		wanted := known(api)
		_ = api.UpdateStatus(ctx, wanted) // nobody shows the outcome here
		if n := len(api.Inflight()); n != 0 || asked.Load() != 1 {
			t.Fatalf("%d in doubt of %d that were sent: the leader did not wait for the answer", n, asked.Load())
		}
		if err := api.UpdateStatus(ctx, wanted); err == nil || asked.Load() != 1 {
			t.Fatalf("%d sent, %v: who leads no more has begun another", asked.Load(), err)
		}
	}
}

// known enters a Service and returns it with an address.
func known(api *API) *corev1.Service {
	have := service("web", "7")
	api.enter([]change{{apply: func(l *ledger) { l.put(have) }}})
	wanted := have.DeepCopy()
	wanted.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	return wanted
}

// TestAnUnansweredWriteKeepsTheLease: who takes a Lease that was released does not wait, so
// it is released only when nothing that was begun may still take effect.
func TestAnUnansweredWriteKeepsTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		since []time.Duration // of writes without an answer, how long ago
		holds string
	}{
		"none":            {nil, ""},
		"long ago":        {[]time.Duration{3 * WriteDeadline}, ""},
		"a moment ago":    {[]time.Duration{0}, "pod-1"},
		"one of them new": {[]time.Duration{3 * WriteDeadline, 0}, "pod-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &leaseServer{}
			api := serving(t, s.serve)
			s.api = api
			wanted := known(api)
			o := LeaseOptions{Namespace: "system", Name: "quayside-controller", Identity: "pod-1",
				Duration: time.Hour, Renew: time.Minute, Retry: time.Second}
			err := api.term(t.Context(), api.candidate(o), func(context.Context) error {
				api.mu.Lock()
				defer api.mu.Unlock()
				for _, ago := range c.since {
					api.doubts = append(api.doubts, doubt{
						id{snapshot.Service, snapshot.KeyOf(wanted)}, "7", wanted, time.Now().Add(-ago)})
				}
				return nil
			})
			if got := s.holder(); err != nil || got != c.holds {
				t.Errorf("%v; the Lease is held by %q, want %q", err, got, c.holds)
			}
		})
	}
}

// TestARenewalThatArrivesLate: the end of a term gives up the renewal that is under way, but
// the server may have it already, and takes it between what the release reads and writes.
func TestARenewalThatArrivesLate(t *testing.T) {
	s := &leaseServer{delayed: make(chan struct{})}
	api := serving(t, s.serve)
	s.api = api
	o := LeaseOptions{Namespace: "system", Name: "quayside-controller", Identity: "pod-1",
		Duration: time.Hour, Renew: time.Minute, Retry: time.Millisecond}
	err := api.term(t.Context(), api.candidate(o), func(context.Context) error {
		<-s.delayed
		return nil
	})
	if got := s.holder(); err != nil || got != "" {
		t.Errorf("%v; the Lease is held by %q, who leads no more", err, got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conflicts != 1 {
		t.Errorf("%d conflicts, want that of the renewal which came first", s.conflicts)
	}
}

// A leaseServer keeps one Lease.
type leaseServer struct {
	api       *API
	mu        sync.Mutex
	lease     *coordinationv1.Lease
	version   int
	conflicts int

	// delayed is closed when the first renewal has come, if it is to take effect after the
	// next reading only; it is late until then.
	delayed chan struct{}
	late    *coordinationv1.Lease
}

func (s *leaseServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		s.answer(w)
		if s.late != nil {
			s.put(s.late)
			s.late = nil
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	lease := &coordinationv1.Lease{}
	if err == nil {
		_, _, err = s.api.clients.codecs.UniversalDeserializer().Decode(body, nil, lease)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case r.Method == http.MethodPut && s.isDelayed():
		s.late = lease
		close(s.delayed)
		s.mu.Unlock()
		<-r.Context().Done() // who sent it waits no longer
		s.mu.Lock()
		return
	case !s.put(lease):
		s.conflicts++
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}`)
		return
	}
	s.answer(w)
}

// isDelayed reports whether a renewal is to be late, and none has come yet.
func (s *leaseServer) isDelayed() bool {
	select {
	case <-s.delayed:
		return false
	default:
		return s.delayed != nil
	}
}

// put takes a version of the Lease, unless it was made of another than the present one.
func (s *leaseServer) put(lease *coordinationv1.Lease) bool {
	present := ""
	if s.lease != nil {
		present = s.lease.ResourceVersion
	}
	if lease.ResourceVersion != present {
		return false
	}
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	s.lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	return true
}

func (s *leaseServer) answer(w http.ResponseWriter) {
	if s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		return
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}
