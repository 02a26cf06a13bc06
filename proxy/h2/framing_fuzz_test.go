package h2

//lint:file-ignore SA1019 the server of x/net reads frames from any connection

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/exchange"
)

// pending is a recording whose client does not hang up before it is told to.
type pending struct {
	recording
	mu      sync.Mutex
	hangUp  chan struct{}
	stopped sync.Once
}

func (p *pending) Read(b []byte) (int, error) {
	if n, _ := p.recording.Read(b); n > 0 {
		return n, nil
	}
	<-p.hangUp
	return 0, io.EOF
}

func (p *pending) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recording.Write(b)
}

func (p *pending) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (p *pending) Close() error {
	p.stopped.Do(func() { close(p.hangUp) })
	return nil
}

// says answers with what was asked, once it has come in full.
func says(method, target, host string, body io.Reader) (string, bool) {
	all, err := io.ReadAll(body)
	return fmt.Sprintf("%s %s %s %q", method, target, host, all), err == nil
}

// answersOf returns what a server says of the streams of a client that has sent b.
func answersOf(t *testing.T, b []byte, serve func(net.Conn)) map[uint32]string {
	nc := &pending{recording: recording{in: bytes.NewReader(append([]byte(http2.ClientPreface), b...))}, hangUp: make(chan struct{})}
	done := make(chan struct{})
	go func() { defer close(done); serve(nc) }()
	synctest.Wait()
	nc.Close()
	<-done
	synctest.Wait()
	return answers(t, nc.out.Bytes())
}

// answers reads the bodies of the responses that say 200.
func answers(t *testing.T, b []byte) map[uint32]string {
	said, good := map[uint32]string{}, map[uint32]bool{}
	fr := http2.NewFramer(nil, bytes.NewReader(b))
	dec := hpack.NewDecoder(4096, nil)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			fields, err := dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				t.Fatal(err)
			}
			good[f.StreamID] = fields[0].Value == "200"
		case *http2.DataFrame:
			if good[f.StreamID] {
				said[f.StreamID] += string(f.Data())
			}
		}
	}
	maps.DeleteFunc(said, func(_ uint32, s string) bool { return !strings.HasPrefix(s, "=") })
	return said
}

// FuzzFraming: whatever bytes come, a stream that both we and the server of x/net take
// for a request in full is the same to both. What one of both refuses, it may.
func FuzzFraming(f *testing.F) {
	addRulings(f)
	f.Add(record(func(c *client) {
		for i := range uint32(20) {
			c.headers(2*i+1, i%3 == 0, post()...)
			c.fr.WriteDataPadded(2*i+1, i%3 == 1, make([]byte, 100*i), make([]byte, i))
			c.fr.WriteData(2*i-1, true, []byte("last"))
		}
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			ours := answersOf(t, b, func(nc net.Conn) {
				New(Options{Handler: &recorder{handler: func(ex *exchange.Exchange) {
					r := &ex.Request
					var body io.Reader = strings.NewReader("")
					if r.Body != nil {
						body = r.Body
					}
					if said, whole := says(string(r.Method), string(r.Target), string(r.Host), body); whole {
						ex.Answer(200, "="+said)
					} else {
						ex.Answer(400, "")
					}
				}}}).Serve(nc, &Peer{Client: netip.MustParseAddr("192.0.2.1")})
			})
			theirs := answersOf(t, b, func(nc net.Conn) {
				server := &http2.Server{}
				if err := http2.ConfigureServer(&http.Server{}, server); err != nil { // else it shares channels with others
					t.Fatal(err)
				}
				server.ServeConn(nc, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if said, whole := says(r.Method, r.RequestURI, r.Host, r.Body); whole {
						io.WriteString(w, "="+said)
					}
				})})
			})
			for id, said := range ours {
				if other, both := theirs[id]; both && other != said {
					t.Errorf("stream %d is %.300s here, and %.300s to x/net", id, said, other)
				}
			}
		})
	})
}
