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
	f := newFleet(t, 3) // of profile fast
	f.startAll()
	before := f.owners()
	time.Sleep(500 * time.Millisecond) // the others have heard of the last claims, too
	starved := f.hosts[before[objects.VIP(0)]]
	for range 10 {
		starved.signal(syscall.SIGSTOP)
		time.Sleep(900 * time.Millisecond)
		starved.signal(syscall.SIGCONT)
		time.Sleep(100 * time.Millisecond)
	}
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%s was starved, and owners moved from %v to %v", starved.name, before, after)
	}
	if !f.hasLogged("address is not taken", "its node lives and may only be slow") {
		t.Error("nobody noticed: the node was not starved long enough for this test to say anything")
	}
}
