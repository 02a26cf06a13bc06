package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

// A watch breaks if it ends with an error, or long before its time; not if its time is over,
// nor if we end it, and what is no watch does not break.
func TestAWatchBreaks(t *testing.T) {
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		switch r.URL.Path {
		case "/aborted":
			panic(http.ErrAbortHandler)
		case "/held":
			<-hold
		}
	}))
	defer server.Close()
	defer close(hold)
	for path, want := range map[string]bool{
		"/aborted?watch=true&timeoutSeconds=300": true, "/ended?watch=true&timeoutSeconds=300": true,
		"/ended?watch=true&timeoutSeconds=1": false, "/held?watch=true&timeoutSeconds=300": false, "/aborted": false,
	} {
		h, broken := newHeard(), false
		h.broke = func() { broken = true }
		ctx, stop := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.wrap(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "/held") {
			stop()
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		stop()
		if answer.Body.Close(); broken != want {
			t.Errorf("%s: broken %v, want %v", path, broken, want)
		}
	}
}
