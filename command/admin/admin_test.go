package admin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/command/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, s *admin.Server, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestEndpoints(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "quayside_test"})
	registry.MustRegister(gauge)
	gauge.Set(42)
	s := admin.New("", registry, slog.New(slog.DiscardHandler))

	if code, body := get(t, s, "/metrics"); code != 200 || !strings.Contains(body, "quayside_test 42") {
		t.Errorf("/metrics: %d %q", code, body)
	}
	if code, body := get(t, s, "/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
	if code, body := get(t, s, "/state"); code != 200 || body != "null\n" {
		t.Errorf("/state before there is one: %d %q", code, body)
	}
	s.State(func() any { return map[string]any{"kind": "test"} })
	if code, body := get(t, s, "/state"); code != 200 || body != "{\n  \"kind\": \"test\"\n}\n" {
		t.Errorf("/state: %d %q", code, body)
	}
	s.State(func() any { return func() {} })
	if code, _ := get(t, s, "/state"); code != 500 {
		t.Errorf("/state that is no JSON: %d", code)
	}
	if code, _ := get(t, s, "/"); code != 404 {
		t.Errorf("/: %d", code)
	}
}

func TestReadyWhenEveryCheckPasses(t *testing.T) {
	s := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	one, two := errors.New("not synced"), errors.New("no table")
	s.Ready(func() error { return one })
	s.Ready(func() error { return two })
	if code, body := get(t, s, "/readyz"); code != 503 || body != "not synced\nno table\n" {
		t.Errorf("%d %q", code, body)
	}
	one = nil
	if code, body := get(t, s, "/readyz"); code != 503 || body != "no table\n" {
		t.Errorf("%d %q", code, body)
	}
	two = nil
	if code, body := get(t, s, "/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("%d %q", code, body)
	}
}

func TestRunServesUntilTheEnd(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	log := slog.New(slog.DiscardHandler)
	if err := admin.New(addr, prometheus.NewRegistry(), log).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--admin") {
		t.Errorf("an address in use: error %v, want one that says what to do", err)
	}
	probe.Close()

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.New(addr, prometheus.NewRegistry(), log).Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		r, err := client.Get("http://" + addr + "/healthz")
		if err == nil {
			body, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if string(body) != "ok\n" {
				t.Errorf("body %q", body)
			}
			break
		} else if time.Since(begin) > 30*time.Second {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
