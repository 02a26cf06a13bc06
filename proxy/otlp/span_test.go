package otlp_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/otlp"
)

func record(method, target, agent string) *otlp.Record {
	ex := &exchange.Exchange{Request: exchange.Request{
		Method: []byte(method), Protocol: "HTTP/1.1", Host: []byte("inner"), Target: []byte("/rewritten"), Path: []byte("/a"),
		Client: netip.MustParseAddrPort("192.0.2.7:0"), TLS: true,
	}}
	r := &ex.Request
	r.Asked.Host, r.Asked.Target = []byte("Shop.example:8443"), []byte(target)
	r.Header.Add("User-Agent", agent)
	r.Header.Add("tracestate", "a=b")
	ex.Response.Status = 200
	ex.Span = exchange.Span{Trace: [16]byte{1, 15: 16}, ID: [8]byte{2, 7: 8}, Parent: [8]byte{3, 7: 9}, Flags: 1}
	return &otlp.Record{
		Exchange: ex, Name: []byte("/cart"), Ended: time.Unix(1_700_000_000, 42), Took: 1500 * time.Millisecond,
		Place: accesslog.Place{Namespace: "n", Ingress: "shop", Service: "web", Path: "/cart"},
	}
}

func read(t *testing.T, message []byte) *tracepb.Span {
	t.Helper()
	s := &tracepb.Span{}
	if err := proto.Unmarshal(message, s); err != nil {
		t.Fatal(err)
	}
	if left := s.ProtoReflect().GetUnknown(); len(left) > 0 {
		t.Errorf("fields that no Span has: %x", left)
	}
	return s
}

func values(list []*commonpb.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = v.IntValue
		}
	}
	return all
}

func TestSpan(t *testing.T) {
	s := read(t, record("GET", "/cart?secret=1", "curl/8").Span())
	want := &tracepb.Span{
		TraceId: []byte{1, 15: 16}, SpanId: []byte{2, 7: 8}, ParentSpanId: []byte{3, 7: 9}, TraceState: "a=b", Name: "/cart",
		Kind: tracepb.Span_SPAN_KIND_SERVER, Flags: 0x301, StartTimeUnixNano: 1_699_999_998_500_000_042, EndTimeUnixNano: 1_700_000_000_000_000_042,
		Attributes: s.Attributes,
	}
	if !proto.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
	for what, c := range map[string]struct {
		change func(*otlp.Record)
		want   map[string]any
		error  bool
	}{
		"as it is": {func(*otlp.Record) {}, map[string]any{
			"http.request.method": "GET", "url.scheme": "https", "url.path": "/cart", "server.address": "Shop.example", "server.port": int64(8443),
			"client.address": "192.0.2.7", "network.protocol.version": "1.1", "user_agent.original": "curl/8", "http.route": "/cart",
			"k8s.namespace.name": "n", "k8s.ingress.name": "shop", "k8s.service.name": "web", "http.response.status_code": int64(200)}, false},
		"an unknown method": {func(r *otlp.Record) { r.Exchange.Request.Method = []byte("get") },
			map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "get"}, false},
		"another protocol": {func(r *otlp.Record) { r.Exchange.Request.Protocol, r.Exchange.Request.TLS = "HTTP/2.0", false },
			map[string]any{"network.protocol.version": "2", "url.scheme": "http"}, false},
		"IPv6":              {func(r *otlp.Record) { r.Exchange.Request.Asked.Host = []byte("[fd00::1]") }, map[string]any{"server.address": "fd00::1"}, false},
		"a client's fault":  {func(r *otlp.Record) { r.Exchange.Response.Status = 404 }, map[string]any{"http.response.status_code": int64(404)}, false},
		"ours":              {func(r *otlp.Record) { r.Exchange.Response.Status = 502 }, map[string]any{"http.response.status_code": int64(502), "error.type": "502"}, true},
		"an early end":      {func(r *otlp.Record) { r.Broken = true }, map[string]any{"http.response.status_code": int64(200), "error.type": "response_ended_early"}, true},
		"a name in UTF-8":   {func(r *otlp.Record) { r.Place.Path = "/grüße" }, map[string]any{"http.route": "/grüße"}, false},
		"nothing but zeros": {func(r *otlp.Record) { *r = otlp.Record{Exchange: &exchange.Exchange{}} }, map[string]any{"http.request.method": "_OTHER"}, false},
	} {
		r := record("GET", "/cart?secret=1", "curl/8")
		c.change(r)
		s := read(t, r.Span())
		is := values(s.Attributes)
		for key, value := range c.want {
			if is[key] != value {
				t.Errorf("%s: %s is %v, want %v", what, key, is[key], value)
			}
		}
		if what == "as it is" && len(is) != len(c.want) {
			t.Errorf("attributes %v, want %v", slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(c.want)))
		}
		if failed := s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR; failed != c.error || !failed && s.Status != nil {
			t.Errorf("%s: status %v", what, s.Status)
		}
	}
	root := record("GET", "/", "")
	root.Exchange.Span.Parent = [8]byte{}
	if s := read(t, root.Span()); s.Flags != 0x101 || len(s.ParentSpanId) > 0 || values(s.Attributes)["user_agent.original"] != nil {
		t.Errorf("without a parent: %v", s)
	}
}

// checkHostile puts bytes of a client everywhere: the span can be read, and is bounded.
func checkHostile(t *testing.T, method, target, value string) {
	r := record(method, target, value)
	r.Name = []byte(value)
	r.Exchange.Request.Asked.Host = []byte(value)
	r.Exchange.Request.Header.Set("tracestate", value)
	message := r.Span()
	if len(message) > 25<<10 {
		t.Fatalf("a span of %d bytes", len(message))
	}
	s := read(t, message)
	if agent := values(s.Attributes)["user_agent.original"]; value != "" && len(value) <= 1024 && utf8.ValidString(value) && agent != value {
		t.Fatalf("%q became %q", value, agent)
	}
	if path, _, _ := strings.Cut(target, "?"); len(path) <= 1024 && utf8.ValidString(path) && values(s.Attributes)["url.path"] != path {
		t.Fatalf("%q became %q", path, values(s.Attributes)["url.path"])
	}
}

func FuzzHostileBytes(f *testing.F) {
	long := strings.Repeat("\xff", 16<<10)
	for _, s := range []string{"/", "", "\x00\x7f\x80\xff", "/ü€\U0001f600", "\xed\xa0\x80", "?", long, strings.Repeat("€", 1000), strings.Repeat("x", 1023) + "€", "\xf0\x9f\x98"} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, method, target, value string) { checkHostile(t, method, target, value) })
}

func TestSpansCostNoAllocation(t *testing.T) {
	r := record("GET", "/cart?q=1", "curl/8 \"\xff")
	r.Span()
	if n := testing.AllocsPerRun(100, func() { r.Span() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRequest(t *testing.T) {
	var spans []byte
	for range 300 { // so that lengths take two and three bytes
		spans = otlp.AppendSpan(spans, record("GET", "/", "curl/8").Span())
	}
	message := otlp.AppendRequest([]byte("before"), otlp.Resource{Service: "edge", Node: "n1"}, spans)
	got := &collectorpb.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(message[len("before"):], got); err != nil {
		t.Fatal(err)
	}
	of := got.GetResourceSpans()[0]
	if is := values(of.GetResource().GetAttributes()); is["service.name"] != "edge" || is["k8s.node.name"] != "n1" || len(is) != 2 {
		t.Errorf("resource %v", is)
	}
	in := of.GetScopeSpans()[0]
	if len(in.GetSpans()) != 300 || in.GetSpans()[299].GetName() != "/cart" || in.GetScope().GetName() == "" || len(got.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("%d spans in %v", len(in.GetSpans()), in.GetScope())
	}
}

func TestRejected(t *testing.T) {
	answer := func(n int64, why string) []byte {
		b, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: why}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		answer []byte
		n      int64
		why    string
		bad    bool
	}{
		{nil, 0, "", false},
		{answer(0, ""), 0, "", false},
		{answer(7, "too old"), 7, "too old", false},
		{append(answer(7, "x"), 0x7a, 2, 1, 1), 7, "x", false}, // a field of a later version
		{answer(-1, "x"), 0, "", true},
		{answer(7, "too old")[:5], 0, "", true},
		{[]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 0, "", true},
		{[]byte{0x0b}, 0, "", true},
		{[]byte{0}, 0, "", true},
		{[]byte("hello"), 0, "", true},
	} {
		n, why, err := otlp.Rejected(c.answer)
		if n != c.n || why != c.why || (err != nil) != c.bad {
			t.Errorf("%x: %d, %q, %v, want %d, %q", c.answer, n, why, err, c.n, c.why)
		}
	}
}

// FuzzRejected: what both the generated code and ours take for an answer says the same.
func FuzzRejected(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x0a, 5, 8, 7, 0x12, 1, 'x'})
	f.Add([]byte{0x0a, 2, 8, 7, 0x0a, 0, 0x0a, 3, 0x12, 1, 'x'})
	f.Add([]byte{0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, why, err := otlp.Rejected(b)
		twin := &collectorpb.ExportTraceServiceResponse{}
		if proto.Unmarshal(b, twin) != nil || err != nil {
			return
		}
		if part := twin.GetPartialSuccess(); part.GetRejectedSpans() != n || part.GetErrorMessage() != why {
			t.Errorf("%x: %d, %q, want %v", b, n, why, part)
		}
	})
}
