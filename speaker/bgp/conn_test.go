package bgp

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"quayside.io/speaker/bgp/fsm"
)

// TestAClockThatIsSetEndsNoSession: a node begins with a wrong clock and gets the
// right time after the sessions are up. A time without a monotonic reading would
// then be hours away from the hold timer: all sessions end, or never notice.
func TestAClockThatIsSetEndsNoSession(t *testing.T) {
	c := &conn{began: time.Now(), received: new(atomic.Uint64)}
	c.established.Store(true)
	var err error
	before := time.Now()
	if !c.quiet(message{kind: bgp.BGP_MSG_KEEPALIVE}, &err) || err != nil {
		t.Fatal(err)
	}
	at := c.lastHeard()
	if at.Before(before) || at.After(time.Now()) {
		t.Errorf("heard at %v, not now", at)
	}
	if at == at.Round(0) { // which strips a monotonic reading
		t.Error("the time is that of the clock on the wall")
	}
}

// A peer that closes says so by a reset where it has not read all that was sent.
func TestAClosedConnectionIsCalledSo(t *testing.T) {
	for _, err := range []error{
		io.EOF,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
	} {
		if a := (&conn{}).arrival(message{}, err); a.Kind != fsm.Lost || a.Reason != "the peer closed the connection" {
			t.Errorf("%v: %v, %q", err, a.Kind, a.Reason)
		}
	}
}
