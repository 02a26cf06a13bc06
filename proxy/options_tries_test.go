package proxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/collector"
)

// TestTriesOverHTTP: of four endpoints, all of which refuse, as many are asked as the
// options allow.
func TestTriesOverHTTP(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	var asked atomic.Int64
	var pods []string
	for range 4 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Query().Has("slow") {
				time.Sleep(600 * time.Millisecond)
			}
			w.WriteHeader(503)
		}))
		t.Cleanup(s.Close)
		pods = append(pods, strings.TrimPrefix(s.URL, "http://"))
	}
	files.Put(podsOf("web", pods...)...)
	next := func(more ...string) map[string]string {
		all := map[string]string{"proxy-next-upstream": "http_503"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	files.Put(configMap("wide"), service("web", corev1.ServicePort{Port: 80}), annotated("plain", "plain.test", nil),
		annotated("two", "two.test", next("proxy-next-upstream-tries", "2")),
		annotated("all", "all.test", next("proxy-next-upstream-tries", "0")),
		annotated("short", "short.test", next("proxy-next-upstream-tries", "0", "proxy-next-upstream-timeout", "1")))
	for _, k := range []struct {
		key, host, target string
		wide              []string
		want              int64
	}{
		{"proxy-next-upstream-tries", "two.test", "/", nil, 2},
		{"proxy-next-upstream-tries", "all.test", "/", nil, 4},
		{"proxy-next-upstream-tries", "plain.test", "/", []string{"proxy-next-upstream", "http_503", "proxy-next-upstream-tries", "2"}, 2},
		{"proxy-next-upstream-timeout", "short.test", "/?slow", nil, 2}, // the second begins after 0.6 s, and no third after 1.2
		{"proxy-next-upstream-timeout", "plain.test", "/?slow", []string{"proxy-next-upstream", "http_503", "proxy-next-upstream-tries", "0", "proxy-next-upstream-timeout", "1"}, 2},
	} {
		t.Run(k.key, func(t *testing.T) {
			files.Put(configMap("wide", k.wide...))
			eventually(t, k.host+k.target+" asks as many endpoints as that allows", func() bool {
				asked.Store(0)
				status, _ := get(t, bound(p, false), k.host, k.target)
				return status == 503 && asked.Load() == k.want
			})
		})
	}
}

// TestCollectorOptions: where spans go, after which time, and under which name.
func TestCollectorOptions(t *testing.T) {
	files, p := tracing(t, nil)
	c := collector.Start(t, nil)
	t.Run("otlp-collector-host", func(t *testing.T) {
		_, port, err := net.SplitHostPort(c.Addr)
		if err != nil {
			t.Fatal(err)
		}
		before := p.Table().Version
		files.Put(configMap("wide", "enable-opentelemetry", "true", "otlp-collector-port", port))
		eventually(t, "the options are in force", func() bool { return p.Table().Version > before })
		if _, said := get(t, bound(p, false), "a.test", "/shop"); !strings.HasPrefix(said, "00-") || p.Table().Collector != nil {
			t.Errorf("without a host there is a collector, or no traceparent: %s", said)
		}
		collecting(t, files, p, c.Addr)
		traced(t, c, p, "a.test", "/shop")
		if n := len(c.Spans()); n != 1 {
			t.Errorf("%d spans came, want that of the second request alone", n)
		}
	})
	t.Run("otlp-collector-port", func(t *testing.T) {
		other := collector.Start(t, nil)
		collecting(t, files, p, other.Addr)
		traced(t, other, p, "a.test", "/shop")
	})
	t.Run("otel-service-name", func(t *testing.T) {
		collecting(t, files, p, c.Addr, "otel-service-name", "harbour")
		if s, _ := traced(t, c, p, "a.test", "/shop"); s.Resource["service.name"] != "harbour" {
			t.Errorf("the span is of %v", s.Resource)
		}
	})
	t.Run("otel-schedule-delay-millis", func(t *testing.T) {
		collecting(t, files, p, c.Addr, "otel-schedule-delay-millis", "700")
		began := time.Now()
		traced(t, c, p, "a.test", "/shop")
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("a span waited %v for others, want 700 ms", took)
		}
	})
}
