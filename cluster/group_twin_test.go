package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/runtime"

	"quayside.io/cluster/snapshot"
)

// sliceServer is an API server of EndpointSlices: a map, and the history of what was
// written to it, from which every watch reads.
type sliceServer struct {
	mu      sync.Mutex
	version int
	oldest  int // what came before is forgotten
	fails   int // so many requests
	objects map[snapshot.Key]*discoveryv1.EndpointSlice
	history []sliceEvent
	news    chan struct{} // closed at the next event
	hangUp  chan struct{} // closed: all watches end
	asked   []string      // lists and watches, and their selectors
}

type sliceEvent struct {
	version int
	was, is *discoveryv1.EndpointSlice // nil: there was none, there is none
}

func newSliceServer() *sliceServer {
	return &sliceServer{version: 100, objects: map[snapshot.Key]*discoveryv1.EndpointSlice{}, news: make(chan struct{}), hangUp: make(chan struct{})}
}

// write makes, changes or, without a Service, deletes a slice.
func (s *sliceServer) write(key snapshot.Key, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	e := sliceEvent{version: s.version, was: s.objects[key]}
	delete(s.objects, key)
	if service != "" {
		e.is = &discoveryv1.EndpointSlice{
			TypeMeta:   metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: strconv.Itoa(s.version), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		}
		s.objects[key] = e.is
	}
	s.history = append(s.history, e)
	close(s.news)
	s.news = make(chan struct{})
}

// breakWatches ends all watches, and may forget the history, as a server does that starts.
func (s *sliceServer) breakWatches(forgets bool, fails int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.hangUp)
	s.hangUp = make(chan struct{})
	s.fails = fails
	if forgets {
		s.oldest = s.version
	}
}

// since returns what was asked since the last call.
func (s *sliceServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	slices.Sort(asked)
	return asked
}

func (s *sliceServer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return nil, errors.New("connection refused")
	}
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: q}, nil
	}
	query := q.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	namespace := ""
	if parts := strings.Split(q.URL.Path, "/"); len(parts) > 5 {
		namespace = parts[5]
	}
	chosen := func(e *discoveryv1.EndpointSlice) bool {
		return e != nil && (namespace == "" || e.Namespace == namespace) && selector.Matches(labels.Set(e.Labels))
	}
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	var all []discoveryv1.EndpointSlice
	for _, e := range s.objects {
		if chosen(e) {
			all = append(all, *e)
		}
	}
	verb := map[bool]string{true: "watch", false: "list"}[query.Get("watch") != ""]
	s.asked = append(s.asked, strings.Join(strings.Fields(fmt.Sprint(verb, " ", namespace, " ", strings.TrimPrefix(query.Get("labelSelector"), discoveryv1.LabelServiceName))), " "))
	switch {
	case verb == "list":
		list := discoveryv1.EndpointSliceList{
			TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}, Items: all,
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(string(text))))
	case query.Get("sendInitialEvents") == "" && from < s.oldest:
		const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
		return answer(http.StatusGone, io.NopCloser(strings.NewReader(text)))
	}
	w := &sliceWatch{server: s, request: q, chosen: chosen, at: from, hangUp: s.hangUp, closed: make(chan struct{})}
	if query.Get("sendInitialEvents") != "" {
		for _, e := range all {
			w.say("ADDED", &e)
		}
		w.at = s.version
		w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return answer(http.StatusOK, w)
}

// sliceWatch is the body of a watch.
type sliceWatch struct {
	server  *sliceServer
	request *http.Request
	chosen  func(*discoveryv1.EndpointSlice) bool
	at      int // the version up to which it has told
	text    []byte
	hangUp  chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func (w *sliceWatch) say(what string, o any) {
	text, err := json.Marshal(map[string]any{"type": what, "object": o})
	if err != nil {
		panic(err)
	}
	w.text = append(append(w.text, text...), '\n')
}

func (w *sliceWatch) bookmark(annotations map[string]string) {
	w.say("BOOKMARK", &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(w.at), Annotations: annotations},
	})
}

// advance says the next event that is for this watch.
func (w *sliceWatch) advance() (news <-chan struct{}) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for _, e := range w.server.history {
		if e.version <= w.at {
			continue
		}
		w.at = e.version
		switch was, is := w.chosen(e.was), w.chosen(e.is); {
		case was && is:
			w.say("MODIFIED", e.is)
		case is:
			w.say("ADDED", e.is)
		case was: // as it was, at this version
			gone := e.was.DeepCopy()
			gone.ResourceVersion = strconv.Itoa(e.version)
			w.say("DELETED", gone)
		default:
			continue
		}
		break
	}
	return w.server.news
}

func (w *sliceWatch) Read(b []byte) (int, error) {
	for {
		if len(w.text) > 0 {
			n := copy(b, w.text)
			w.text = w.text[n:]
			return n, nil
		}
		news := w.advance()
		if len(w.text) > 0 {
			continue
		}
		select {
		case <-news:
		case <-w.hangUp:
			return 0, io.ErrUnexpectedEOF
		case <-w.closed:
			return 0, io.ErrClosedPipe
		case <-w.request.Context().Done():
			return 0, w.request.Context().Err()
		case <-time.After(time.Minute):
			w.bookmark(nil)
		}
	}
}

func (w *sliceWatch) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

// api runs an API that refers to EndpointSlices of s until the returned function.
func (s *sliceServer) api(t *testing.T) (a *API, stop func()) {
	a = remembering(t, "", func(o *APIOptions) {
		o.Kinds, o.Referenced = []snapshot.Kind{snapshot.EndpointSlice}, []snapshot.Kind{snapshot.EndpointSlice}
	})
	a.clients.http = &http.Client{Transport: s}
	for group := range a.clients.byGroup {
		var err error
		if a.clients.byGroup[group], err = a.clients.client(group); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Whatever is written, referred to and broken: in the end there is what the server has of
// the Services referred to. Until then nothing goes that was not deleted, and nothing that
// was comes back. The time is made up.
func TestGroupsFollowTheServer(t *testing.T) {
	// client-go's way to tell errors sleeps until times that are not those made up.
	handlers := runtime.ErrorHandlers
	runtime.ErrorHandlers = nil
	defer func() { runtime.ErrorHandlers = handlers }()
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for seed := range rounds {
		inMadeUpTime(t, func(t *testing.T) { followTheServer(t, uint64(seed)) })
	}
}

// pillar is a Service that is always referred to, and whose slice always exists.
func pillar(i int) snapshot.Key {
	return snapshot.Key{Namespace: fmt.Sprint("team-", i), Name: "pillar"}
}

func followTheServer(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := newSliceServer()
	service := func() string { return fmt.Sprint("web-", random.IntN(20)) }
	slice := func() snapshot.Key {
		return snapshot.Key{Namespace: fmt.Sprint("team-", random.IntN(7)), Name: fmt.Sprint("slice-", random.IntN(8))}
	}
	for i := range 7 {
		s.write(pillar(i), "pillar")
	}
	for range 40 {
		s.write(slice(), service())
	}
	a, stop := s.api(t)
	defer stop()
	watcher := &sliceWatcher{last: map[snapshot.Key]int{}, seen: map[snapshot.Key]bool{}}
	over := make(chan struct{})
	defer close(over)
	changes := a.Watch(snapshot.EndpointSlice)
	go func() {
		for {
			select {
			case <-over:
				return
			case <-changes.C():
				watcher.look(t, a.Snapshot())
			}
		}
	}()
	var wanted []snapshot.Key
	for range 60 {
		switch random.IntN(12) {
		case 0, 1, 2:
			wanted = referredTo(random, service)
			a.Refer(snapshot.EndpointSlice, wanted)
		case 3, 4, 5, 6:
			s.write(slice(), service())
		case 7, 8:
			if key := slice(); s.objects[key] != nil {
				s.write(key, "")
			}
		case 9:
			s.write(pillar(random.IntN(7)), "pillar")
		case 10:
			s.breakWatches(random.IntN(2) == 0, random.IntN(4))
		case 11:
			time.Sleep(time.Duration(random.IntN(90_000)) * time.Millisecond)
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
	}
	time.Sleep(3 * time.Minute)
	all := slices.Contains(wanted, snapshot.Key{})
	got, want := map[snapshot.Key]string{}, map[snapshot.Key]string{}
	for key, e := range a.Snapshot().EndpointSlices.All() {
		got[key] = e.ResourceVersion
	}
	for key, e := range s.objects {
		if all || slices.Contains(wanted, placeOf(e)) {
			want[key] = e.ResourceVersion
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) { // which sorts
		t.Errorf("seed %d, %d Services referred to, all %v: there is\n%v, want\n%v", seed, len(wanted), all, got, want)
	}
}

// referredTo are the pillars, and all others, many or few of them.
func referredTo(random *rand.Rand, service func() string) (keys []snapshot.Key) {
	if random.IntN(8) == 0 {
		return []snapshot.Key{{}}
	}
	for i := range 7 {
		keys = append(keys, pillar(i))
	}
	for range random.IntN(2) * random.IntN(60) {
		keys = append(keys, snapshot.Key{Namespace: fmt.Sprint("team-", random.IntN(7)), Name: service()})
	}
	return keys
}

// sliceWatcher sees every snapshot, or most.
type sliceWatcher struct {
	last map[snapshot.Key]int // the newest version of each slice
	seen map[snapshot.Key]bool
}

func (w *sliceWatcher) look(t *testing.T, c *snapshot.Cluster) {
	for key, e := range c.EndpointSlices.All() {
		version, err := strconv.Atoi(e.ResourceVersion)
		if err != nil {
			t.Error(err)
		}
		if version < w.last[key] {
			t.Errorf("%s goes from version %d back to %d", key, w.last[key], version)
		}
		w.last[key] = version
	}
	for i := range 7 {
		_, there := c.EndpointSlices.Get(pillar(i))
		if w.seen[pillar(i)] && !there {
			t.Errorf("%s is gone for a moment", pillar(i))
		}
		w.seen[pillar(i)] = there
	}
}

// Services that come are listed alone, those that go not at all, and one watch goes on
// where the last one ended.
func TestAServiceMoreIsListedAlone(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T) {
		s := newSliceServer()
		for i := range 30 {
			s.write(snapshot.Key{Namespace: "ns", Name: fmt.Sprintf("w%02d-x", i)}, fmt.Sprintf("w%02d", i))
		}
		a, stop := s.api(t)
		defer stop()
		keys := func(names ...string) (keys []snapshot.Key) {
			for _, n := range names {
				keys = append(keys, snapshot.Key{Namespace: "ns", Name: n})
			}
			return keys
		}
		for _, step := range []struct {
			refer []snapshot.Key
			want  []string // to be asked
			has   int
		}{
			{keys("w00", "w01"), []string{"watch ns in (w00,w01)"}, 2}, // which begins with what there is
			{keys("w00", "w01", "w02"), []string{"list ns =w02", "watch ns in (w00,w01,w02)"}, 3},
			{keys("w00", "w02"), []string{"watch ns in (w00,w02)"}, 2},
			{keys("w00", "w02"), nil, 2},
			{keys("w02", "w03", "w04"), []string{"list ns in (w03,w04)", "watch ns in (w02,w03,w04)"}, 3},
			{[]snapshot.Key{{}}, []string{"watch"}, 30},
		} {
			<-a.Refer(snapshot.EndpointSlice, step.refer)
			time.Sleep(time.Second)
			if asked := s.since(); !slices.Equal(asked, step.want) {
				t.Errorf("of %v: asked for %q, want %q", step.refer, asked, step.want)
			}
			if n := a.Snapshot().EndpointSlices.Len(); n != step.has {
				t.Errorf("of %v: %d slices, want %d", step.refer, n, step.has)
			}
		}
		<-a.Refer(snapshot.EndpointSlice, keys("w05", "w06"))
		time.Sleep(time.Second)
		s.since()
		s.write(snapshot.Key{Namespace: "other", Name: "x"}, "x")
		s.mu.Lock()
		s.oldest = s.version // it has forgotten what was when the watch ended, so all is listed again
		s.mu.Unlock()
		<-a.Refer(snapshot.EndpointSlice, keys("w05", "w06", "w07"))
		time.Sleep(time.Minute)
		want := []string{"list ns =w07", "list ns in (w05,w06,w07)", "watch ns in (w05,w06,w07)", "watch ns in (w05,w06,w07)"}
		if asked := s.since(); !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
	})
}
