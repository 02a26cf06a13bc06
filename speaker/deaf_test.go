package speaker

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"quayside.io/test/busy"
	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// TestDeafLAN is a fleet whose gossip lives on a network of its own. The LAN goes deaf
// for the owner of an address, in one direction or in both: the address moves. It goes
// deaf for all, as when its switch restarts, and loses a tenth of all packets: nothing
// moves.
func TestDeafLAN(t *testing.T) {
	if !inside(t, "nft", "arping") {
		return
	}
	f := newFleet(t, 3)
	f.apart, f.profile = true, "default" // a busy machine makes a member of profile fast flap
	netns.Sh(t, "ip link add mgmt type bridge; ip link set mgmt up")
	f.startAll()
	f.oneForEach()
	t.Run("it loses a tenth", f.deafLoss)
	for _, rules := range []string{"from", "to", "both"} {
		t.Run("deaf "+rules, func(t *testing.T) { f.deaf(t, rules) })
	}
	t.Run("it is gone for all", f.deafForAll)
}

// lose makes the LAN lose packets from a node, to it, or both, by a match of nft.
func (f *fleet) lose(h *host, rules, match string) {
	f.t.Helper()
	netns.Sh(f.t, "nft add table bridge deaf; nft add chain bridge deaf pre '{ type filter hook prerouting priority 0; }'; nft add chain bridge deaf post '{ type filter hook postrouting priority 0; }'")
	if rules != "to" {
		netns.Sh(f.t, fmt.Sprintf("nft add rule bridge deaf pre iifname p%s %s drop", h.name, match))
	}
	if rules != "from" {
		netns.Sh(f.t, fmt.Sprintf("nft add rule bridge deaf post oifname p%s %s drop", h.name, match))
	}
}

func (f *fleet) heal() { netns.Sh(f.t, "nft flush ruleset") }

// leavesDeaf is how soon others have the addresses of a node that nobody hears on the LAN
// any more, as docs/failures.md promises.
const leavesDeaf = 2 * time.Second

func (f *fleet) deaf(t *testing.T, rules string) {
	owner := f.owner(objects.VIP(0))
	deaf, hears := f.logged("nobody on the LAN answers", "me="+owner.name+" "), f.logged("not taken for deaf any more", "me="+owner.name+" ")
	standstill := busy.Standstill(t)
	f.lose(owner, rules, "")
	took := f.eventually("somebody else answers", func() bool { n := f.who(objects.VIP(0)); return n != "" && n != owner.name })
	late := standstill()
	t.Logf("%s took over from %s after %v, in which the machine stood still for %v", f.who(objects.VIP(0)), owner.name, took.Round(time.Millisecond), late.Round(time.Millisecond))
	// The last question that nobody answered delays the one that finds the next owner. And
	// where others want the processors, every step of the way waits for one: as long, all
	// together, as this test waited itself.
	if slack := answerWithin + late; took > leavesDeaf+slack {
		t.Errorf("the address left the deaf node after %v, want %v and %v at most for the question and the busy machine", took, leavesDeaf, slack)
	}
	f.eventually("all that it had has moved", func() bool { return count(f.owners())[owner.name] == 0 })
	if n := f.logged("nobody on the LAN answers", "me="+owner.name+" ") - deaf; n < 1 {
		t.Errorf("%s has not said that it is deaf", owner.name)
	}
	all := f.owners()
	f.heal()
	f.eventually("it hears again", func() bool {
		return f.logged("not taken for deaf any more", "me="+owner.name+" ") > hears
	})
	f.oneForEach()
	if after := f.owners(); !maps.Equal(all, after) {
		t.Errorf("the return moved addresses: %v, then %v", all, after)
	}
}

// deafForAll takes the LAN away from all nodes for longer than that takes to be known.
func (f *fleet) deafForAll(t *testing.T) {
	before, moves := f.owners(), f.logged("address taken")
	deaf := f.logged("nobody on the LAN answers")
	netns.Sh(t, "ip link set lan down")
	f.eventually("all are deaf", func() bool {
		time.Sleep(10 * time.Millisecond)
		return f.logged("nobody on the LAN answers")-deaf >= f.nodes
	})
	time.Sleep(500 * time.Millisecond) // each has heard it of all
	netns.Sh(t, "ip link set lan up")
	f.oneForEach()
	if after := f.owners(); !maps.Equal(before, after) {
		t.Errorf("owners moved from %v to %v", before, after)
	}
	t.Logf("%d addresses moved meanwhile", f.logged("address taken")-moves)
}

// deafLoss drops a tenth of all that is said on the LAN, either way.
func (f *fleet) deafLoss(t *testing.T) {
	before := f.owners()
	for _, h := range f.hosts {
		f.lose(h, "both", "numgen random mod 100 \\< 10")
	}
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); {
		for a, owner := range before {
			if got := f.who(a); got != owner && got != "" {
				t.Fatalf("%s moved from %s to %s", a, owner, got)
			}
		}
	}
	f.heal()
	if n := f.logged("nobody on the LAN answers"); n > 0 {
		t.Errorf("%d nodes took the LAN for deaf", n)
	}
	if after := f.owners(); !maps.Equal(before, after) {
		t.Errorf("owners moved from %v to %v", before, after)
	}
}
