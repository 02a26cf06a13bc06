package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// late is a body whose trailer comes when its end is asked for, as that of a client of
// HTTP/2 may: behind the last byte that a Content-Length counts.
type late struct {
	ex   *exchange.Exchange
	rest string
}

func (l *late) Read(p []byte) (int, error) {
	if n := copy(p, l.rest); n > 0 {
		l.rest = l.rest[n:]
		return n, nil
	}
	l.ex.Request.Trailer.Add([]byte("x-late"), []byte("yes"))
	return 0, io.EOF
}

func (l *late) Close() error { return nil }

// What stands behind a body whose length was known is waited for: before that, the front
// end may still be writing it.
func TestTrailerBehindALength(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		io.WriteString(w, string(body)+" "+r.Trailer.Get("X-Late"))
		if err != nil || r.ContentLength != 5 {
			t.Errorf("the pod read %q, %v, of a length of %d", body, err, r.ContentLength)
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.Listener.Addr().String()))
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	ex.Request.Peer = &caller{wake: make(chan chan<- struct{}, 1)}
	ex.Request.Body, ex.Request.Length = &late{ex, "hello"}, 5
	ex.Request.Trailer.Announced = []byte("X-Late")
	b.Forward(ex)
	if ex.Response.Status != 200 {
		t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	body, err := io.ReadAll(ex.Response.Body)
	ex.Response.Body.Close()
	if string(body) != "hello yes" || err != nil {
		t.Errorf("the pod read %q (%v), want hello and the trailer", body, err)
	}
}
