package cluster

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What is known is as old as the last word of the API server: an answer, even one that
// refuses, or a piece of a watch, but no error of what stands before it.
func TestStaleness(t *testing.T) {
	status, more := http.StatusOK, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if r.URL.Path == "/watch" {
			for range more {
				fmt.Fprintln(w, "a bookmark")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	defer server.Close()
	defer close(more)
	h := newHeard()
	client := &http.Client{Transport: h.wrap(http.DefaultTransport)}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h.staleness())
	staleness := func() time.Duration {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "quayside_api_staleness_seconds" {
			t.Fatalf("%v, %v", families, err)
		}
		return time.Duration(families[0].GetMetric()[0].GetGauge().GetValue() * float64(time.Second))
	}
	age := func() { h.at.Store(time.Now().Add(-time.Hour).UnixNano()) }
	fresh := func(when string, want bool) {
		t.Helper()
		if got := staleness(); (got < time.Minute) != want || got < 0 {
			t.Errorf("%s: %v since the last word", when, got)
		}
	}
	fresh("at the start", true)
	age()
	fresh("an hour later", false)
	for code, want := range map[int]bool{http.StatusOK: true, http.StatusForbidden: true, http.StatusServiceUnavailable: false} {
		age()
		status = code
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		fresh(fmt.Sprint("after a ", code), want)
	}
	status = http.StatusOK
	go func() { more <- struct{}{} }() // the head comes with the first piece
	watch, err := client.Get(server.URL + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	lines := bufio.NewScanner(watch.Body)
	lines.Scan()
	age()
	more <- struct{}{}
	if lines.Scan(); lines.Text() != "a bookmark" {
		t.Fatalf("the watch says %q, %v", lines.Text(), lines.Err())
	}
	fresh("after a bookmark", true)
}
