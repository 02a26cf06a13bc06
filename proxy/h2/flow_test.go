package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// transport is net/http's client, without TLS.
func (r *rig) transport() *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, r.addr)
	}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A client all of whose uploads are answered before it has sent them is in no fault: what
// was on its way, DATA and trailers, is nobody's, and costs it next to nothing.
func TestAllUploadsAnsweredEarly(t *testing.T) {
	for _, limit := range []int{128, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			r := newRig(t, Options{}, func(ex *exchange.Exchange) { ex.Answer(413, "too large\n") })
			r.server.SetLimits(Limits{Streams: limit})
			c := r.dial()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for i := range limit {
					c.headers(uint32(2*i+1), false, post()...)
				}
			}()
			for resets := 0; resets < limit; {
				f, err := c.fr.ReadFrame()
				if err != nil {
					t.Fatalf("after %d resets: %v", resets, err)
				}
				switch f := f.(type) {
				case *http2.RSTStreamFrame:
					resets++
				case *http2.HeadersFrame:
					c.dec.DecodeFull(f.HeaderBlockFragment())
				case *http2.GoAwayFrame:
					t.Fatal(f.ErrCode)
				}
			}
			<-sent
			for i := range limit {
				for range 1 + 1000/limit {
					c.fr.WriteData(uint32(2*i+1), false, make([]byte, 50))
				}
				if i%2 == 0 {
					c.headers(uint32(2*i+1), true, "x-sum: 1")
				}
			}
			c.headers(uint32(2*limit+1), true, get...)
			if got := c.outcome(uint32(2*limit + 1)); !strings.HasPrefix(got, "413 ") {
				t.Errorf("the next request: %s", got)
			}
		})
	}
}

// pattern is a body of n bytes that no piece of it can stand in for.
type pattern struct{ at, n int }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.n {
		return 0, io.EOF
	}
	k := min(len(b), p.n-p.at, 5000)
	for i := range k {
		b[i] = byte((p.at + i) * 7 >> 3)
	}
	p.at += k
	return k, nil
}

// check reads body to its end and compares.
func check(body io.Reader, n int) error {
	want, got := &pattern{n: n}, 0
	buf, expect := make([]byte, 3000), make([]byte, 3000)
	for {
		k, err := body.Read(buf)
		for at := 0; at < k; {
			m, _ := want.Read(expect[:k-at])
			if m == 0 || string(expect[:m]) != string(buf[at:at+m]) {
				return fmt.Errorf("byte %d or one after it is another", got+at)
			}
			at += m
		}
		if got += k; err == io.EOF {
			if got != n {
				return fmt.Errorf("%d bytes instead of %d", got, n)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A real client, many requests at once over one connection, bodies both ways that
// are larger than every window.
func TestTransport(t *testing.T) {
	const size = 3 << 20
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		if ex.Request.Body == nil {
			echo(ex)
			return
		}
		if err := check(ex.Request.Body, size); err != nil {
			ex.Answer(500, err.Error())
			return
		}
		ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, -1, io.NopCloser(&pattern{n: size})
		ex.Response.Trailer.Add([]byte("X-Sum"), []byte("7"))
	})
	c := r.transport()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			resp, err := c.Post("http://a.example/", "text/plain", &pattern{n: size})
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if err := check(resp.Body, size); err != nil || resp.StatusCode != 200 || resp.Trailer.Get("X-Sum") != "7" {
				t.Errorf("upload %d: status %d, %v, trailer %v", i, resp.StatusCode, err, resp.Trailer)
			}
		})
		all.Go(func() {
			resp, err := c.Get(fmt.Sprintf("http://a.example/%d?q", i))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); !strings.HasPrefix(string(body), fmt.Sprintf("GET /%d?q host=a.example path=/%[1]d ", i)) ||
				resp.Header.Get("Date") == "" || resp.Header.Get("Server") != "quayside" || resp.ContentLength != int64(len(body)) {
				t.Errorf("%s, %v", body, resp.Header)
			}
		})
	}
	all.Wait()
	resp, err := c.Head("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 200 || resp.ContentLength <= 0 {
		t.Errorf("HEAD: %d, length %d", resp.StatusCode, resp.ContentLength)
	}
	for _, e := range r.seen.statuses() {
		if e != (ended{200, false}) {
			t.Errorf("seen: %+v", e)
		}
	}
}

// counting counts what was taken from it.
type counting struct{ n atomic.Int64 }

func (c *counting) Read(b []byte) (int, error) { c.n.Add(int64(len(b))); return len(b), nil }
func (c *counting) Close() error               { return nil }

// A client that grants no window stops the upstream; what it has granted it gets.
func TestBackPressure(t *testing.T) {
	var source counting
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, -1, &source
	})
	c := r.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.headers(1, true, get...)
	data := func() (n int) {
		for {
			f, err := c.fr.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := f.(*http2.DataFrame); ok {
				return len(d.Data())
			}
		}
	}
	if got := data(); got != 10 {
		t.Fatalf("%d bytes into a window of 10", got)
	}
	c.fr.WriteWindowUpdate(1, 5)
	if got := data(); got != 5 {
		t.Errorf("%d bytes into a window of 5", got)
	}
	c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}) // 7 below nothing
	c.fr.WriteWindowUpdate(1, 9)
	if got := data(); got != 2 {
		t.Errorf("%d bytes into a window of 2", got)
	}
	if taken := source.n.Load(); taken > 64<<10 {
		t.Errorf("%d bytes were taken from the upstream for 17 that could be sent", taken)
	}
	c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	if !c.alive2(3) {
		t.Error("the connection is dead")
	}
}

// alive2 is alive where responses have no end.
func (c *client) alive2(id uint32) bool {
	c.headers(id, true, get...)
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			return false
		}
		if f.Header().StreamID == id {
			return true
		}
	}
}

// A body that nobody reads stops the client at the window, and one that goes on
// breaks the rules.
func TestUploadThatNobodyReads(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, Options{}, func(ex *exchange.Exchange) { <-release; ex.Answer(200, "early") })
	c := r.dial()
	c.headers(1, false, post()...)
	chunk := make([]byte, frame.Size)
	for range streamWindow / frame.Size {
		c.fr.WriteData(1, false, chunk)
	}
	c.fr.WriteData(1, false, []byte{1})
	if got := c.outcome(1); got != "RST FLOW_CONTROL_ERROR" {
		t.Errorf("a byte over the window: %q", got)
	}
	c.headers(3, false, post()...)
	c.fr.WriteData(3, false, chunk)
	close(release)
	if got := c.outcome(3); got != "200 early" {
		t.Errorf("answered early: %q", got)
	}
	if got := c.outcome(3); got != "RST NO_ERROR" {
		t.Errorf("behind the early answer: %q", got)
	}
	c.fr.WriteData(3, true, chunk) // was under way
	if !c.alive(5) {
		t.Error("the connection is dead")
	}
}

// brokenBody ends early.
type brokenBody struct{ n int }

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.n++; b.n > 1 {
		return 0, errors.New("the upstream broke off")
	}
	return copy(p, "half"), nil
}
func (b *brokenBody) Close() error { return nil }

// A response cut short never looks whole, and what went wrong is counted.
func TestBrokenResponse(t *testing.T) {
	for name, answer := range map[string]func(*exchange.Response){
		"the upstream breaks off": func(r *exchange.Response) { r.Length, r.Body = -1, &brokenBody{} },
		"shorter than it says":    func(r *exchange.Response) { r.Length, r.Body = 9, io.NopCloser(strings.NewReader("short")) },
		"longer than it says":     func(r *exchange.Response) { r.Length, r.Body = 2, io.NopCloser(strings.NewReader("long")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{}, func(ex *exchange.Exchange) { ex.Response.Status = 200; answer(&ex.Response) })
			c := r.dial()
			c.headers(1, true, get...)
			if got := c.outcome(1); got != "RST INTERNAL_ERROR" {
				t.Errorf("got %q", got)
			}
			if !c.alive2(3) {
				t.Error("the connection is dead")
			}
			if seen := r.seen.statuses(); len(seen) == 0 || seen[0] != (ended{200, true}) {
				t.Errorf("seen %v", seen)
			}
		})
	}
}

// A stream that the client resets wakes who reads its body, and says so.
func TestReset(t *testing.T) {
	reading := make(chan struct{})
	result := make(chan error, 1)
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		close(reading)
		_, err := io.ReadAll(ex.Request.Body)
		if !ex.Request.Peer.Gone() {
			err = errors.New("the client is there")
		}
		ex.Answer(exchange.StatusClientGone, "")
		result <- err
	})
	c := r.dial()
	c.headers(1, false, post()...)
	<-reading
	c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	if err := <-result; !errors.Is(err, errReset) {
		t.Error(err)
	}
	c.fr.WritePing(false, [8]byte{})
	if _, err := c.fr.ReadFrame(); err != nil {
		t.Error(err)
	}
}

// While a server leaves, clients are told twice and lose nothing.
func TestLeaving(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		if string(ex.Request.Target) == "/slow" {
			close(begun)
			<-release
		}
		ex.Answer(200, "served")
	})
	t.Cleanup(free)
	c := r.dial()
	c.headers(1, true, with(without(get, ":path"), ":path: /slow")...)
	<-begun
	r.server.SetLeaving(true)
	next := func() http2.Frame {
		f, err := c.fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f, ok := next().(*http2.GoAwayFrame); !ok || f.LastStreamID != frame.MaxWindow || f.ErrCode != 0 {
		t.Fatalf("first %v", f)
	}
	c.headers(3, true, get...) // was under way
	if f, ok := next().(*http2.PingFrame); ok {
		c.fr.WritePing(true, f.Data)
	} else {
		t.Fatal("no PING follows")
	}
	for told, served := false, false; !told || !served; { // in either order
		switch f := next().(type) {
		case *http2.GoAwayFrame:
			if told = true; f.LastStreamID != 3 {
				t.Fatalf("last %v", f)
			}
		case *http2.DataFrame:
			if served = true; f.StreamID != 3 || string(f.Data()) != "served" {
				t.Fatalf("a request that was under way: %v", f)
			}
		case *http2.HeadersFrame:
			c.dec.DecodeFull(f.HeaderBlockFragment())
		}
	}
	c.headers(5, true, get...)
	if got := c.outcome(5); got != "RST REFUSED_STREAM" {
		t.Errorf("a request behind GOAWAY: %q", got)
	}
	free()
	if got := c.outcome(1); got != "200 served" {
		t.Errorf("the first: %q", got)
	}
	if got := c.outcome(1); got != "closed" {
		t.Errorf("then %q", got)
	}
	c = r.dial() // comes while it leaves
	c.headers(1, true, get...)
	got := []string{c.outcome(1), c.outcome(1)} // in either order
	if slices.Sort(got); !slices.Equal(got, []string{"200 served", "GOAWAY NO_ERROR"}) {
		t.Errorf("a new connection: %q", got)
	}
}

// The answer to an expectation comes when somebody wants the body, and not before.
func TestExpect(t *testing.T) {
	r := newRig(t, Options{}, echo)
	c := r.dial()
	c.headers(1, false, post("expect: 100-continue")...)
	var status string
	for status == "" {
		f, err := c.fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := f.(*http2.HeadersFrame); ok {
			fields, _ := c.dec.DecodeFull(h.HeaderBlockFragment())
			status = fields[0].Value
		}
	}
	c.fr.WriteData(1, true, []byte("b"))
	if got := c.outcome(1); status != "100" || got != "200 POST /p host=a.example path=/p length=-1 body=b" {
		t.Errorf("%s, then %q", status, got)
	}
	c.headers(3, true, with(get, "expect: more")...)
	if got := c.outcome(3); !strings.HasPrefix(got, "400 ") {
		t.Errorf("another expectation: %q", got)
	}
}

// A host that the connection's certificate is not for is sent elsewhere.
func TestMisdirected(t *testing.T) {
	r := newRigFor(t, Options{}, func(host string) bool { return host == "a.example" }, echo)
	c := r.dial()
	for i, host := range []string{"a.example", "b.example", "a.example:8443", "b.example", "a.example"} {
		id, want := uint32(2*i+1), "200 "
		if host[0] == 'b' {
			want = "421 "
		}
		c.headers(id, true, with(without(get, ":authority"), ":authority: "+host)...)
		if got := c.outcome(id); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// A small body that has come with its head is in memory, as over HTTP/1.1.
func TestWholeBody(t *testing.T) {
	var all []byte
	var whole bool
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		if w, ok := ex.Request.Body.(exchange.Whole); ok {
			var b []byte
			b, whole = w.Whole()
			all = append(all, b...)
		}
		ex.Answer(200, "ok")
	})
	c := r.raw()
	text := c.block(post()...)
	b := []byte(http2.ClientPreface)
	b = frame.AppendSettings(b)
	b = append(frame.AppendHeader(b, len(text), http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1), text...)
	b = append(frame.AppendHeader(b, 4, http2.FrameData, http2.FlagDataEndStream, 1), "body"...)
	c.nc.Write(b)
	if got := c.outcome(1); got != "200 ok" || !whole || string(all) != "body" {
		t.Errorf("%q, whole %v: %q", got, whole, all)
	}
}

// A client may take its table away from us, and large heads come in several frames.
func TestLargeHead(t *testing.T) {
	large := strings.Repeat("v", 50_000)
	r := newRig(t, Options{}, func(ex *exchange.Exchange) { ex.Answer(200, "ok"); ex.Response.Header.Add("X-Large", large) })
	resp, err := r.transport().Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.Header.Get("X-Large") != large {
		t.Errorf("%d bytes", len(resp.Header.Get("X-Large")))
	}
	c := r.dial(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	c.headers(1, true, get...)
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := f.(*http2.HeadersFrame); ok {
			if b := h.HeaderBlockFragment(); b[0] != 0x20 {
				t.Errorf("the block begins with %#x, not with the new size of the table", b[0])
			}
			return
		}
	}
}
