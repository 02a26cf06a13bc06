package speaker

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/test/busy"
	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// The tests of package ownership take simulated fleets of three and of seven through
// the whole table of faults. Here each fault happens once to processes in networks
// of their own. Where it lives:
//
//	three nodes   nothing happens, gossip cut, local policy, silent death (IPv4), loss
//	              of carrier (IPv6), SIGKILL, drain, SIGTERM of one after the other
//	seven nodes   all start at once, one answers, watches that lag, silent death
//	              (IPv6), loss of carrier (IPv4), split, all killed at once
//	elsewhere     starved_test.go, storm_test.go (loss and load), renumber_test.go,
//	              troubles_test.go (strangers), many_test.go (a thousand addresses, the
//	              last one standing), mute_test.go (no raw socket)

// fault is something that a fleet lives through.
type fault struct {
	name string
	run  func(*testing.T)
}

func TestFleetOfThree(t *testing.T) {
	liveThrough(t, 3, func(f *fleet, _ map[string]string) []fault {
		return []fault{
			{"a speaker with nothing to do rests", f.rest},
			{"gossip alone is cut", f.gossipCut},
			{"local policy moves with the endpoints", f.localMoves},
			{"a silent death and the return", func(t *testing.T) { f.death(t, objects.VIP(0), "nomaster", "master lan") }},
			{"a loss of carrier and the return, over IPv6", func(t *testing.T) { f.death(t, objects.VIP6, "down", "up") }},
			{"the speaker is killed", f.killed},
			{"the node is drained", f.drained},
			{"all speakers end politely and start again, one by one", f.rolling},
		}
	})
}

func TestFleetOfSeven(t *testing.T) {
	liveThrough(t, 7, func(f *fleet, first map[string]string) []fault {
		return []fault{
			{"exactly one answers", func(t *testing.T) { f.exactlyOne(t, objects.VIP(0), first[objects.VIP(0)]) }},
			{"watches lag", f.watchesLag},
			{"a silent death and the return, over IPv6", func(t *testing.T) { f.death(t, objects.VIP6, "nomaster", "master lan") }},
			{"a loss of carrier and the return", func(t *testing.T) { f.death(t, objects.VIP(0), "down", "up") }},
			{"the LAN splits and heals", f.split},
			{"all speakers die and start at once", f.totalRestart},
		}
	})
}

// liveThrough starts a fleet and takes it through faults, one after the other.
// first are the owners that it begins with.
func liveThrough(t *testing.T, nodes int, faults func(f *fleet, first map[string]string) []fault) {
	if !inside(t, "nft", "arping") {
		return
	}
	f := newFleet(t, nodes)
	if racing {
		f.profile = "default" // the detector makes packets dear, and a member of profile fast starves by itself
	}
	began := time.Now()
	f.startAll()
	first := f.owners()
	t.Logf("all addresses answered %v after the first node was started: %v", time.Since(began).Round(time.Millisecond), count(first))
	if n := len(count(first)); n < 2 {
		t.Errorf("%d nodes own everything", n)
	}
	for _, one := range faults(f, first) {
		t.Run(one.name, one.run)
	}
}

// rest measures the processor time of every node while nothing happens. A loop
// that wakes itself takes all it gets; probes and gossip a few hundredths.
func (f *fleet) rest(t *testing.T) {
	var busiest string
	var share float64
	for range 15 { // it has just started, and other tests may have begun or ended
		if busiest, share = f.busiest(2 * time.Second); share <= 0.25 {
			t.Logf("the busiest node, %s, takes %.1f %% of a core", busiest, 100*share)
			return
		}
	}
	t.Errorf("%s never rests: it takes %.1f %% of a core", busiest, 100*share)
}

// busiest is the node that works most in a time, and what share of a core it takes.
func (f *fleet) busiest(lasting time.Duration) (name string, share float64) {
	before := map[string]time.Duration{}
	for name, h := range f.hosts {
		before[name] = h.worked()
	}
	time.Sleep(lasting)
	for n, h := range f.hosts {
		if s := float64(h.worked()-before[n]) / float64(lasting); s >= share {
			name, share = n, s
		}
	}
	return name, share
}

// worked is the processor time that a node has used.
func (h *host) worked() time.Duration { return netns.Worked(h.t, h.cmd.Process.Pid) }

// gossipCut cuts the port of gossip on one node; the LAN works, so nothing moves.
func (f *fleet) gossipCut(t *testing.T) {
	before := f.owners()
	h := f.hosts[before[objects.VIP(0)]]
	h.run("nft add table inet cut; nft add chain inet cut in '{ type filter hook input priority 0; }'; nft add chain inet cut out '{ type filter hook output priority 0; }'; " +
		"nft add rule inet cut in meta l4proto { tcp, udp } th dport 7946 drop; nft add rule inet cut out meta l4proto { tcp, udp } th dport 7946 drop")
	defer h.run("nft flush ruleset")
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		f.stillOwned(before)
	}
	h.run("nft flush ruleset")
	time.Sleep(1500 * time.Millisecond)
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("owners moved from %v to %v", before, after)
	}
}

// localMoves takes away the endpoint of the owner; the address must be answered
// all the time, at last by the other node, and never by a third.
func (f *fleet) localMoves(t *testing.T) {
	owner := f.who(objects.VIPLocal)
	other := map[string]string{"n1": "n2", "n2": "n1"}[owner]
	if other == "" {
		t.Fatalf("owned by %q, which has no endpoint", owner)
	}
	f.local = other
	for _, h := range f.hosts {
		h.tell("local " + f.local)
	}
	silent := 0
	took := f.eventually("the other node answers", func() bool {
		got := f.who(objects.VIPLocal)
		if got == "" {
			silent++
		}
		return got == other
	})
	t.Logf("moved after %v, %d questions unanswered", took.Round(time.Millisecond), silent)
	if silent > 0 {
		t.Errorf("%d questions were not answered while the address moved", silent)
	}
	f.handedOver(objects.VIPLocal)
	f.exactlyOne(t, objects.VIPLocal, other)
}

// handedOver waits until whoever had the address has heard that another took it:
// it goes on answering until then, so that no question is lost, for some 20 ms.
func (f *fleet) handedOver(address string) {
	f.eventually("the owner before has heard of it", func() bool { return len(f.answerers(address)) == 1 })
}

// watchesLag lets every node see the endpoint where it is itself: it has moved
// from node to node, and each watch hangs since another moment. The address does
// not go round; and once all see the truth, it goes there.
func (f *fleet) watchesLag(t *testing.T) {
	for _, h := range f.hosts {
		h.tell("local " + h.name)
	}
	time.Sleep(2 * time.Second) // each may take it once
	moves := func() int { return f.logged("address taken", "address="+objects.VIPLocal+" ") }
	before := moves()
	time.Sleep(2 * time.Second)
	if n := moves() - before; n > 0 {
		t.Errorf("the address moved %d times in 2 s", n)
	}
	owner := f.who(objects.VIPLocal)
	if owner == "" {
		t.Error("nobody answers, though each could")
	}
	f.exactlyOne(t, objects.VIPLocal, owner)
	f.local = map[string]string{"n1": "n2"}[owner]
	if f.local == "" {
		f.local = "n1"
	}
	for _, h := range f.hosts {
		h.tell("local " + f.local)
	}
	took := f.eventually("the node with the endpoint answers", func() bool { return f.who(objects.VIPLocal) == f.local })
	t.Logf("with one truth it moved after %v", took.Round(time.Millisecond))
	if took > 3*time.Second { // a second, were the machine idle
		t.Errorf("with one truth the address moved after %v", took)
	}
	f.handedOver(objects.VIPLocal)
	f.exactlyOne(t, objects.VIPLocal, f.local)
}

// death takes the owner from the LAN, and puts it back: others take its
// addresses, and keep them.
func (f *fleet) death(t *testing.T, address, cut, heal string) {
	owner := f.owner(address)
	owner.cable(cut)
	took := f.eventually("somebody else answers", func() bool { n := f.who(address); return n != "" && n != owner.name })
	successor := f.who(address)
	t.Logf("%s took over from %s after %v (profile %s)", successor, owner.name, took.Round(time.Millisecond), f.profile)
	all := f.owners()
	if cut == "nomaster" { // its link is up, and it has to find out
		f.eventually("it knows that it hears nobody", func() bool {
			return f.hasLogged("address is not taken", "hears nobody", "address="+address+" ", "me="+owner.name+" ")
		})
	}
	standstill := busy.Standstill(t)
	owner.cable(heal)
	if strings.Contains(address, ".") {
		out := strings.ToLower(netns.Sh(t, "arping -c 100 -W 0.01 -i lan "+address+" || true"))
		// Who is asked by it takes 250 ms to answer, or has it no more.
		if n, late := strings.Count(out, owner.mac), standstill(); n > 0 && late < 100*time.Millisecond {
			t.Errorf("%s returned, and answered %d of 100 questions", owner.name, n)
		}
	}
	time.Sleep(time.Second)
	for range 20 {
		if n := f.who(address); n != successor && n != "" {
			t.Errorf("after the return %q answers, not %s", n, successor)
		}
	}
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(all) {
		t.Errorf("the return moved addresses: %v, then %v", all, after)
	}
}

func (f *fleet) killed(t *testing.T) {
	owner := f.owner(objects.VIP(0))
	owner.signal(syscall.SIGKILL)
	took := f.eventually("somebody else answers", func() bool { n := f.who(objects.VIP(0)); return n != "" && n != owner.name })
	t.Logf("%s took over from the killed %s after %v", f.who(objects.VIP(0)), owner.name, took.Round(time.Millisecond))
	<-owner.ended
	<-f.start(owner.index).ready
	time.Sleep(time.Second) // it comes back, and takes nothing
	if again := f.who(objects.VIP(0)); again == owner.name {
		t.Errorf("%s took its address back", owner.name)
	}
}

// drained drains a node: all its addresses go, not a question unanswered; then
// it stays after all, and takes nothing back.
func (f *fleet) drained(t *testing.T) {
	owner := f.owner(objects.VIP(0))
	w := &witness{fleet: f}
	owner.tell("drain on")
	took := f.eventually("the node has nothing left", func() bool {
		w.look()
		return f.who(objects.VIP(0)) != owner.name && count(f.owners())[owner.name] == 0
	})
	t.Logf("%s was drained within %v; %d of %d questions unanswered", owner.name, took.Round(time.Millisecond), w.silent, w.asked)
	if w.silent > 0 {
		t.Errorf("%d of %d questions unanswered", w.silent, w.asked)
	}
	f.oneForEach() // on a busy machine two may take one, and one of them gives it up
	all := f.owners()
	owner.tell("drain off")
	time.Sleep(time.Second)
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(all) {
		t.Errorf("the end of the drain moved addresses: %v, then %v", all, after)
	}
}

// split puts one node on a LAN of its own, where a client asks as well.
func (f *fleet) split(t *testing.T) {
	f.meet() // a node that is still missed by others is no side of this split
	owner := f.who(objects.VIP(1))
	var alone *host
	for _, h := range f.hosts {
		if h.name != owner { // both sides must act
			alone = h
		}
	}
	netns.Sh(t, "ip link add far address 02:00:00:00:00:c9 type bridge; ip link set far up; ip addr add 10.0.0.201/24 dev far")
	alone.cable("master far")
	took := f.eventually("somebody answers on the far side", func() bool { return f.whoOn(objects.VIP(1), "far") == alone.name })
	t.Logf("%s answers on its side after %v", alone.name, took.Round(time.Millisecond))
	if near := f.who(objects.VIP(1)); near != owner {
		t.Errorf("on the near side %q answers, not %s", near, owner)
	}
	told := f.logged("address given up", "address="+objects.VIP(1))
	standstill := busy.Standstill(t)
	alone.cable("master lan")
	healed := time.Now()
	var both, late time.Duration // until when a client heard two answers
	for time.Since(healed) < 3*time.Second+late {
		asked := time.Since(healed)
		if len(f.answerers(objects.VIP(1))) > 1 {
			both, late = asked, standstill()
		}
	}
	t.Logf("two answered until %v after healing, in which the machine stood still for %v", both.Round(time.Millisecond), late.Round(time.Millisecond))
	if both-late > time.Second {
		t.Errorf("two answered for %v", both)
	}
	if n := f.logged("address given up", "address="+objects.VIP(1)) - told; n != 1 {
		t.Errorf("%d nodes were told that they lost, want one", n)
	}
	f.oneForEach()
	netns.Sh(t, "ip link del far")
}

// rolling asks every speaker in turn to end, and starts it again: somebody answers
// all the time, and who has ended has nothing left.
func (f *fleet) rolling(t *testing.T) {
	w := &witness{fleet: f}
	began := time.Now()
	for i := range f.nodes {
		h := f.hosts[fmt.Sprintf("n%d", i+1)]
		h.signal(syscall.SIGTERM)
		ended := make(chan struct{})
		var err error
		go func() { err = <-h.ended; close(ended) }()
		w.until(ended, 10*time.Second)
		if err != nil {
			t.Errorf("the speaker of %s ended with %v", h.name, err)
		}
		if now := f.who(objects.VIP(0)); now == "" || now == h.name {
			t.Errorf("%s has ended, and %q answers", h.name, now)
		}
		delete(f.hosts, h.name)
		w.until(f.start(i+1).ready, 10*time.Second)
	}
	t.Logf("%d of %d questions unanswered over %d restarts in %v", w.silent, w.asked, f.nodes, time.Since(began).Round(time.Millisecond))
	if w.silent > 0 {
		t.Errorf("%d questions unanswered", w.silent)
	}
	f.oneForEach()
}

// totalRestart kills all speakers, as a power cut does, and starts them again.
func (f *fleet) totalRestart(t *testing.T) {
	for _, h := range f.hosts {
		h.signal(syscall.SIGKILL)
	}
	for name, h := range f.hosts {
		<-h.ended
		delete(f.hosts, name)
	}
	began := time.Now()
	f.startAll()
	all := f.owners()
	t.Logf("all addresses answered %v after the first node was started: %v", time.Since(began).Round(time.Millisecond), count(all))
	f.oneForEach()
}
