package upstream

import (
	"bytes"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// A POST of which the socket took nothing at first, and part later, is not sent
// a second time.
func TestPartOfARequestIsNotSentTwice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var posts atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := c.Read(buf)
					if bytes.Contains(buf[:n], []byte("POST")) {
						posts.Add(1)
						c.(*net.TCPConn).SetLinger(0)
						return
					}
					if err != nil {
						return
					}
				}
			}()
		}
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
	ex := &exchange.Exchange{}
	ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("POST"), []byte("/"), []byte("web")
	ex.Request.Header.AddBorrowed([]byte("X-Large"), bytes.Repeat([]byte("x"), 8<<20))
	tr := e.acquire(b, ex)
	defer tr.release()
	tr.compose()
	tr.targets, tr.conn = b.state.Load(), c
	c.wrote = false // as after a first write that met a full socket
	if err := tr.writeRest(tr.out); err == nil || !c.wrote {
		t.Fatalf("got %v, and the request counts as sent in part: %v", err, c.wrote)
	}
	if err := tr.broken(net.ErrClosed, false, c.wrote); tr.mayRepeat(err) {
		t.Errorf("%v may be tried again, though the pod has seen %d requests", err, posts.Load())
	}
}
