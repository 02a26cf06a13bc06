package upstream

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// A POST of which the socket took part at first, or nothing, and part later, is not sent
// a second time.
func TestPartOfARequestIsNotSentTwice(t *testing.T) {
	for _, full := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		reads, posts := make(chan struct{}), make(chan struct{}, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			<-reads
			buf := make([]byte, 64<<10)
			for seen := ""; !strings.Contains(seen, "POST"); {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				seen = seen[max(0, len(seen)-4):] + string(buf[:n])
			}
			posts <- struct{}{}
			c.(*net.TCPConn).SetLinger(0) // it saw the request, and resets
		}()
		e := New(Options{})
		b := e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
		b.SetEndpoints(&balance.Set{Endpoints: []balance.Endpoint{
			{Addr: netip.MustParseAddrPort(l.Addr().String()), Health: &balance.Health{}},
		}})
		c, err := b.state.Load().endpoints[0].dial(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if full { // nobody reads yet, so the first write of the request finds no room
			c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			for junk := make([]byte, 64<<10); err == nil; {
				_, err = c.TCPConn.Write(junk)
			}
			c.SetWriteDeadline(time.Time{})
		}
		time.AfterFunc(100*time.Millisecond, func() { close(reads) })
		ex := &exchange.Exchange{}
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("POST"), []byte("/"), []byte("web")
		ex.Request.Header.AddBorrowed([]byte("X-Large"), bytes.Repeat([]byte("x"), 16<<20))
		tr := e.acquire(b, ex)
		tr.compose()
		tr.targets, tr.conn, tr.since = b.state.Load(), c, time.Now()
		err = tr.send()
		var f *failure
		if !errors.As(err, &f) || !c.wrote {
			t.Errorf("full %v: got %v, and the request counts as sent in part: %v", full, err, c.wrote)
		} else if tr.mayRepeat(err) {
			t.Errorf("full %v: %v may be tried again", full, err)
		}
		select {
		case <-posts:
		case <-time.After(10 * time.Second):
			t.Errorf("full %v: the pod has not seen the request", full)
		}
		tr.release()
		l.Close()
	}
}
