package bgp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"quayside.io/speaker/bgp/fsm"
)

const (
	// linger is how long a connection is read on after our last word, so that
	// the peer gets it: closing with bytes unread would reset the connection.
	linger = time.Second
	// An inbound flood is read at 16 MB/s at most, in portions; a full Internet
	// table passes in seconds and an attacker gets a few percent of a core.
	floodBytes = 256 << 10
	floodPause = 16 * time.Millisecond
)

// conn is one TCP connection and the goroutine that reads it.
type conn struct {
	net.Conn
	id     int
	peer   open          // set by the session when the OPEN came
	closed chan struct{} // by the session
	// established connections report no KEEPALIVE and no UPDATE: heard is how long
	// after began the last came, so that nobody who sets the clock ends a session.
	established atomic.Bool
	began       time.Time
	heard       atomic.Int64
	ends        [2]atomic.Bool // End-of-RIB came
	received    *atomic.Uint64 // UPDATEs
}

// arrival is what the reader reports to the session.
type arrival struct {
	fsm.Event
	open open
}

func (c *conn) local() netip.Addr {
	a, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return a.AddrPort().Addr().Unmap()
}

// read reports what the peer sends until the connection ends or is closed.
func (c *conn) read(to chan<- arrival) {
	defer c.Close()
	f := newFramer(c)
	portion := 0
	for {
		m, err := f.next()
		if portion += headerLength + len(m.body); portion > floodBytes {
			portion = 0
			if !c.rest(floodPause) {
				break
			}
		}
		if err == nil && c.quiet(m, &err) {
			continue
		}
		select {
		case to <- c.arrival(m, err):
		case <-c.closed:
		}
		if err != nil || m.kind == bgp.BGP_MSG_NOTIFICATION {
			break
		}
	}
	// The session answers each end by closing, and then the peer may still read.
	<-c.closed
	_, _ = io.Copy(io.Discard, c)
}

// rest pauses, and reports whether the connection still goes on.
func (c *conn) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		return false
	}
}

// quiet takes a message that the session need not hear of. An UPDATE that is
// badly framed sets err.
func (c *conn) quiet(m message, err *error) bool {
	switch m.kind {
	case bgp.BGP_MSG_UPDATE:
		var f family
		var end bool
		if f, end, *err = checkUpdate(m.body); *err != nil {
			return false
		}
		c.received.Add(1)
		if end {
			c.ends[f].Store(true)
		}
	case bgp.BGP_MSG_KEEPALIVE:
	default:
		return false
	}
	if !c.established.Load() {
		return false
	}
	c.heard.Store(int64(time.Since(c.began)))
	return true
}

// lastHeard is when the last KEEPALIVE or UPDATE of an established connection came;
// zero: none has.
func (c *conn) lastHeard() time.Time {
	heard := c.heard.Load()
	if heard == 0 {
		return time.Time{}
	}
	return c.began.Add(time.Duration(heard))
}

func (c *conn) arrival(m message, err error) arrival {
	a := arrival{Event: fsm.Event{Conn: c.id}}
	var bad *malformed
	if err == nil {
		switch m.kind {
		case bgp.BGP_MSG_OPEN:
			a.Kind = fsm.OpenReceived
			a.open, err = decodeOpen(m.body)
			a.Open = a.open.Open
		case bgp.BGP_MSG_UPDATE:
			a.Kind = fsm.UpdateReceived
		case bgp.BGP_MSG_NOTIFICATION:
			a.Kind, a.Notification = fsm.NotificationReceived, decodeNotification(m.body)
		case bgp.BGP_MSG_KEEPALIVE:
			a.Kind = fsm.KeepaliveReceived
		case bgp.BGP_MSG_ROUTE_REFRESH:
			a.Kind = fsm.RefreshReceived
		}
	}
	switch {
	case errors.As(err, &bad):
		a.Kind, a.Notification, a.Reason = fsm.Malformed, bad.Notification, bad.why
	case err != nil:
		a.Kind, a.Reason = fsm.Lost, words(err)
	}
	return a
}

// words are those of an error without our port, which is another each time: what
// repeats itself must look so.
func words(err error) string {
	// A reset: the peer had not read all that we said.
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return "the peer closed the connection"
	}
	var op *net.OpError
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "timeout: the peer does not take what it is sent, or too slowly"
	}
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// finish ends the connection: without a last word at once, else so that the
// peer can read it.
func (c *conn) finish(said bool) {
	if t, ok := c.Conn.(*net.TCPConn); ok && said && t.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(linger))
	} else {
		_ = c.Close()
	}
	close(c.closed)
}
