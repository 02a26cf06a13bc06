package kubeproxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// As kube-proxy 1.36 writes them.
const (
	other  = "# HELP kubeproxy_network_programming_duration_seconds [ALPHA] In Cluster Network Programming Latency in seconds\nprocess_start_time_seconds 1.76e+09\n"
	dueV4  = `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.7637546e+09` + "\n"
	dueV6  = `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 1.7637546e+09` + "\n"
	doneV4 = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7637547e+09` + "\n"
	doneV6 = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 1.7637547e+09` + "\n"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, page string
		caughtUp   bool
	}{
		{"nothing yet", other, false},
		{"both families due", other + dueV4 + dueV6, false},
		{"one of two done", dueV4 + dueV6 + doneV4, false},
		{"the other of two done", dueV4 + dueV6 + doneV6, false},
		{"both done", dueV4 + dueV6 + doneV4 + doneV6, true},
		{"one family only", dueV4 + doneV4 + other, true},
		{"an older version at first", "kubeproxy_sync_proxy_rules_last_timestamp_seconds 0\n", false},
		{"an older version", "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds 1.7e+09\nkubeproxy_sync_proxy_rules_last_timestamp_seconds 1.7e+09\n", true},
	} {
		if why, err := read(strings.NewReader(c.page)); err != nil || (why == "") != c.caughtUp {
			t.Errorf("%s: %q, %v", c.name, why, err)
		}
	}
}

// fake is a kube-proxy that can be told what to answer.
type fake struct {
	mu     sync.Mutex
	status int
	page   string
	asked  atomic.Int64
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path != "/metrics" {
		f.status = http.StatusNotFound
	}
	w.WriteHeader(f.status)
	fmt.Fprint(w, f.page)
}

func (f *fake) answer(status int, page string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.page = status, page
}

func start(t *testing.T, o Options) *Watcher {
	t.Helper()
	w := New(o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// heard waits until the watcher says that nothing is to be waited for.
func heard(t *testing.T, w *Watcher) {
	t.Helper()
	select {
	case <-w.Watch():
	case <-time.After(30 * time.Second):
		t.Fatalf("still behind: %s", w.Behind())
	}
	if why := w.Behind(); why != "" {
		t.Errorf("told, but still behind: %s", why)
	}
}

func TestWaitsForTheFirstRules(t *testing.T) {
	f := &fake{}
	f.answer(http.StatusOK, other)
	s := httptest.NewServer(f)
	defer s.Close()
	w := New(Options{Address: s.Listener.Addr().String()})
	if w.Behind() == "" {
		t.Error("caught up before anybody was asked")
	}
	w = start(t, Options{Address: s.Listener.Addr().String(), every: time.Millisecond, lateAfter: time.Millisecond})
	select {
	case <-w.Watch():
		if why := w.Late(); why == "" || why != w.Behind() {
			t.Errorf("late because of %q, behind because of %q", why, w.Behind())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nobody told that it is late")
	}
	for _, page := range []string{dueV4 + dueV6, dueV4 + dueV6 + doneV4} {
		f.answer(http.StatusOK, page)
		for seen := f.asked.Load(); f.asked.Load() < seen+3; {
			time.Sleep(time.Millisecond)
		}
		if why := w.Behind(); !strings.Contains(why, s.URL+"/metrics") || !strings.Contains(why, gaugeDone) {
			t.Errorf("with %q: %q names neither who was asked nor what is missing", page, why)
		}
	}
	f.answer(http.StatusOK, dueV4+dueV6+doneV4+doneV6)
	heard(t, w)
	if why := w.Late(); why != "" {
		t.Errorf("still late: %s", why)
	}
	asked := f.asked.Load()
	time.Sleep(20 * time.Millisecond)
	if again := f.asked.Load(); again != asked {
		t.Errorf("asked %d more times after it had caught up", again-asked)
	}
}

func TestTheUsualStartAsksOnce(t *testing.T) {
	f := &fake{}
	f.answer(http.StatusOK, other+dueV4+doneV4)
	s := httptest.NewServer(f)
	defer s.Close()
	heard(t, start(t, Options{Address: s.Listener.Addr().String()}))
	if n := f.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestLocalhostIsEitherLoopback(t *testing.T) {
	for _, loopback := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", loopback)
		if err != nil {
			t.Skipf("this machine cannot listen on %s: %v", loopback, err)
		}
		f := &fake{}
		f.answer(http.StatusOK, dueV4+doneV4)
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
		s.Start()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		heard(t, start(t, Options{Address: "localhost:" + port}))
		if f.asked.Load() != 1 {
			t.Errorf("%s was asked %d times", loopback, f.asked.Load())
		}
		s.Close()
	}
}

// Waiting ends, whoever answers or not.
func TestPatienceEnds(t *testing.T) {
	late := &fake{}
	late.answer(http.StatusOK, dueV4)
	blind := &fake{}
	blind.answer(http.StatusNotFound, "")
	servers := map[*fake]string{}
	for _, f := range []*fake{late, blind} {
		s := httptest.NewServer(f)
		defer s.Close()
		servers[f] = s.Listener.Addr().String()
	}
	gone := httptest.NewServer(late)
	gone.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // as a kube-proxy that is starved or stopped
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	const short, never = 200 * time.Millisecond, time.Hour
	for _, c := range []struct {
		name, address            string
		patience, patienceAbsent time.Duration
		atLeast                  time.Duration
	}{
		{"nobody listens", gone.Listener.Addr().String(), never, short, short},
		{"it answers, but never writes a rule", servers[late], short, never, short},
		{"it answers, and is not absent", servers[late], 2 * short, short, 2 * short},
		{"it listens, and says nothing", mute.Addr().String(), short, never, short},
		{"it does not know the question", servers[blind], never, never, 0},
		{"the address is none", "nowhere:port", never, never, 0},
	} {
		began := time.Now()
		heard(t, start(t, Options{Address: c.address, every: 5 * time.Millisecond, patience: c.patience, patienceAbsent: c.patienceAbsent}))
		if took := time.Since(began); took < c.atLeast {
			t.Errorf("%s: waited %v, want %v at least", c.name, took, c.atLeast)
		}
	}
	if why := start(t, Options{}).Behind(); why != "" {
		t.Errorf("no kube-proxy is meant: %s", why)
	}
}

// Where there is no kube-proxy, nobody is bothered with it.
func TestAnAbsentOneIsNotLate(t *testing.T) {
	w := start(t, Options{Address: "127.0.0.1:1", every: time.Millisecond, lateAfter: 10 * time.Millisecond, patienceAbsent: 100 * time.Millisecond})
	for w.Behind() != "" {
		if why := w.Late(); why != "" {
			t.Fatalf("told: %s", why)
		}
		time.Sleep(time.Millisecond)
	}
}
