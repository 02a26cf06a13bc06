//go:build !portable

package upstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
)

// strayPod answers by the number of the connection, and sends stray on the first of them
// when it is told.
func strayPod(t *testing.T, stray string) (addr netip.AddrPort, send func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan net.Conn, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n == 1 {
				first <- c
			}
			text := "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + string(rune('0'+n))
			serving.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; io.WriteString(c, text) {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return netip.MustParseAddrPort(l.Addr().String()), func() { io.WriteString(<-first, stray) }
}

// tells waits until the poller has said that something has come on c, and has forgotten it.
func tells(t *testing.T, c *conn, send func()) {
	t.Helper()
	asked := make(chan struct{})
	var once sync.Once
	var done sync.WaitGroup
	done.Go(func() {
		c.plain.raw.Read(func(uintptr) (again bool) {
			again = true
			once.Do(func() { again = false; close(asked) })
			return again
		})
	})
	<-asked
	send()
	done.Wait()
}

// What a pod sent behind its response is never the answer to another request, whether the
// connection was looked at before that or not.
func TestWhatNobodyAskedForAnswersNobody(t *testing.T) {
	for name, stray := range map[string]string{
		"the body of an answer to HEAD": "hello",
		"a head":                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"an answer":                     "HTTP/1.1 408 Request Timeout\r\nContent-Length: 3\r\n\r\nbye",
		"one in chunks":                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbye\r\n0\r\n\r\n",
		"one without a body":            "HTTP/1.1 204 No Content\r\n\r\n",
		"hints, and an answer":          "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
	} {
		for way, looks := range map[string]bool{"GET": false, "POST": true, "GET once": true, "GET to one": true} {
			t.Run(way+" "+name, func(t *testing.T) {
				method, rest, _ := strings.Cut(way, " ")
				addr, send := strayPod(t, stray)
				p := &closingPod{addr: addr}
				b := backendOf(t, p)
				p.warm(t, b)
				c := b.state.Load().endpoints[0].idle[0]
				tells(t, c, send)
				c.idleSince = time.Now().Add(time.Hour) // the next request comes at once
				looked := false
				c.plain.step = func(fd uintptr) bool {
					looked = looked || c.plain.phase == checking
					return c.do(fd)
				}
				ex := &exchange.Exchange{}
				ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte(method), []byte("/"), []byte("web")
				switch rest {
				case "once":
					ex.Request.Forwarding = &exchange.Forwarding{Tries: 1}
				case "to one":
					ex.Request.Forwarding = &exchange.Forwarding{Next: exchange.NextOff}
				}
				b.Forward(ex)
				if ex.Response.Body == nil {
					t.Fatalf("got %d %s", ex.Response.Status, ex.Response.Text)
				}
				got, err := io.ReadAll(ex.Response.Body)
				ex.Response.Body.Close()
				if ex.Response.Status != 200 || string(got) != "2" || err != nil {
					t.Errorf("got %d %q, %v; want what the second connection says", ex.Response.Status, got, err)
				}
				if looked != looks {
					t.Errorf("the connection was looked at: %v", looked)
				}
				if link := ex.Response.Header.Get("Link"); link != nil {
					t.Errorf("a field of what nobody asked for: %s", link)
				}
			})
		}
	}
}
