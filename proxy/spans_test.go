package proxy_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/collector"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientParent = "b7ad6b7169203331"
)

// tracing runs a proxy with a pod that says which traceparent it got, and is down for
// /down, behind a few hosts.
func tracing(t *testing.T, change func(*proxy.Options)) (*cluster.Files, *proxy.Proxy) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C = true, true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		if change != nil {
			change(o)
		}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			w.WriteHeader(500)
		}
		fmt.Fprint(w, r.Header.Get("Traceparent"))
	}))
	t.Cleanup(web.Close)
	files.Put(configMap("wide"), service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")),
		annotated("web", "a.test", map[string]string{"path": "/shop"}),
		annotated("down", "down.test", nil),
		annotated("named", "named.test", map[string]string{"opentelemetry-operation-name": "cart of $service_name"}),
		annotated("plain", "plain.test", map[string]string{"enable-opentelemetry": "false"}),
		annotated("wary", "wary.test", map[string]string{"opentelemetry-trust-incoming-span": "false"}))
	routed(t, p, "wary.test")
	return files, p
}

// collecting has spans sent to a collector, under further options, and waits until that
// is in force.
func collecting(t *testing.T, files *cluster.Files, p *proxy.Proxy, addr string, options ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	before := p.Table().Version
	files.Put(configMap("wide", append([]string{"enable-opentelemetry", "true", "otlp-collector-host", host, "otlp-collector-port", port, "otel-schedule-delay-millis", "10",
		"client-header-buffer-size", fmt.Sprint(before)}, options...)...)) // which makes it another one, and has no effect
	eventually(t, "the options are in force", func() bool { return p.Table().Version > before && p.Table().Collector != nil })
}

// traced sends a request with a mark and returns its status, its span once that has
// come, and the traceparent that the pod got.
func traced(t *testing.T, c *collector.Collector, p *proxy.Proxy, host, target string, fields ...string) (collector.Span, string) {
	t.Helper()
	return tracedVia(t, http.DefaultTransport, c, p, host, target, fields...)
}

func tracedVia(t *testing.T, via http.RoundTripper, c *collector.Collector, p *proxy.Proxy, host, target string, fields ...string) (collector.Span, string) {
	t.Helper()
	mark := fmt.Sprint("mark-", len(c.Spans()), "-", t.Name())
	_, said := askVia(t, via, bound(p, false), host, target+"\nUser-Agent: "+mark+strings.Join(append([]string{""}, fields...), "\n"))
	s := c.Wait(t, "of "+host+target, func(s collector.Span) bool { return s.Is["user_agent.original"] == mark })
	return s, said[strings.LastIndexByte(said, '\n')+1:]
}

// Each sampled request has a span, which is part of the client's where that is believed,
// and of which the pod's is part.
func TestSpans(t *testing.T) {
	files, p := tracing(t, func(o *proxy.Options) { o.NodeName = "here" })
	c := collector.Start(t, nil)
	collecting(t, files, p, c.Addr)
	names := func(s collector.Span) string {
		return "00-" + hex.EncodeToString(s.TraceId) + "-" + hex.EncodeToString(s.SpanId) + "-01"
	}
	t.Run("enable-opentelemetry", func(t *testing.T) {
		s, got := traced(t, c, p, "a.test", "POST /shop/x?secret=1")
		if got != names(s) || len(s.ParentSpanId) != 0 || s.Kind != tracepb.Span_SPAN_KIND_SERVER || s.EndTimeUnixNano < s.StartTimeUnixNano || s.Status != nil {
			t.Errorf("the pod got %s, the span is %v", got, s)
		}
		for key, want := range map[string]any{
			"http.request.method": "POST", "url.scheme": "http", "url.path": "/shop/x", "http.route": "/shop", "http.response.status_code": int64(200),
			"server.address": "a.test", "client.address": "127.0.0.1", "network.protocol.version": "1.1",
			"k8s.namespace.name": "default", "k8s.ingress.name": "web", "k8s.service.name": "web",
		} {
			if s.Is[key] != want {
				t.Errorf("%s is %v, want %v", key, s.Is[key], want)
			}
		}
		if s.GetName() != "/shop" || s.Resource["service.name"] != "quayside" || s.Resource["k8s.node.name"] != "here" {
			t.Errorf("the span is %s of %v", s.GetName(), s.Resource)
		}
		if s, _ := traced(t, c, p, "down.test", "/down", sampled); s.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.Is["error.type"] != "500" {
			t.Errorf("of a failure: %v", s)
		}
		if s, got := tracedVia(t, unencryptedHTTP2(t), c, p, "a.test", "/shop"); s.Is["network.protocol.version"] != "2" || got != names(s) {
			t.Errorf("over HTTP/2: %v", s)
		}
	})
	t.Run("opentelemetry-trust-incoming-span", func(t *testing.T) {
		if s, got := traced(t, c, p, "a.test", "/shop", sampled); got != names(s) || hex.EncodeToString(s.TraceId) != clientTrace || hex.EncodeToString(s.ParentSpanId) != clientParent {
			t.Errorf("the client is believed, and the span is %v, the pod got %s", s, got)
		}
		if s, got := traced(t, c, p, "wary.test", "/", sampled); got != names(s) || hex.EncodeToString(s.TraceId) == clientTrace || len(s.ParentSpanId) > 0 {
			t.Errorf("the client is not believed, and the span is %v, the pod got %s", s, got)
		}
	})
	t.Run("opentelemetry-operation-name", func(t *testing.T) {
		if s, _ := traced(t, c, p, "named.test", "/"); s.GetName() != "cart of web" {
			t.Errorf("an annotation gives %q", s.GetName())
		}
		collecting(t, files, p, c.Addr, "opentelemetry-operation-name", "$request_method ${uri}", "otel-service-name", "edge")
		if s, _ := traced(t, c, p, "a.test", "/shop/%C3%BC"); s.GetName() != "GET /shop/ü" || s.Resource["service.name"] != "edge" {
			t.Errorf("the ConfigMap gives %q of %v", s.GetName(), s.Resource)
		}
		if s, _ := traced(t, c, p, "named.test", "/"); s.GetName() != "cart of web" {
			t.Errorf("an annotation under it gives %q", s.GetName())
		}
		collecting(t, files, p, c.Addr, "opentelemetry-operation-name", "$nobody_knows")
		if s, _ := traced(t, c, p, "a.test", "/shop"); s.GetName() != "/shop" || !strings.Contains(fmt.Sprint(p.Table().Problems), "opentelemetry-operation-name") {
			t.Errorf("what means nothing gives %q", s.GetName())
		}
	})
}

// sampled says that the client's own span is.
const sampled = "Traceparent: 00-" + clientTrace + "-" + clientParent + "-01"

// Of requests that are not sampled nobody tells; who is sampled comes after them.
func TestSpansOfNobody(t *testing.T) {
	files, p := tracing(t, nil)
	c := collector.Start(t, nil)
	for i, k := range []struct {
		key, host string
		options   []string
		request   string
		got       string // what the pod gets ends like this
	}{
		{"otel-sampler", "a.test", []string{"otel-sampler", "AlwaysOff"}, "/shop", "-00"},
		{"otel-sampler-ratio", "a.test", []string{"otel-sampler", "TraceIdRatioBased", "otel-sampler-ratio", "0"}, "/shop", "-00"},
		{"otel-sampler-parent-based", "a.test", []string{"otel-sampler", "AlwaysOff", "otel-sampler-parent-based", "false"}, "/shop\n" + sampled, "-00"},
		{"otel-sampler-parent-based", "a.test", nil, "/shop\n" + strings.TrimSuffix(sampled, "1") + "0", clientParent + "-00"},
		{"enable-opentelemetry", "plain.test", nil, "/", ""},
	} {
		t.Run(k.key, func(t *testing.T) {
			collecting(t, files, p, c.Addr, k.options...)
			agent := fmt.Sprint("nobody-", i)
			_, said := ask(t, bound(p, false), k.host, k.request+"\nUser-Agent: "+agent)
			if !strings.HasSuffix(said, k.got) {
				t.Errorf("the pod got %s", said)
			}
			collecting(t, files, p, c.Addr)
			traced(t, c, p, "a.test", "/shop")
			for _, s := range c.Spans() {
				if s.Is["user_agent.original"] == agent {
					t.Errorf("a span: %v", s)
				}
			}
		})
	}
}

// Spans wait for as many others, and as long, as the options say; and no longer than the
// proxy lives.
func TestSpansTravelTogether(t *testing.T) {
	c := collector.Start(t, nil)
	t.Run("otel-max-export-batch-size", func(t *testing.T) {
		files, p := tracing(t, nil)
		collecting(t, files, p, c.Addr, "otel-schedule-delay-millis", "600000", "otel-max-export-batch-size", "2")
		for range 3 {
			ask(t, bound(p, false), "a.test", "/shop")
		}
		eventually(t, "a batch is full", func() bool { return len(c.Spans()) == 2 })
		collecting(t, files, p, c.Addr, "otel-schedule-delay-millis", "1")
		eventually(t, "what waits does not wait longer than the option says now", func() bool { return len(c.Spans()) == 3 })
		collecting(t, files, p, c.Addr, "otel-schedule-delay-millis", "600000")
		ask(t, bound(p, false), "a.test", "/shop")
	})
	if n := len(c.Spans()); n != 4 {
		t.Errorf("when the proxy has ended there are %d spans, want 4", n)
	}
}

// Whatever the collector does, requests are served; what it does not take is counted.
func TestCollectorsThatFail(t *testing.T) {
	registry := prometheus.NewRegistry()
	files, p := tracing(t, func(o *proxy.Options) { o.Registerer, o.FirstPause = registry, 10*time.Millisecond })
	count := func(result string) (n float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "quayside_http_spans_total" && m.GetLabel()[0].GetValue() == result {
					n = m.GetCounter().GetValue()
				}
			}
		}
		return n
	}
	away := httptest.NewUnstartedServer(nil)
	away.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.Close()
		}
	}
	away.Start()
	defer away.Close()
	addr := away.Listener.Addr().String()
	t.Run("otel-max-queuesize", func(t *testing.T) {
		collecting(t, files, p, addr, "otel-max-queuesize", "3")
		for range 20 {
			if status, _ := ask(t, bound(p, false), "a.test", "/shop"); status != 200 {
				t.Fatalf("a request is answered %d", status)
			}
		}
		if n := count("dropped"); n < 10 || n > 17 {
			t.Errorf("%v of 20 spans are dropped, want those but 3 that wait and 3 that travel", n)
		}
	})
	c := collector.Start(t, nil)
	collecting(t, files, p, c.Addr)
	eventually(t, "what waited has come", func() bool {
		return count("dropped")+count("exported") == 20 && len(c.Spans()) == int(count("exported"))
	})
	traced(t, c, p, "a.test", "/shop")
	if n := count("failed"); n != 0 {
		t.Errorf("%v failed", n)
	}
	for key, bad := range map[string]string{
		"otlp-collector-host": "http://c:4317", "otlp-collector-port": "70000", "otel-max-queuesize": "0", "otel-schedule-delay-millis": "5s",
		"otel-max-export-batch-size": "-1", "otel-service-name": strings.Repeat("x", 256),
	} {
		files.Put(configMap("wide", "enable-opentelemetry", "true", key, bad))
		eventually(t, "what is not understood is told of "+key, func() bool { return strings.Contains(fmt.Sprint(p.Table().Problems), key) })
	}
}

// The collector may be a Service of the cluster, and another one at any time, and not a
// request notices.
func TestCollectorsChangeUnderLoad(t *testing.T) {
	files, p := tracing(t, nil)
	one, two := collector.Start(t, nil), collector.Start(t, nil)
	for name, c := range map[string]*collector.Collector{"one": one, "two": two} {
		files.Put(service(name, corev1.ServicePort{Port: 4317}), slice(name, "", c.Addr))
	}
	files.Put(annotated("any", "", nil))
	eventually(t, "all hosts are served", func() bool { code, _ := get(t, bound(p, false), "any.test", "/"); return code == 200 })
	var sent atomic.Int64
	stop := hammer(t, bound(p, false), 4, &sent)
	for range 5 {
		for name, c := range map[string]*collector.Collector{"one": one, "two": two} {
			before := len(c.Spans())
			collecting(t, files, p, name+".default.svc:4317")
			eventually(t, "spans come to "+name, func() bool { return len(c.Spans()) > before })
		}
		version := p.Table().Version
		files.Put(configMap("wide"))
		eventually(t, "nobody is told", func() bool { return p.Table().Version > version })
	}
	stop()
}
