package command

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/command/explain"
)

// A pipe that watches gets the whole screen, then what has changed, until it is
// interrupted, which is no failure; what cannot be looked at for a while is told once.
func TestStatusWatches(t *testing.T) {
	pool := explain.Pool{Name: "lan", Ranges: []string{"10.0.0.0/24"}}
	service := explain.Service{Namespace: "shop", Name: "web", Waiting: "NoPool: there is none", Created: time.Now().Add(-time.Hour)}
	var seen atomic.Pointer[explain.Report]
	seen.Store(&explain.Report{Services: []explain.Service{service}, Pools: []explain.Pool{pool}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if report := seen.Load(); report != nil {
			_ = json.NewEncoder(w).Encode(report)
			return
		}
		http.Error(w, "away", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	var out, notes terminalLess
	done := make(chan int)
	go func() {
		done <- Run(ctx, "dev", []string{"quayside", "status", "--watch", "-o", "wide", "--admin", server.Listener.Addr().String()}, &out, &notes)
	}()
	says := func(o *terminalLess, want string) {
		t.Helper()
		for begin := time.Now(); !strings.Contains(o.String(), want); time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("%q is not said:\n%s", want, o.String())
			}
		}
	}
	says(&out, "waiting")
	says(&out, "No problems.")
	service.Waiting, service.Addresses = "", []explain.Address{{IP: "10.0.0.7"}}
	seen.Store(&explain.Report{Services: []explain.Service{service}, Pools: []explain.Pool{pool}})
	says(&out, "10.0.0.7")
	seen.Store(nil)
	says(&notes, "answers 503 Service Unavailable: away")
	seen.Store(&explain.Report{Services: []explain.Service{service}, Pools: []explain.Pool{pool}, Problems: []explain.Problem{{Object: "Pool lan", Reason: "PoolFull"}}})
	says(&out, "PROBLEMS (1)")
	seen.Store(&explain.Report{Pools: []explain.Pool{pool}})
	says(&out, "no SERVICE any more")
	interrupt()
	if code := <-done; code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for heading, want := range map[string]int{"SERVICE ": 3, "POOL ": 1, "PROBLEMS ": 2, "No problems.": 2} {
		if got := strings.Count(out.String(), heading); got != want {
			t.Errorf("%q is said %d times, want %d:\n%s", heading, got, want, out.String())
		}
	}
	if n := strings.Count(notes.String(), "\n"); n != 1 {
		t.Errorf("%d notes, want one:\n%s", n, notes.String())
	}
}
