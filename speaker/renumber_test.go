package speaker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/test/objects"
)

// A node gets another InternalIP, as by DHCP, and loses the old one: it stays a
// member, and keeps what it holds.
func TestANodeGetsAnotherAddress(t *testing.T) {
	if !inside(t) {
		return
	}
	f := newFleet(t, 3)
	f.profile = "default" // a busy machine makes a member of profile fast flap, too
	f.startAll()
	before := f.owners()
	h := f.owner(objects.VIP(0))
	moved := fmt.Sprintf("10.0.0.%d", 200+10*h.index)
	// Otherwise the kernel takes every address of a subnet away with the first.
	h.run("echo 1 >/proc/sys/net/ipv4/conf/all/promote_secondaries; ip addr add " + moved + "/16 dev eth0")
	for _, each := range f.hosts {
		each.tell(fmt.Sprintf("at %d %s", h.index, moved))
	}
	time.Sleep(time.Second)
	h.run(fmt.Sprintf("ip addr del 10.0.0.%d/16 dev eth0", h.index))
	returns := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for line := range strings.Lines(f.log.String()) {
			if strings.Contains(line, "member lives") && strings.Contains(line, " node="+h.name+" ") && !strings.Contains(line, " me="+h.name+" ") {
				n++
			}
		}
		return n
	}
	settled := returns()
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); {
		f.stillOwned(before)
	}
	// Each of the two others may miss it once, while it meets them anew, and hear
	// the other say so after it has been refuted.
	if n := returns() - settled; n > 4 {
		t.Errorf("%s came back from the dead %d times in 4 s", h.name, n)
	}
}
