package filter

import (
	"cmp"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
)

const (
	sampledTrace   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampledTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// traced returns what the backend gets of a request with these fields.
func traced(t Trace, random [2]uint64, fields ...string) *exchange.Request {
	var ex exchange.Exchange
	ex.Request.Random = random
	for i := 0; i < len(fields); i += 2 {
		ex.Request.Header.Add(fields[i], fields[i+1])
	}
	Compile(&Settings{Trace: &t}, Host{}, Tools{}).Request(&ex)
	return &ex.Request
}

// What may be believed is passed on, everything else is replaced, with its tracestate.
func TestTrace(t *testing.T) {
	const parent = "0000000000000005"
	begun := "00-00000000000000040000000000000002-" + parent + "-"
	for _, c := range []struct {
		name  string
		trace Trace
		came  []string
		is    string
		state string
	}{
		{"none", Trace{Trust: true, Parent: true, Share: 1}, nil, begun + "01", ""},
		{"none, and not sampled", Trace{Trust: true, Parent: true}, nil, begun + "00", ""},
		{"a client's", Trace{Trust: true, Parent: true}, []string{"Traceparent", sampledTrace, "tracestate", "a=b"}, sampledTrace, "a=b"},
		{"a client's, not sampled", Trace{Trust: true, Parent: true, Share: 1}, []string{"traceparent", unsampledTrace}, unsampledTrace, ""},
		{"without its parent's word", Trace{Trust: true}, []string{"traceparent", sampledTrace, "tracestate", "a=b"}, "00-0af7651916cd43dd8448eb211c80319c-" + parent + "-00", "a=b"},
		{"of nobody who is trusted", Trace{Parent: true, Share: 1}, []string{"traceparent", unsampledTrace, "Tracestate", "a=b"}, begun + "01", ""},
		{"two", Trace{Trust: true, Parent: true, Share: 1}, []string{"traceparent", sampledTrace, "traceparent", sampledTrace}, begun + "01", ""},
		{"a state alone", Trace{Trust: true, Parent: true, Share: 1}, []string{"tracestate", "a=b"}, begun + "01", ""},
	} {
		r := traced(c.trace, [2]uint64{4, 2}, c.came...)
		if got, state := string(r.Header.Get("traceparent")), string(r.Header.Get("tracestate")); got != c.is || state != c.state {
			t.Errorf("%s: %q with state %q, want %q with %q", c.name, got, state, c.is, c.state)
		}
	}
}

// Where exchanges are recorded, who is sampled gets a span, which is the parent that the
// upstream is told; nobody else does.
func TestTraceRecords(t *testing.T) {
	const trace, parent, ours = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "0000000000000005"
	for _, c := range []struct {
		name   string
		trace  Trace
		came   string
		is     string
		parent string // empty: there is no span, or it has none
		none   bool
	}{
		{"none", Trace{Trust: true, Parent: true, Share: 1}, "", "00-00000000000000040000000000000002-" + ours + "-01", "", false},
		{"a client's", Trace{Trust: true, Parent: true}, sampledTrace, "00-" + trace + "-" + ours + "-01", parent, false},
		{"a client's, of a later version, and random", Trace{Trust: true, Parent: true}, "01-" + trace + "-" + parent + "-ff-more", "00-" + trace + "-" + ours + "-03", parent, false},
		{"a client's, not sampled", Trace{Trust: true, Parent: true, Share: 1}, unsampledTrace, unsampledTrace, "", true},
		{"sampled by us", Trace{Trust: true, Share: 1}, unsampledTrace, "00-" + trace + "-" + ours + "-01", parent, false},
		{"not sampled by us", Trace{Trust: true}, sampledTrace, "00-" + trace + "-" + ours + "-00", "", true},
		{"of nobody who is trusted", Trace{Parent: true, Share: 1}, sampledTrace, "00-00000000000000040000000000000002-" + ours + "-01", "", false},
	} {
		c.trace.Record = true
		var ex exchange.Exchange
		ex.Request.Random = [2]uint64{4, 2}
		if c.came != "" {
			ex.Request.Header.Add("traceparent", c.came)
		}
		c.trace.request(&ex)
		if got := string(ex.Request.Header.Get("traceparent")); got != c.is {
			t.Errorf("%s: %q, want %q", c.name, got, c.is)
		}
		s := ex.Span
		if s.Recorded() == c.none {
			t.Errorf("%s: a span: %v", c.name, s.Recorded())
		}
		if c.none {
			continue
		}
		if got := hex.EncodeToString(s.Trace[:]) + "-" + hex.EncodeToString(s.ID[:]); got != c.is[traceAt:flagsAt-1] {
			t.Errorf("%s: the span is %s, and the upstream is told %s", c.name, got, c.is)
		}
		if got := hex.EncodeToString(s.Parent[:]); got != cmp.Or(c.parent, "0000000000000000") {
			t.Errorf("%s: its parent is %s, want %q", c.name, got, c.parent)
		}
	}
}

// The name of a span is the place of the rule, or what the option makes of it.
func TestSpanNames(t *testing.T) {
	ex := exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Path: []byte("/a b")}}
	name, err := ParseTemplate("HTTP $request_method $service_name $uri")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		trace Trace
		at    Place
	}{
		"/cart":           {Trace{}, Place{Path: "/cart"}},
		"/":               {Trace{}, Place{}},
		"HTTP GET s /a b": {Trace{Name: name}, Place{Service: "s", Path: "/cart"}},
	} {
		if got := string(c.trace.AppendName(nil, &ex, &c.at)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Who is no traceparent (section 3.2 of the specification) is none.
func TestTraceparentsThatAreNone(t *testing.T) {
	good := map[string]bool{sampledTrace: true, "cc" + sampledTrace[2:]: true, "01" + sampledTrace[2:] + "-what-comes": true, sampledTrace[:53] + "ff": true}
	for _, v := range []string{
		"", "00", sampledTrace[:54], sampledTrace + "-", sampledTrace + "0", "ff" + sampledTrace[2:], strings.ToUpper(sampledTrace), "01" + sampledTrace[2:] + "x",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		strings.Replace(sampledTrace, "-", "_", 1), strings.Replace(sampledTrace, "0af", "0ag", 1), "0x" + sampledTrace[2:], sampledTrace[:53] + "0g",
	} {
		good[v] = false
	}
	for v, is := range good {
		if isContext([]byte(v)) != is {
			t.Errorf("%q is a traceparent: %v", v, !is)
		}
	}
}

// What is made can be read, says the same to all proxies, and is sampled as often as is
// asked for.
func TestTracesThatAreMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := Trace{Trust: rapid.Bool().Draw(t, "trust"), Parent: rapid.Bool().Draw(t, "parent"), Share: rapid.Float64Range(0, 1).Draw(t, "share")}
		random := [2]uint64{rapid.Uint64Min(1).Draw(t, "first"), rapid.Uint64().Draw(t, "second")}
		value := string(traced(trace, random).Header.Get("traceparent"))
		if !isContext([]byte(value)) {
			t.Fatalf("%q was made of %v", value, random)
		}
		trace.Trust, trace.Parent = true, false
		next := string(traced(trace, [2]uint64{random[1] | 1, random[0]}, "traceparent", value).Header.Get("traceparent"))
		if next[:parentAt] != value[:parentAt] || next[flagsAt:] != value[flagsAt:] {
			t.Fatalf("%s is %s to the next proxy", value, next)
		}
	})
	const n = 10_000
	const step = (1<<64 - 1) / n
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		trace, sampled := Trace{Share: share}, 0
		for i := range uint64(n) {
			if strings.HasSuffix(string(traced(trace, [2]uint64{i * step, 1}).Header.Get("traceparent")), "-01") {
				sampled++
			}
		}
		if got := float64(sampled) / n; got < share-0.001 || got > share+0.001 {
			t.Errorf("%d of %d traces are sampled, want a share of %v", sampled, n, share)
		}
	}
}

func TestTraceDoesNotAllocate(t *testing.T) {
	var ex exchange.Exchange
	trace := Trace{Share: 1, Record: true}
	run := func() {
		ex.Reset()
		ex.Request.Random = [2]uint64{1, 2}
		trace.request(&ex)
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("a trace costs %v allocations", n)
	}
}
