package serve

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// once is a connection that brings some bytes and takes none.
type once struct {
	net.Conn
	in *bytes.Reader
}

func (c once) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (once) Write(b []byte) (int, error)        { return len(b), nil }
func (once) Close() error                       { return nil }
func (once) SetDeadline(time.Time) error        { return nil }
func (once) SetWriteDeadline(t time.Time) error { return nil }
func (once) SetReadDeadline(t time.Time) error  { return nil }
func (once) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (once) LocalAddr() net.Addr                { return &net.TCPAddr{} }

// byCryptoTLS is what crypto/tls makes of the same bytes: the server name, and whether
// it understood the message.
func byCryptoTLS(b []byte) (name string, understood bool) {
	enough := errors.New("enough")
	c := tls.Server(once{in: bytes.NewReader(b)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, understood = h.ServerName, true
		return nil, enough
	}})
	c.Handshake()
	return name, understood
}

// helloOf is what a client says first.
func helloOf(t testing.TB, name string, change func(*tls.Config)) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	config := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	if change != nil {
		change(config)
	}
	go func() {
		tls.Client(here, config).Handshake()
		here.Close()
	}()
	head := make([]byte, recordHead)
	if _, err := io.ReadFull(there, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(there, body); err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}

// inRecords is the message of a record in records of n bytes.
func inRecords(hello []byte, n int) (out []byte) {
	for b := hello[recordHead:]; len(b) > 0; b = b[min(n, len(b)):] {
		k := min(n, len(b))
		out = append(append(out, typeHandshake, 3, 1, byte(k>>8), byte(k)), b[:k]...)
	}
	return out
}

// peekAll gives h everything, as many bytes at a time.
func peekAll(b []byte, step int) (string, bool) {
	h := hello{}
	for len(b) > 0 {
		n := min(step, len(b))
		h.bytes = append(h.bytes, b[:n]...)
		if name, done := h.advance(); done {
			return name, true
		}
		b = b[n:]
	}
	return "", false
}

func TestHelloOfClients(t *testing.T) {
	whole := helloOf(t, "shop.example", nil)
	for _, c := range []struct {
		what, name string
		hello      []byte
	}{
		{"TLS 1.3", "shop.example", whole},
		{"TLS 1.2", "shop.example", helloOf(t, "shop.example", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })},
		{"ALPN", "shop.example", helloOf(t, "shop.example", func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} })},
		{"no name", "", helloOf(t, "", nil)},
		{"an address", "", helloOf(t, "192.0.2.1", nil)},
		{"records of a byte", "shop.example", inRecords(whole, 1)},
		{"records of 100 bytes", "shop.example", inRecords(whole, 100)},
		{"with more behind", "shop.example", append(bytes.Clone(whole), "more"...)},
		{"HTTP", "", []byte("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")},
		{"another message", "", []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}},
		{"SSL 2", "", []byte{0x80, 0x2e, 1, 3, 1, 0, 0x15}},
		{"an empty record", "", []byte{22, 3, 1, 0, 0}},
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			if name, done := peekAll(c.hello, step); name != c.name || !done {
				t.Errorf("%s, %d bytes at a time: %q %v, want %q", c.what, step, name, done, c.name)
			}
		}
	}
}

// A client may not make us read for ever, nor look at a byte twice.
func TestHelloHasALimit(t *testing.T) {
	endless := append([]byte{22, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff}, make([]byte, maxHello)...)
	for _, b := range [][]byte{endless, inRecords(append(make([]byte, recordHead), append([]byte{1, 0xff, 0xff, 0xff}, make([]byte, maxHello)...)...), 1)} {
		h := hello{}
		for i := 0; ; i++ {
			if _, done := h.advance(); done {
				break
			}
			h.bytes = append(h.bytes, b[i])
		}
		if len(h.bytes) > maxHello {
			t.Errorf("%d bytes were read", len(h.bytes))
		}
	}
}

// FuzzHello: a name that we read is the one that crypto/tls understands, unless it
// refuses what is said. One that we do not read is safe: crypto/tls is asked then.
func FuzzHello(f *testing.F) {
	whole := helloOf(f, "shop.example", nil)
	f.Add(whole)
	f.Add(helloOf(f, strings.Repeat("a", 63)+".example", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }))
	f.Add(inRecords(whole, 3))
	f.Add(bytes.Replace(whole, []byte("shop.example"), []byte("shop.exampl."), 1))
	f.Add(bytes.Replace(whole, []byte("shop.example"), []byte("\x00hop.example"), 1))
	f.Add([]byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= maxHello {
			return
		}
		name, _ := peekAll(b, max(len(b), 1))
		slow, _ := peekAll(b, 3)
		if name != slow {
			t.Errorf("%q at once, %q in pieces", name, slow)
		}
		theirs, understood := byCryptoTLS(b)
		if understood && name != "" && theirs != name {
			t.Errorf("%q, which crypto/tls takes for %q", name, theirs)
		}
	})
}
