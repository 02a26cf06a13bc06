package speaker

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"quayside.io/test/objects"
)

// TestStarvedNode lets a node run for a tenth of the time only, in slices that
// are longer than the profile's whole detection. It is not called dead, and
// when it runs it calls nobody dead: the LAN and the nodes' kernels know better.
func TestStarvedNode(t *testing.T) {
	t.Parallel() // it sleeps
	if !inside(t) {
		return
	}
	f := newFleet(t, 3)
	f.profile = "default" // a busy machine starves members of profile fast by itself
	f.startAll()
	before := f.owners()
	time.Sleep(500 * time.Millisecond) // the others have heard of the last claims, too
	starved := f.hosts[before[objects.VIP(0)]]
	for range 10 {
		starved.signal(syscall.SIGSTOP)
		time.Sleep(900 * time.Millisecond)
		f.giveTurn(starved, objects.VIP(0))
	}
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%s was starved, and owners moved from %v to %v", starved.name, before, after)
	}
	if !f.hasLogged("address is not taken", "its node lives and may only be slow") {
		t.Error("nobody noticed: the node was not starved long enough for this test to say anything")
	}
}

// giveTurn lets a node that was stopped run for a tenth of a second. The time of a
// machine is not its own: it gets more where it is slow to answer for its address, or
// it would be starved by the others there and not by this test.
func (f *fleet) giveTurn(h *host, address string) {
	f.t.Helper()
	h.signal(syscall.SIGCONT)
	slow := f.eventually("somebody answers for "+address, func() bool { return f.who(address) != "" })
	time.Sleep(100*time.Millisecond + 4*slow)
}
