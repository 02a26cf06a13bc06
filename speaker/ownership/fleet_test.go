package ownership

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/test/objects"
)

// A fleet lives through everything that happens to honest nodes and strangers, one
// thing after the other: the table of package speaker's fleet tests, which do the
// same to processes in network namespaces. What the watcher keeps holds all the time.
func TestFleetOfThree(t *testing.T) { liveThrough(t, 3) }
func TestFleetOfSeven(t *testing.T) { liveThrough(t, 7) }

func liveThrough(t *testing.T, nodes int) {
	f := newSim(t, nodes, uint64(nodes))
	f.startAll()
	if n := len(count(f.owners())); n < 2 {
		t.Errorf("%d nodes own everything", n)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *sim)
	}{
		{"a fleet with nothing to do rests", rest},
		{"gossip alone is cut", gossipCut},
		{"gossip alone is lost everywhere", gossipLost},
		{"local policy moves with the endpoints", localMoves},
		{"watches lag", watchesLag},
		{"a silent death and the return", func(t *testing.T, f *sim) { death(t, f, func(n *simNode, dead bool) { n.silenced = dead }) }},
		{"a loss of carrier and the return", func(t *testing.T, f *sim) { death(t, f, func(n *simNode, dead bool) { n.carrier = !dead }) }},
		{"the LAN is deaf for one node", deafLAN},
		{"the LAN is deaf for all", deafForAll},
		{"the speaker is killed", killed},
		{"a speaker is starved", starved},
		{"the node is drained", drained},
		{"a polite end", polite},
		{"kube-proxy is behind", behind},
		{"the API server is gone", apiGone},
		{"the LAN splits and heals", split},
		{"strangers use our addresses", strangers},
		{"all speakers restart one by one", rolling},
		{"all speakers die and start at once", totalRestart},
		{"the last one standing", lastStanding},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.t = t
			f.watch.reset()
			f.note("--- %s", c.name)
			c.run(t, f)
			f.quiet()
		})
		if t.Failed() {
			return
		}
	}
}

func (s *sim) startAll() {
	for i, n := range s.nodes {
		s.in(time.Duration(i)*20*time.Millisecond, n.start)
	}
	s.until("every address is answered for", 10*time.Second, s.isWhole)
	s.quiet()
}

// isWhole reports whether exactly one node answers for every address.
func (s *sim) isWhole() bool {
	for _, a := range s.watch.addresses {
		if len(s.answering(a, 0)) != 1 {
			return false
		}
	}
	return true
}

// quiet waits until nobody changes his mind any more: all have met, and nothing is
// left to be told.
func (s *sim) quiet() {
	s.t.Helper()
	s.until("all have met", 10*time.Second, func() bool {
		return s.isWhole() && !slices.ContainsFunc(s.nodes, func(n *simNode) bool {
			return n.speaker != nil && len(n.speaker.gossip.reach()) != len(n.speaker.gossip.alive)+1
		})
	})
	s.run(2 * time.Second)
}

// owners are the nodes that answer, by address.
func (s *sim) owners() map[string]string {
	out := map[string]string{}
	for _, a := range s.watch.addresses {
		out[a.String()] = s.who(a.String())
	}
	return out
}

// count is how many addresses each node has.
func count(owners map[string]string) map[string]int {
	out := map[string]int{}
	for _, n := range owners {
		out[n]++
	}
	return out
}

// still fails unless everything stays where it is while time passes.
func (s *sim) still(d time.Duration) {
	s.t.Helper()
	before := s.owners()
	for end := s.now.Add(d); s.now.Before(end); {
		s.run(20 * time.Millisecond)
		if after := s.owners(); !maps.Equal(before, after) {
			s.fatalf("owners moved from %v to %v", before, after)
		}
	}
}

func (s *sim) owner(a string) *simNode { return s.node(s.who(a)) }

// logged is how many lines of the log since a mark have all words.
func (s *sim) logged(from int, words ...string) (lines int) {
	for _, line := range s.log[from:] {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

// rest: a machine that wakes itself wakes only others.
func rest(t *testing.T, f *sim) {
	before := f.watch.steps
	f.still(10 * time.Second)
	if n := f.watch.steps - before; n > 0 {
		t.Errorf("%d steps in 10 s in which nothing happened", n)
	}
}

func gossipCut(_ *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	n.cable("gossip is cut", func() { n.gossipCut = true })
	f.still(10 * time.Second)
	n.cable("gossip is back", func() { n.gossipCut = false })
	f.still(2 * time.Second)
}

func gossipLost(_ *testing.T, f *sim) {
	for _, n := range f.nodes {
		n.cable("gossip is cut", func() { n.gossipCut = true })
	}
	f.still(10 * time.Second)
	for _, n := range f.nodes {
		n.cable("gossip is back", func() { n.gossipCut = false })
	}
	f.still(2 * time.Second)
}

// localMoves takes away the endpoint of the owner; the address must be answered
// all the time, at last by the other node.
func localMoves(t *testing.T, f *sim) {
	owner := f.who(objects.VIPLocal)
	other := map[string]string{"n1": "n2", "n2": "n1"}[owner]
	if other == "" {
		t.Fatalf("owned by %q, which has no endpoint", owner)
	}
	f.put(objects.Endpoints(other))
	f.until("the other node answers", 5*time.Second, func() bool {
		if f.who(objects.VIPLocal) == "" {
			f.fatalf("nobody answers while the address moves")
		}
		return f.who(objects.VIPLocal) == other
	})
}

// watchesLag lets every node see the endpoint where it is itself. The address
// does not go round; and once all see the truth, it goes there.
func watchesLag(_ *testing.T, f *sim) {
	for _, n := range f.nodes {
		n.cluster = n.cluster.With(objects.Endpoints(n.name))
		n.happen()
	}
	f.run(flapAtMost) // each may take it once or twice
	before := f.who(objects.VIPLocal)
	if before == "" {
		f.fatalf("nobody answers, though each could")
	}
	for end := f.now.Add(10 * time.Second); f.now.Before(end); f.run(10 * time.Millisecond) {
		if f.who(objects.VIPLocal) != before {
			f.fatalf("%s moved on from %s to %s", objects.VIPLocal, before, f.who(objects.VIPLocal))
		}
	}
	target := "n1"
	if before == "n1" {
		target = "n2"
	}
	f.put(objects.Endpoints(target))
	f.until("the node with the endpoint answers", 10*time.Second, func() bool { return f.who(objects.VIPLocal) == target })
	f.put(objects.Endpoints("n1", "n2"))
}

// death takes the owner from the LAN, and puts it back: others take its addresses, and
// keep them, and it answers for none of them any more.
func death(t *testing.T, f *sim, cut func(n *simNode, dead bool)) {
	n := f.owner(objects.VIP(0))
	n.cable("dies", func() { cut(n, true) })
	took := f.until("others answer for everything", 2*time.Second, f.isWhole)
	t.Logf("others took over from %s within %v", n.name, took)
	f.run(5 * time.Second)
	all := f.owners()
	n.cable("returns", func() { cut(n, false) })
	f.quiet()
	if after := f.owners(); !maps.Equal(all, after) {
		t.Errorf("the return moved addresses: %v, then %v", all, after)
	}
	if both := f.watch.longest.both; both > 0 {
		t.Errorf("two answered for %v: who was gone has asked nobody", both)
	}
}

// deafLAN cuts the owner off from the LAN while gossip lives: others take what it has,
// and keep it.
func deafLAN(t *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	n.lanCable(true)
	took := f.until("others answer for everything", 2*time.Second, f.isWhole)
	t.Logf("others took over from %s within %v", n.name, took)
	f.run(5 * time.Second)
	all := f.owners()
	n.lanCable(false)
	f.quiet()
	if after := f.owners(); !maps.Equal(all, after) || f.watch.longest.both > 0 {
		t.Errorf("the return moved addresses: %v, then %v; two answered for %v", all, after, f.watch.longest.both)
	}
}

// deafForAll cuts all off, as a switch that restarts: nothing moves.
func deafForAll(t *testing.T, f *sim) {
	all, mark := f.owners(), len(f.log)
	for _, n := range f.nodes {
		n.lanCable(true)
	}
	f.run(5 * time.Second)
	for _, n := range f.nodes {
		n.lanCable(false)
	}
	f.quiet()
	if after := f.owners(); !maps.Equal(all, after) {
		t.Errorf("owners moved from %v to %v:\n%s", all, after, strings.Join(f.log[mark:], "\n"))
	}
}

func killed(t *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	n.kill()
	took := f.until("others answer for everything", time.Second, f.isWhole)
	t.Logf("others took over from %s within %v", n.name, took)
	f.quiet()
	n.start()
	f.still(5 * time.Second)
}

// starved lets a node run for a tenth of the time only, in slices that are longer
// than it takes to be missed.
func starved(_ *testing.T, f *sim) {
	before, n, mark := f.owners(), f.owner(objects.VIP(0)), len(f.log)
	for range 10 {
		n.pause()
		f.run(900 * time.Millisecond)
		n.resume()
		f.run(100 * time.Millisecond)
	}
	if after := f.owners(); !maps.Equal(before, after) {
		f.fatalf("%s was starved, and owners moved from %v to %v", n.name, before, after)
	}
	if f.logged(mark, "does not take", "may only be slow") == 0 {
		f.fatalf("nobody noticed")
	}
	// Who gets no time at all loses what it has: it does not answer.
	n.pause()
	f.until("others answer for everything", silentAtMost, f.isWhole)
	n.resume()
	f.run(5 * time.Second)
}

func (s *sim) taint(n *simNode, on bool) {
	if on {
		s.put(objects.DrainedNode(n.index + 1))
	} else {
		s.put(objects.Node(n.index + 1))
	}
}

// drained: all addresses of the node go, not a question unanswered; then it stays
// after all, and takes nothing back.
func drained(t *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	f.taint(n, true)
	took := f.until("the node has nothing left", 10*time.Second, func() bool { return count(f.owners())[n.name] == 0 })
	f.quiet()
	t.Logf("%s was drained within %v, and two answered for up to %v", n.name, took, f.watch.longest.both)
	if f.watch.longest.silent > 0 {
		t.Errorf("an address was silent for %v", f.watch.longest.silent)
	}
	f.taint(n, false)
	f.still(5 * time.Second)
}

func polite(t *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	began := f.now
	n.terminate()
	f.until("it ends", 6*time.Second, func() bool { return n.speaker == nil })
	if f.watch.longest.silent > 0 || !f.isWhole() {
		t.Errorf("addresses were silent for up to %v, and answered for by %v in the end", f.watch.longest.silent, f.owners())
	}
	if took := f.now.Sub(began); took < noticePeriod || took > noticePeriod+time.Second {
		t.Errorf("%s ended after %v", n.name, took)
	}
	f.quiet()
	n.start()
	f.still(3 * time.Second)
}

// behind: a node whose kube-proxy has no rules takes nothing where another can, and
// loses nothing.
func behind(t *testing.T, f *sim) {
	n := f.owner(objects.VIP(0))
	victim := f.nodes[(n.index+1)%len(f.nodes)]
	n.behind = true
	n.happen()
	f.still(time.Second)
	mark := len(f.log)
	victim.kill()
	f.quiet()
	// One is served by the two nodes with its endpoints only.
	if took := f.logged(mark, n.name+": takes") - f.logged(mark, n.name+": takes "+objects.VIPLocal+" "); took > 0 {
		t.Errorf("%s is behind, and took %d addresses", n.name, took)
	}
	n.behind = false
	n.happen()
	victim.start()
	f.still(3 * time.Second)
}

// apiGone: without an API server everything stays as it is, and who dies is replaced
// nevertheless.
func apiGone(t *testing.T, f *sim) {
	f.apiDown = true
	f.still(3 * time.Second)
	death(t, f, func(n *simNode, dead bool) { n.silenced = dead })
	f.apiDown = false
	for _, n := range f.nodes {
		n.catchUp()
	}
	f.still(3 * time.Second)
}

// split puts one node on a LAN of its own with a host that speaks, so that both
// sides act. When they meet again, one of two gives each address up.
func split(t *testing.T, f *sim) {
	owner, mark := f.who(objects.VIP(1)), len(f.log)
	alone := f.nodes[len(f.nodes)-1]
	if alone.name == owner {
		alone = f.nodes[0]
	}
	alone.cable("is cut off", func() { alone.segment = 1 })
	f.farHost = true
	f.until("it answers on its side", 5*time.Second, func() bool { return f.whoOn(objects.VIP(1), 1) == alone.name })
	if near := f.who(objects.VIP(1)); near != owner {
		t.Errorf("on the near side %q answers, not %s", near, owner)
	}
	f.quietOn(0)
	f.farHost = false
	alone.cable("is back", func() { alone.segment = 0 })
	f.quiet()
	t.Logf("two answered for up to %v", f.watch.longest.both)
	if n := f.logged(mark, "gives "+objects.VIP(1)); n != 1 {
		t.Errorf("%d nodes were told that they lost, want one", n)
	}
}

// quietOn lets one side of a split come to rest.
func (s *sim) quietOn(segment int) {
	s.t.Helper()
	s.until("the side is whole", 5*time.Second, func() bool {
		return !slices.ContainsFunc(s.watch.addresses, func(a netip.Addr) bool { return len(s.answering(a, segment)) != 1 })
	})
	s.run(time.Second)
}

func strangers(t *testing.T, f *sim) {
	const mac = "02:00:00:00:00:99"
	owner, mark := f.who(objects.VIP(0)), len(f.log)
	f.use(objects.VIP(0), mac) // he comes later
	f.run(time.Second)
	if f.logged(mark, "hears "+mac, objects.VIP(0)) != 1 || f.who(objects.VIP(0)) != owner {
		t.Errorf("%q answers, and nobody hears the stranger", f.who(objects.VIP(0)))
	}
	f.use(objects.VIP(0), "")
	f.still(time.Second)
	free := "10.0.0.90" // he was there before the Service
	f.use(free, mac)
	f.put(objects.Service("late", free))
	f.run(2 * time.Second)
	if got := f.who(free); got != mac || f.logged(mark, "does not take "+free, "somebody answers for it", mac) == 0 {
		t.Errorf("%q answers beside the stranger", got)
	}
	f.use(free, "")
	took := f.until("its address is ours", retryForeign+2*time.Second, func() bool { return f.who(free) != "" })
	t.Logf("taken %v later", took)
}

func rolling(t *testing.T, f *sim) {
	for _, n := range f.nodes {
		n.terminate()
		f.until("it ends", 6*time.Second, func() bool { return n.speaker == nil })
		n.start()
		f.run(500 * time.Millisecond)
	}
	if f.watch.longest.silent > 0 {
		t.Errorf("an address was silent for %v", f.watch.longest.silent)
	}
}

func totalRestart(t *testing.T, f *sim) {
	before := f.owners()
	for _, n := range f.nodes {
		n.kill()
	}
	f.run(time.Second)
	f.startAll()
	if after := f.owners(); !maps.Equal(before, after) {
		t.Errorf("owners were %v and are %v, though every SpeakerStatus says who had what", before, after)
	}
}

// lastStanding has no speaker to talk to, but hears that hosts answer.
func lastStanding(t *testing.T, f *sim) {
	last := f.nodes[len(f.nodes)-1]
	for _, n := range f.nodes {
		if n != last {
			n.cable("dies", func() { n.silenced = true })
			f.run(time.Second)
		}
	}
	f.until("the last one answers for all", 5*time.Second, func() bool { return count(f.owners())[last.name] == len(f.watch.addresses) })
	all := f.owners()
	for _, n := range f.nodes {
		n.cable("returns", func() { n.silenced = false })
	}
	f.quiet()
	if after := f.owners(); !maps.Equal(all, after) {
		t.Errorf("the return moved addresses: %v, then %v", all, after)
	}
}
