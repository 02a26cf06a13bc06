package bgp

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
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
