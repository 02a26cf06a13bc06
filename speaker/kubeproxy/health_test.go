package kubeproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// As kube-proxy 1.36 writes it.
func healthOf(name string, endpoints int, healthy bool) string {
	return fmt.Sprintf(`{
	"service": {
		"namespace": "default",
		"name": %q
	},
	"localEndpoints": %d,
	"serviceProxyHealthy": %v
}`, name, endpoints, healthy)
}

func TestHealthAnswers(t *testing.T) {
	about := Service{"default", "web"}
	for _, c := range []struct {
		name   string
		status int
		body   string
		none   bool
	}{
		{"none", http.StatusServiceUnavailable, healthOf("web", 0, true), true},
		{"none, and unhealthy", http.StatusServiceUnavailable, healthOf("web", 0, false), true},
		{"two", http.StatusOK, healthOf("web", 2, true), false},
		{"two, and unhealthy", http.StatusServiceUnavailable, healthOf("web", 2, false), false},
		{"another Service", http.StatusServiceUnavailable, healthOf("shop", 0, true), false},
		{"a number is missing", http.StatusServiceUnavailable, `{"service":{"namespace":"default","name":"web"}}`, false},
		{"no JSON", http.StatusServiceUnavailable, "no healthy upstream", false},
		{"cut short", http.StatusServiceUnavailable, healthOf("web", 0, true)[:40], false},
		{"endless", http.StatusServiceUnavailable, strings.Repeat(" ", maxAnswer) + healthOf("web", 0, true), false},
		{"of a closed check", http.StatusOK, "", false},
		{"moved", http.StatusTemporaryRedirect, healthOf("web", 0, true), false},
		{"not found", http.StatusNotFound, healthOf("web", 0, true), false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		if got := NewHealth(nil).hasNone(t.Context(), netip.MustParseAddrPort(s.Listener.Addr().String()), about); got != c.none {
			t.Errorf("%s: none: %v", c.name, got)
		}
		s.Close()
	}
	if NewHealth(nil).hasNone(t.Context(), netip.MustParseAddrPort("127.0.0.1:1"), about) {
		t.Error("nobody listens, and none is said")
	}
}

func FuzzReadHealth(f *testing.F) {
	f.Add(healthOf("web", 0, true))
	f.Add(healthOf("web", 7, false))
	f.Add("{")
	f.Fuzz(func(t *testing.T, body string) {
		none, err := readHealth(strings.NewReader(body), Service{"default", "web"})
		if none && (err != nil || !strings.Contains(body, "web") && !strings.Contains(body, "\\u")) {
			t.Errorf("%q says none of default/web", body)
		}
	})
}

// What is said lasts from the first time, ends with the first other answer, and
// with the question.
func TestHealthFollowsKubeProxy(t *testing.T) {
	var endpoints, asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		n := int(endpoints.Load())
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, healthOf("web", n, true))
	}))
	defer s.Close()
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	h := NewHealth(nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	defer func() { stop(); <-done }()
	await := func(what string, want bool) time.Time {
		t.Helper()
		late := time.After(20 * time.Second)
		for {
			since, none := h.None()[at]
			if none == want {
				return since
			}
			select {
			case <-h.Watch():
			case <-late:
				t.Fatalf("%s: still %v", what, none)
			}
		}
	}
	h.Set(map[netip.AddrPort]Service{at: {"default", "web"}})
	first := await("none", true)
	for seen := asked.Load(); asked.Load() < seen+2; {
		time.Sleep(time.Millisecond)
	}
	if since := await("still none", true); !since.Equal(first) {
		t.Errorf("since %v, then %v", first, since)
	}
	endpoints.Store(1)
	await("one", false)
	endpoints.Store(0)
	if since := await("none again", true); !since.After(first) {
		t.Error("the time of before counts")
	}
	h.Set(map[netip.AddrPort]Service{})
	await("not asked", false)
}
