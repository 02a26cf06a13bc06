package dispatch_test

import (
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
)

// spanSink keeps what was recorded, or the number alone.
type spanSink struct {
	t     *testing.T
	count bool
	n     int
	spans []*tracepb.Span
}

func (l *spanSink) Span(message []byte) {
	if l.n++; l.count {
		return
	}
	s := &tracepb.Span{}
	if err := proto.Unmarshal(message, s); err != nil {
		l.t.Error(err)
	}
	l.spans = append(l.spans, s)
}

func traced(sampler string) map[string]string {
	return map[string]string{"enable-opentelemetry": "true", "otlp-collector-host": "c", "otel-sampler": sampler, "opentelemetry-operation-name": "$request_method of $service_name"}
}

// Each exchange of a traced route is told of once, whatever became of it.
func TestWhatIsRecorded(t *testing.T) {
	sink := &spanSink{t: t}
	d := dispatch.New(dispatch.Options{Spans: sink})
	var sent string
	d.SetTable(tableWith(nil, traced("AlwaysOn")), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		sent = string(ex.Request.Header.Get("traceparent"))
		if string(ex.Request.Target) == "/panic" {
			panic("no")
		}
		ex.Answer(200, "ok")
	})})
	var ex exchange.Exchange
	askFor(d, &ex, "a", "/a?b")
	askFor(d, &ex, "a", "/panic")
	askFor(d, &ex, "b", "/b")
	ex.Reset()
	ex.Answer(400, "malformed")
	d.Handle(&ex)
	ex.Observer.Finished(&ex, false)
	if len(sink.spans) != 2 {
		t.Fatalf("%d spans, want those of /a and /panic: %v", len(sink.spans), sink.spans)
	}
	for i, failed := range []bool{false, true} {
		if s := sink.spans[i]; s.Name != "GET of web" || (s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR) != failed || s.StartTimeUnixNano > s.EndTimeUnixNano {
			t.Errorf("%v, want an error: %v", s, failed)
		}
	}
	if last := sink.spans[1]; !strings.Contains(sent, "-"+hexOf(last.SpanId)+"-01") || !strings.Contains(sent, hexOf(last.TraceId)) {
		t.Errorf("the upstream was sent %s, and the span is %v", sent, last)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

// The span of a tunnel comes at its end, though nothing is logged, and once.
func TestTunnelsAreRecordedAtTheirEnd(t *testing.T) {
	sink := &spanSink{t: t}
	d := dispatch.New(dispatch.Options{Spans: sink})
	d.SetTable(tableWith(nil, traced("AlwaysOn")), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Upgraded = 101, func(c io.ReadWriteCloser) { io.WriteString(c, "hello") }
	})})
	var ex exchange.Exchange
	askFor(d, &ex, "a", "/socket")
	open, body := ex.Response.Upgraded, ex.Response.Body
	if len(sink.spans) != 0 {
		t.Fatalf("recorded before it began: %v", sink.spans)
	}
	ex.Reset()
	open(nothing{})
	body.Close()
	if len(sink.spans) != 1 || sink.spans[0].Name != "GET of web" {
		t.Errorf("%v", sink.spans)
	}
}

// Who is not sampled costs no allocation, and who is no more than what the name of the
// span is made of.
func TestSpansAllocateNothing(t *testing.T) {
	for _, c := range []struct {
		sampler string
		spans   bool
		most    float64
	}{{"AlwaysOff", false, 0}, {"AlwaysOn", true, 2}} {
		sink := &spanSink{t: t, count: true}
		d := dispatch.New(dispatch.Options{Spans: sink})
		d.SetTable(tableWith(nil, traced(c.sampler)), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })})
		var ex exchange.Exchange
		method, host, target := []byte("GET"), []byte("a"), []byte("/a?b=c")
		ask := func() {
			ex.Reset()
			r := &ex.Request
			r.Method, r.Host, r.Target, r.Path, r.Protocol = method, host, target, target[:2], "HTTP/1.1"
			r.Client, r.Received = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 5), time.Unix(1000, 0)
			d.Handle(&ex)
			ex.Observer.Finished(&ex, false)
		}
		for range 3 {
			ask()
		}
		if n := testing.AllocsPerRun(100, ask); n > c.most && !racing {
			t.Errorf("%s: %v allocations", c.sampler, n)
		}
		if (sink.n > 0) != c.spans {
			t.Errorf("%s: %d spans", c.sampler, sink.n)
		}
	}
}
