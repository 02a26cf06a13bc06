package speaker

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestStarvedNode lets a node run for a tenth of the time only, in slices that
// are longer than the profile's whole detection. It is not called dead, and
// when it runs it calls nobody dead: the LAN and the nodes' kernels know better.
func TestStarvedNode(t *testing.T) {
	if !needNamespaces(t) {
		return
	}
	f := newFleet(t) // of profile fast
	for i := range 3 {
		f.start(i + 1)
	}
	before := f.owners()
	starved := f.hosts[before["10.0.0.50"]]
	signal := func(s syscall.Signal, lasting time.Duration) {
		if err := starved.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lasting)
	}
	for range 10 {
		signal(syscall.SIGSTOP, 900*time.Millisecond)
		signal(syscall.SIGCONT, 100*time.Millisecond)
	}
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%s was starved, and owners moved from %v to %v", starved.name, before, after)
	}
	if !f.hasLogged("address is not taken", "its node lives and may only be slow") {
		t.Error("nobody noticed: the node was not starved long enough for this test to say anything")
	}
}
