package h2

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// recording is a connection whose client has sent some bytes and hung up. It keeps
// what it is told.
type recording struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (r *recording) Read(b []byte) (int, error) {
	n, err := r.in.Read(b[:min(len(b), 700)])
	return n, err
}
func (r *recording) Write(b []byte) (int, error)        { return r.out.Write(b) }
func (r *recording) Close() error                       { return nil }
func (r *recording) LocalAddr() net.Addr                { return nil }
func (r *recording) RemoteAddr() net.Addr               { return nil }
func (r *recording) SetDeadline(time.Time) error        { return nil }
func (r *recording) SetReadDeadline(at time.Time) error { return nil }
func (r *recording) SetWriteDeadline(time.Time) error   { return nil }

// record returns the bytes that a client sends.
func record(send func(*client)) []byte {
	var b bytes.Buffer
	c := &client{fr: http2.NewFramer(&b, nil)}
	c.fr.AllowIllegalWrites = true
	c.enc = newEncoder(c)
	c.fr.WriteSettings()
	if send != nil {
		send(c)
	}
	return b.Bytes()
}

// addRulings adds what the rulings send, but for those that wait for answers.
func addRulings(f *testing.F) {
	for _, c := range rulings() {
		if c.name[:4] != "5.1 " && !strings.Contains(c.name, "a window") {
			f.Add(record(c.send))
		}
	}
}

// FuzzConnection feeds a connection whatever bytes: it must end, and leave no
// goroutine; what it has said must be frames; what reached the handler must be fit
// for a request line and a header of HTTP/1.1.
func FuzzConnection(f *testing.F) {
	addRulings(f)
	f.Add(record(func(c *client) {
		for i := range uint32(50) {
			c.headers(2*i+1, i%2 == 0, post()...)
			c.fr.WriteData(2*i+1, false, make([]byte, 100*i))
			c.fr.WriteRSTStream(2*i-1, 8)
		}
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(Options{Handler: &recorder{handler: func(ex *exchange.Exchange) {
			r := &ex.Request
			if !validTarget(r.Target) || !exchange.IsToken(r.Method) || !exchange.ValidHost(r.Host) || len(r.Path) == 0 {
				t.Errorf("%q %q %q %q", r.Method, r.Target, r.Host, r.Path)
			}
			for _, f := range r.Header.Fields() {
				if !frame.ValidName(string(f.Name)) || !frame.ValidValue(string(f.Value)) || exchange.EqualFold(f.Name, "host") ||
					exchange.EqualFold(f.Name, "transfer-encoding") || exchange.EqualFold(f.Name, "content-length") {
					t.Errorf("%q: %q", f.Name, f.Value)
				}
			}
			if r.Body != nil {
				if n, err := io.Copy(io.Discard, r.Body); err == nil && r.Length >= 0 && n != r.Length {
					t.Errorf("a body of %d bytes has %d", r.Length, n)
				}
			}
			ex.Answer(200, "ok")
		}}})
		nc := &recording{in: bytes.NewReader(append([]byte(http2.ClientPreface), b...))}
		s.Serve(nc, &Peer{Client: netip.MustParseAddr("192.0.2.1")})
		fr := http2.NewFramer(nil, &nc.out)
		for {
			if _, err := fr.ReadFrame(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("we sent what is no frame: %v", err)
			}
		}
	})
}
