package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func header(lines ...string) *Header {
	h := &Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.AddBorrowed([]byte(name), []byte(value))
	}
	return h
}

func lines(h *Header) []string {
	var out []string
	for _, f := range h.Fields() {
		out = append(out, string(f.Name)+": "+string(f.Value))
	}
	return out
}

func TestHeader(t *testing.T) {
	h := header("Accept: a", "cookie: b", "Cookie: c")
	h.Set("COOKIE", "d")
	h.SetBytes("X-New", []byte("e"))
	h.AddParts("X-Parts", []byte("f"), []byte(", "), []byte("g"))
	h.Del("accept")
	if got, want := lines(h), []string{"cookie: d", "X-New: e", "X-Parts: f, g"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := h.Get("x-parts"); string(got) != "f, g" {
		t.Errorf("Get: got %q", got)
	}
	if got := h.Get("accept"); got != nil {
		t.Errorf("Get of a deleted field: got %q", got)
	}
}

// Fields that we made up must survive the growth of the memory behind them.
func TestHeaderKeepsItsTextWhileItGrows(t *testing.T) {
	var h Header
	for i := range 500 {
		h.Add(fmt.Sprintf("X-%d", i), fmt.Sprint(i))
	}
	for i := range 500 {
		if got := string(h.Get(fmt.Sprintf("x-%d", i))); got != fmt.Sprint(i) {
			t.Fatalf("field %d holds %q", i, got)
		}
	}
}

func TestStripHop(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []string
		want []string
		hop  Hop
	}{
		{"nothing to strip", []string{"Accept: */*"}, []string{"Accept: */*"}, Hop{}},
		{"the listed fields", []string{"Keep-Alive: 5", "TE: trailers", "Trailer: X", "Proxy-Connection: x",
			"Transfer-Encoding: chunked", "Content-Length: 3", "Upgrade: h2c", "Proxy-Authorization: x", "A: b"},
			[]string{"A: b"}, Hop{Announced: []byte("X")}},
		{"trailers", []string{"Connection: TE", "TE: gzip;q=0.5, Trailers"}, nil, Hop{Trailers: true}},
		{"no trailers", []string{"Connection: TE", "TE: gzip"}, nil, Hop{}},
		{"named by Connection, without regard to case", []string{"connection: close, X-Secret ,,x-other", "X-SECRET: 1", "X-Other: 2", "X-Third: 3"},
			[]string{"X-Third: 3"}, Hop{Close: true}},
		{"two Connection fields", []string{"Connection: a", "A: 1", "B: 2", "Connection: Keep-Alive, b"}, nil, Hop{KeepAlive: true}},
		{"an upgrade", []string{"Connection: keep-alive, Upgrade", "Upgrade: websocket"}, nil,
			Hop{KeepAlive: true, Upgrade: []byte("websocket")}},
		{"an upgrade that Connection does not name", []string{"Upgrade: websocket"}, nil, Hop{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := header(c.in...)
			hop := h.StripHop()
			if got := lines(h); !slices.Equal(got, c.want) {
				t.Errorf("left %q, want %q", got, c.want)
			}
			if hop.Close != c.hop.Close || hop.KeepAlive != c.hop.KeepAlive || string(hop.Upgrade) != string(c.hop.Upgrade) ||
				hop.Trailers != c.hop.Trailers || string(hop.Announced) != string(c.hop.Announced) {
				t.Errorf("hop %+v, want %+v", hop, c.hop)
			}
		})
	}
}

// The twin builds a set of what must go and filters by it.
func TestStripHopAgainstItsTwin(t *testing.T) {
	names := []string{"Connection", "connection", "Keep-Alive", "TE", "Upgrade", "Accept", "X-A", "x-a", "X-B", "Content-Length"}
	values := []string{"close", "x-a", "X-B, close", "keep-alive,X-A", "", ",", "upgrade", "1"}
	rapid.Check(t, func(t *rapid.T) {
		var in []string
		for range rapid.IntRange(0, 8).Draw(t, "fields") {
			in = append(in, rapid.SampledFrom(names).Draw(t, "name")+": "+rapid.SampledFrom(values).Draw(t, "value"))
		}
		h := header(in...)
		h.StripHop()
		if got, want := lines(h), naiveStrip(in); !slices.Equal(got, want) {
			t.Fatalf("%q: left %q, want %q", in, got, want)
		}
	})
}

// A head is read by whoever sent one, so the work is in proportion to its size.
func TestStripHopOfManyOptions(t *testing.T) {
	took := func(n int) time.Duration {
		var h Header
		h.Add("Connection", strings.Repeat("a,", n))
		for range n {
			h.Add("b", "")
		}
		start := time.Now()
		h.StripHop()
		return time.Since(start)
	}
	// The best of many: a busy machine makes any one of them long. By a square it would
	// be 256 times as much each time.
	small, large := took(1000), took(16_000)
	for range 1000 {
		if large <= 64*small {
			return
		}
		small, large = min(small, took(1000)), min(large, took(16_000))
	}
	t.Errorf("16 times as much takes %v instead of %v", large, small)
}

func naiveStrip(in []string) (left []string) {
	gone := map[string]bool{"connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true,
		"transfer-encoding": true, "upgrade": true, "content-length": true, "proxy-authenticate": true, "proxy-authorization": true}
	for _, line := range in {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "connection") {
			for option := range strings.SplitSeq(value, ",") {
				gone[strings.ToLower(strings.TrimSpace(option))] = true
			}
		}
	}
	for _, line := range in {
		if name, _, _ := strings.Cut(line, ": "); !gone[strings.ToLower(name)] {
			left = append(left, line)
		}
	}
	return left
}

func TestTrailerDropsWhatMayNotStandThere(t *testing.T) {
	var tr Trailer
	for _, name := range []string{"Grpc-Status", "ETag", "X-Sum", "Host", "content-length", "Transfer-Encoding", "TE", "Trailer", "X-Forwarded-For",
		"Authorization", "Set-Cookie", "If-Match", "Content-Type", "Cache-Control", "a b", ""} {
		tr.Add([]byte(name), []byte("1"))
	}
	tr.Add([]byte("X-Evil"), []byte("a\r\nHost: b"))
	if got, want := lines(&tr.Header), []string{"Grpc-Status: 1", "ETag: 1", "X-Sum: 1"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

func TestAnswer(t *testing.T) {
	var e Exchange
	e.Response.Header.Add("X-Old", "1")
	e.Answer(404, "nothing here")
	if got := lines(&e.Response.Header); !slices.Equal(got, []string{"Content-Type: text/plain; charset=utf-8"}) {
		t.Errorf("header %q", got)
	}
	if e.Response.Status != 404 || string(e.Response.Text) != "nothing here" || e.Response.Length != 12 {
		t.Errorf("response %+v", e.Response)
	}
}

func TestNoAllocationOnceWarm(t *testing.T) {
	var e Exchange
	fields := header("Host: x", "Accept: */*", "Connection: keep-alive", "User-Agent: u", "Cookie: a=b").Fields()
	pass := func() {
		e.Reset()
		for _, f := range fields {
			e.Request.Header.AddBorrowed(f.Name, f.Value)
		}
		e.Request.Header.StripHop()
		e.Request.Header.Set("X-Real-IP", "192.0.2.1")
		e.Request.Header.AddParts("X-Forwarded-For", fields[0].Value, fields[1].Value)
		e.Answer(503, "nobody there")
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations per exchange, want none", n)
	}
}
