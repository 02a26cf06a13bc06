//go:build !portable

package serve_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// napper speaks no HTTP/2, but rests as whoever does: it says "." whenever it begins to serve,
// echoes what it is sent, and rests at an "r".
type napper struct {
	net.Conn
	until time.Time
	ended chan<- error
}

func (n *napper) Resume() {
	io.WriteString(n, ".")
	for {
		var b [1]byte
		_, err := n.Read(b[:])
		switch rester := n.Conn.(interface {
			Rest(time.Time, interface{ Resume() }) bool
		}); {
		case err != nil:
			n.Close()
			n.ended <- err
			return
		case b[0] == 'r' && rester.Rest(n.until, n):
			return
		}
		n.Write(b[:])
	}
}

// napRig is a rig whose HTTP/2 is that of nappers.
type napRig struct {
	*rig
	came  chan *napper
	ended chan error
	asked atomic.Bool  // they say that they were
	lasts atomic.Int64 // how long a rest may last; 0: for good
}

func newNapRig(t *testing.T, o serve.Options) *napRig {
	n := &napRig{came: make(chan *napper, 10), ended: make(chan error, 10)}
	o.RestAfter = restAfter
	o.HTTP2 = func(c net.Conn, client *serve.HTTP2Client) {
		nap := &napper{Conn: c, ended: n.ended}
		if d := n.lasts.Load(); d > 0 {
			nap.until = time.Now().Add(time.Duration(d))
		}
		if n.asked.Load() {
			client.Asked()
		}
		io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		n.came <- nap
		nap.Resume()
	}
	n.rig = newRig(t, o, upstream.Options{}, hello(t))
	n.server.SetListeners([]serve.Listener{{Address: "127.0.0.1:0", H2C: true}})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if l := n.server.Listeners(); len(l) == 1 && l[0].Bound != "" {
			n.addr = l[0].Bound
			return n
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not listen")
		}
	}
}

// nap connects, by c, and has it rest.
func (n *napRig) nap(c net.Conn) *napper {
	n.t.Helper()
	resting := n.server.Resting()
	n.t.Cleanup(func() { c.Close() })
	io.WriteString(c, http2.ClientPreface+"r")
	n.says(c, ".")
	n.untilResting(resting + 1)
	return <-n.came
}

// says reads what must come.
func (n *napRig) says(c net.Conn, want string) {
	n.t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		n.t.Fatalf("%q came, %v, want %q", got, err, want)
	}
}

// A connection that HTTP/2 has let rest goes on at the next byte, as often as that is so, and
// is one connection all the time.
func TestHTTP2GoesOnAfterRest(t *testing.T) {
	for _, secure := range []bool{false, true} {
		n := newNapRig(t, serve.Options{})
		c := n.dial()
		if secure {
			c.Close()
			first := n.dialTLS()
			first.Close()
			var err error
			if c, err = tls.Dial("tcp", first.RemoteAddr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); err != nil {
				t.Fatal(err)
			}
		}
		n.nap(c)
		for range 3 {
			io.WriteString(c, "xy")
			n.says(c, ".xy")
			io.WriteString(c, "r")
			n.untilResting(1)
		}
		if got := n.server.Connections(); got != 1 {
			t.Errorf("%d connections, want 1", got)
		}
		c.Close()
		<-n.ended
		n.untilConnections(0)
	}
}

// A rest ends by Rise, when it has lasted long enough, when the client goes, and at a drain: who
// serves the connection finds out, whatever it is.
func TestHTTP2RestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		end   func(*napRig, *napper, net.Conn)
	}{
		"risen":  {0, func(_ *napRig, nap *napper, _ net.Conn) { nap.Conn.(interface{ Rise() }).Rise() }},
		"late":   {3 * time.Second, func(*napRig, *napper, net.Conn) {}},
		"left":   {0, func(_ *napRig, _ *napper, c net.Conn) { c.(*net.TCPConn).CloseWrite() }},
		"drains": {0, func(n *napRig, _ *napper, _ net.Conn) { n.stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNapRig(t, serve.Options{GracePeriod: 4 * time.Second})
			n.lasts.Store(int64(c.lasts))
			conn := n.dial()
			nap := n.nap(conn)
			c.end(n, nap, conn)
			n.says(conn, ".")
			if name == "left" || name == "drains" {
				<-n.ended
			}
		})
	}
}

// However many rest when a drain begins, each is served again before anything is cut.
func TestHTTP2RestsAllEndAtDrain(t *testing.T) {
	n := newNapRig(t, serve.Options{GracePeriod: 10 * time.Second})
	n.ended = make(chan error, 200)
	conns := make([]net.Conn, cap(n.ended))
	for i := range conns {
		conns[i] = n.dial()
		n.nap(conns[i])
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	defer func() { <-stopped }()
	for _, c := range conns {
		n.says(c, ".")
		c.Close()
	}
	for range conns {
		<-n.ended
	}
}

// One that rests ends for the sake of others only by who serves it, who is asked; but if it
// has never been asked anything, it goes as others who are silent.
func TestHTTP2RestMakesRoom(t *testing.T) {
	for _, asked := range []bool{true, false} {
		const most = 3
		var spares atomic.Int64
		n := newNapRig(t, serve.Options{Spare: func() bool { spares.Add(1); return false }})
		n.asked.Store(asked)
		for range most - 1 {
			n.nap(n.dial())
		}
		n.server.SetLimits(serve.Limits{Connections: most})
		if asked {
			for range 2 {
				c := n.dial()
				ask(t, c, bufio.NewReader(c))
				c.Close()
				n.untilConnections(most - 1)
			}
			if spares.Load() == 0 || len(n.ended) > 0 {
				t.Errorf("who serves the others was asked %d times, and %d ended", spares.Load(), len(n.ended))
			}
			continue
		}
		<-n.ended
		n.untilConnections(most - 2)
	}
}
