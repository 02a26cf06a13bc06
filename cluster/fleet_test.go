package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// fleetEnv is how many processes the simulated fleets have: more than the few that each run of
// the tests can afford.
const fleetEnv = "QUAYSIDE_TEST_FLEET"

// fleetServer is an API server that counts what a fleet asks, and that keeps no objects: what
// is written is told to the writer alone. While it is away, connections are refused, save
// those of writes, which break: then nobody knows what has become of them. One that has
// forgotten knows no version from before.
type fleetServer struct {
	kinds map[string]string // by the name of the resource

	mu       sync.Mutex
	away     chan struct{} // closed: it is
	version  int
	began    time.Time // of perSecond
	requests map[int]int
	writes   int // of these
	written  int // ever
	watches  int // that run

	wanted, ready func() int // speakers, as the status of their DaemonSet says
}

func newFleetServer() *fleetServer {
	s := &fleetServer{kinds: map[string]string{}, away: make(chan struct{}), version: 7, began: time.Now(), requests: map[int]int{}}
	for _, r := range resources() {
		s.kinds[r.Name] = reflect.TypeOf(r.New()).Elem().Name()
	}
	return s
}

// serve makes s the server of a.
func serve(t *testing.T, a *API, s http.RoundTripper) {
	a.clients.http = &http.Client{Transport: a.clients.heard.wrap(s)}
	for group := range a.clients.byGroup {
		var err error
		if a.clients.byGroup[group], err = a.clients.client(group); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *fleetServer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[int(time.Since(s.began)/time.Second)]++
	resource, name := path.Split(q.URL.Path)
	named := q.Method != http.MethodGet || path.Base(resource) == "speakerstatuses"
	if named {
		s.writes++ // or a question what has become of one
	}
	select {
	case <-s.away:
		if q.Method == http.MethodPatch {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}
	default:
	}
	answer := func(code int, body io.ReadCloser) *http.Response {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: q}
	}
	if named {
		switch q.Method {
		case http.MethodPatch:
			name = path.Base(resource)
		case http.MethodPost:
			var made metav1.PartialObjectMetadata
			if err := json.NewDecoder(q.Body).Decode(&made); err != nil {
				return nil, err
			}
			name = made.Name
		}
		s.written++
		text := fmt.Sprintf(`{"kind":"SpeakerStatus","apiVersion":"quayside.io/v1alpha1","metadata":{"name":%q,"resourceVersion":"%d"}}`, name, s.version+s.written)
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(text))), nil
	}
	if path.Base(resource) == "daemonsets" {
		text := fmt.Sprintf(`{"status":{"desiredNumberScheduled":%d,"numberReady":%d}}`, s.wanted(), s.ready())
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(text))), nil
	}
	query, version := q.URL.Query(), strconv.Itoa(s.version)
	kind, of := s.kinds[path.Base(q.URL.Path)], apiVersionOf(q.URL.Path)
	switch from := query.Get("resourceVersion"); {
	case query.Get("watch") == "":
		text := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[]}`, kind+"List", of, version)
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(text))), nil
	case query.Get("sendInitialEvents") != "":
		text := fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`, kind, of, version)
		return answer(http.StatusOK, s.watch(q, text+"\n")), nil
	case from != version:
		const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
		return answer(http.StatusGone, io.NopCloser(strings.NewReader(text))), nil
	}
	return answer(http.StatusOK, s.watch(q, "")), nil
}

// apiVersionOf is that of the resource which a path names.
func apiVersionOf(p string) string {
	parts := strings.Split(p, "/")
	if parts[1] == "api" {
		return parts[2]
	}
	return parts[2] + "/" + parts[3]
}

// watch is the body of a watch, which begins with a text; the lock is held.
func (s *fleetServer) watch(q *http.Request, begins string) io.ReadCloser {
	s.watches++
	life, _ := strconv.Atoi(q.URL.Query().Get("timeoutSeconds"))
	return &fleetWatch{Reader: strings.NewReader(begins), server: s, ctx: q.Context(), away: s.away, closed: make(chan struct{}), over: time.NewTimer(time.Duration(life) * time.Second)}
}

// fleetWatch is one that runs until its time is over, or the server goes away.
type fleetWatch struct {
	*strings.Reader
	server       *fleetServer
	ctx          context.Context
	away, closed chan struct{}
	over         *time.Timer
	once         sync.Once
}

func (w *fleetWatch) Read(b []byte) (int, error) {
	if w.Len() > 0 {
		return w.Reader.Read(b)
	}
	select {
	case <-w.away:
		return 0, io.ErrUnexpectedEOF
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	case <-w.over.C:
		return 0, io.EOF
	case <-w.closed:
		return 0, io.ErrClosedPipe
	}
}

func (w *fleetWatch) Close() error {
	w.once.Do(func() {
		w.over.Stop()
		close(w.closed)
		w.server.mu.Lock()
		w.server.watches--
		w.server.mu.Unlock()
	})
	return nil
}

// setAway makes the server go away, or come back.
func (s *fleetServer) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if away {
		close(s.away)
	} else {
		s.away = make(chan struct{})
	}
}

// since returns the requests in the busiest second since the last call, of all, and those
// about writes.
func (s *fleetServer) since() (busiest, all, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.requests {
		busiest, all = max(busiest, n), all+n
	}
	writes = s.writes
	s.began, s.requests, s.writes = time.Now(), map[int]int{}, 0
	return busiest, all, writes
}

func (s *fleetServer) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// watching is how many watches a speaker of the fleet has: of eight kinds, its own Node,
// and the endpoints of Services in more namespaces than have watches of their own: two of
// these have, and the others share one.
const watching = 8 + 1 + 3

// speaker is the connection to s of one speaker, as command and package speaker have it.
func (s *fleetServer) speaker(t *testing.T, kubeconfig string, i, fleet int, change ...func(*APIOptions)) *API {
	options := APIOptions{
		Kubeconfig: Kubeconfig{File: kubeconfig}, Component: "speaker", Instance: "i", OnEveryNode: true,
		Kinds: []snapshot.Kind{
			snapshot.Service, snapshot.EndpointSlice, snapshot.Node, snapshot.IPAddressPool, snapshot.L2Advertisement, snapshot.SpeakerStatus,
			snapshot.BGPAdvertisement, snapshot.BGPPeer, snapshot.Community, snapshot.BFDProfile, snapshot.Secret,
		},
		Referenced: []snapshot.Kind{snapshot.Secret, snapshot.EndpointSlice, snapshot.Node},
	}
	for _, c := range change {
		c(&options)
	}
	a, err := NewAPI(options)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, a, s)
	a.gate.fleet = func() int { // it sees no Nodes here
		if IsClosed(a.Synced()) {
			return fleet
		}
		return max(1, a.processes())
	}
	a.Refer(snapshot.Node, []snapshot.Key{{Name: fmt.Sprintf("node-%d", i)}})
	a.Refer(snapshot.EndpointSlice, referred())
	return a
}

// write writes the status of a speaker, as often as it is told to, and again after two
// seconds until it succeeds.
func (a *API) write(ctx context.Context, node string, told <-chan int64, wrote func()) {
	for count := range told {
		for ctx.Err() == nil {
			status := &v1alpha1.SpeakerStatus{}
			if have, ok := a.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: node}); ok {
				status = have.DeepCopy()
			}
			status.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("SpeakerStatus"))
			status.Name, status.Status.AnnouncingCount = node, count
			if a.UpdateStatus(ctx, status) == nil {
				wrote()
				break
			}
			time.Sleep(2 * time.Second)
		}
	}
}

// A fleet of speakers, each with client-go and what stands before it, loses its API server,
// which comes back a minute later, and remembers or has forgotten what they knew. Each
// has a status to write meanwhile. They ask at a rate that it can bear, all is watched again,
// and all is written. The time is made up, so what is
// counted does not depend on this machine; run it with QUAYSIDE_TEST_FLEET=5000 for a large
// fleet.
func TestAFleetAndItsServer(t *testing.T) {
	fleet := fleetSize(t, 60)
	kubeconfig := kubeconfigFor(t, "http://fleet")
	inMadeUpTime(t, func(t *testing.T) {
		s := newFleetServer()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var tell []chan int64
		var wrote atomic.Int64
		for i := range fleet {
			a, told := s.speaker(t, kubeconfig, i, fleet), make(chan int64, 1)
			tell = append(tell, told)
			running.Go(func() { _ = a.Run(ctx) })
			running.Go(func() { a.write(ctx, fmt.Sprintf("node-%d", i), told, func() { wrote.Add(1) }) })
			time.Sleep(5 * time.Millisecond) // they do not start at once
		}
		s.complete(t, fleet, "after the start")
		s.since()
		time.Sleep(5 * time.Minute)
		busiest, all, _ := s.since()
		t.Logf("%d speakers, %d watches each: %d requests in the busiest second of rest, %.0f a second", fleet, watching, busiest, float64(all)/300)
		for i, forgets := range []bool{false, true} {
			s.setAway(true)
			for _, told := range tell { // each has something to write, and says so as long as it lasts
				told <- int64(i + 1)
			}
			time.Sleep(time.Minute)
			lost, tries, writes := s.since()
			if forgets {
				s.version++
			}
			s.setAway(false)
			took := s.complete(t, fleet, "after an outage")
			time.Sleep(time.Minute)
			back, all, more := s.since()
			t.Logf("the server, which has forgotten: %v, is away for a minute: %d requests in the busiest second, %.0f a second, %d about writes; it is back: %d in the busiest, %d in all, %d about writes, and everything is watched %v later",
				forgets, lost, float64(tries)/60, writes, back, all, more, took.Round(100*time.Millisecond))
			if most := 500; lost > most || back > most {
				t.Errorf("%d requests in a second while the server was away, %d when it was back, want %d at most", lost, back, most)
			}
			// One asks for all: no process more than one request in a while, a write or not.
			if most := 3 * max(fleet*int(time.Minute/lastDelay), 1); tries > most {
				t.Errorf("%d requests in a minute without a server, want %d at most", tries, most)
			}
			if n := int(wrote.Swap(0)); n != fleet {
				t.Errorf("%d of %d statuses have been written", n, fleet)
			}
		}
		stop()
		for _, told := range tell {
			close(told)
		}
		running.Wait()
	})
}

// complete waits until all that the fleet wants is watched.
func (s *fleetServer) complete(t *testing.T, fleet int, when string) (took time.Duration) {
	t.Helper()
	began := time.Now()
	for s.running() != fleet*watching {
		if took = time.Since(began); took > time.Hour {
			t.Fatalf("%s %d of %d watches run after %v", when, s.running(), fleet*watching, took)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}
