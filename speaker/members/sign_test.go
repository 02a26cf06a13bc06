package members

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/speaker/announce"
)

// listener is a node that hears what a test tells it.
func listener(t *testing.T) *Members {
	t.Helper()
	m, err := New(Options{NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func publicOf(s *state) ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// unmixed is a node that knows that all understand signatures.
func unmixed(name string) *state {
	s := newState(name)
	s.mixed.Store(false)
	return s
}

func address(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, i}) }

func hears(t *testing.T, m *Members, messages ...[]byte) {
	t.Helper()
	for _, b := range messages {
		(&delegate{m}).NotifyMsg(b)
	}
}

// What a node has signed is believed by way of others, and nothing else in its name:
// neither unsigned, nor signed by somebody else who has the gossip key.
func TestNobodySpeaksForAnother(t *testing.T) {
	n2, n3, impostor := unmixed("n2"), unmixed("n3"), unmixed("n2")
	m := listener(t)
	m.trust.patience = 0
	m.SetKeys(Keys{"n1": {m.PublicKey()}, "n2": {publicOf(n2)}, "n3": {publicOf(n3)}})
	m.know(&Want{})
	m.alive["n2"], m.alive["n3"] = struct{}{}, struct{}{}
	m.know(&Want{})

	facts := announce.Facts{Interfaces: []announce.Interface{{Name: "eth0", MAC: "02:00:00:00:00:02"}}}
	for _, b := range n2.tell(facts, 7) { // n3 passes it on
		msg, err := parse(b, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		n3.merge(msg, true)
	}
	for _, b := range n2.claim(map[netip.Addr]int64{address(1): 3}) {
		msg, err := parse(b, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		n3.merge(msg, true)
	}
	if err := splitState(n3.whole(), func(b []byte) { hears(t, m, b) }); err != nil {
		t.Fatal(err)
	}
	believed := func() string {
		v := m.View()
		return fmt.Sprint(v.Claims, v.Facts["n2"], len(m.Forgeries()))
	}
	before := believed()
	if v := m.View(); v.Claims[address(1)].Node != "n2" || len(v.Facts["n2"].Interfaces) != 1 || len(m.Forgeries()) != 0 {
		t.Fatalf("what n2 signed is not believed by way of n3: %s", before)
	}

	impostor.mixed.Store(true) // says all of it once more without a signature
	hears(t, m, impostor.tell(announce.Facts{Leaving: true}, 9)...)
	hears(t, m, impostor.claim(map[netip.Addr]int64{address(1): 9, address(2): 1})...)
	stolen := n3.sign(claimMessages("n2", []claimed{{address(3), 1}})[0]).bytes
	if _, err := m.take(stolen); err == nil {
		t.Error("n3 signs for n2")
	}
	v := m.View()
	if fmt.Sprint(v.Claims, v.Facts["n2"], 0) != before {
		t.Errorf("an impostor is believed: %v %v, before %s", v.Claims, v.Facts, before)
	}
	if _, told := m.Forgeries()["n2"]; !told {
		t.Error("nobody is told of the impostor")
	}

	// Of this node itself, others tell what its former life claimed.
	self := unmixed("n1")
	hears(t, m, self.claim(map[netip.Addr]int64{address(4): 5})...)
	if _, ok := m.View().Claims[address(4)]; ok {
		t.Error("an impostor makes this node hold an address")
	}
	m.state.mixed.Store(false)
	hears(t, m, m.state.post(claimMessages("n1", []claimed{{address(5), 5}}))...)
	if _, ok := m.View().Claims[address(5)]; !ok {
		t.Error("what this node signed itself is not believed")
	}
}

// A node that starts again has a new key. What it says before that has come by the
// API server is believed when it has, and nobody is accused.
func TestWordsWaitForTheirKey(t *testing.T) {
	before, after := unmixed("n2"), unmixed("n2")
	m := listener(t)
	m.SetKeys(Keys{"n2": {publicOf(before)}})
	hears(t, m, before.claim(map[netip.Addr]int64{address(1): 1})...)
	packet := after.tell(announce.Facts{Leaving: true}, 9)[0]
	hears(t, m, packet)
	for i := range packet {
		packet[i] = 0 // memberlist uses its memory again
	}
	hears(t, m, after.claim(map[netip.Addr]int64{address(1): 2})...)
	if v := m.View(); v.Claims[address(1)].Epoch != 1 || v.Facts["n2"].Leaving {
		t.Fatalf("it is believed without its key: %v", v)
	}
	m.SetKeys(Keys{"n2": {publicOf(after), publicOf(before)}})
	if v := m.View(); v.Claims[address(1)].Epoch != 2 || !v.Facts["n2"].Leaving {
		t.Errorf("what it said is lost: %v", v)
	}
	if f := m.Forgeries(); len(f) > 0 {
		t.Errorf("somebody is accused: %v", f)
	}
	hears(t, m, before.claim(map[netip.Addr]int64{address(7): 1})...) // others pass it on
	if _, ok := m.View().Claims[address(7)]; !ok {
		t.Error("what its former life signed is not believed")
	}
	third := unmixed("n2")
	m.trust.patience = 0
	hears(t, m, third.claim(map[netip.Addr]int64{address(1): 2})...)
	if f := m.Forgeries(); len(f) != 0 {
		t.Errorf("what is known anyway is a forgery: %v", f)
	}
	hears(t, m, third.claim(map[netip.Addr]int64{address(1): 3})...)
	if f := m.Forgeries(); len(f) != 1 {
		t.Errorf("a key that never comes: %v", f)
	}
}

// What is kept in case that a key comes is bounded.
func TestHeldWordsAreBounded(t *testing.T) {
	tr := newTrust()
	for i := range 1000 {
		for j := range 2 * heldPerNode {
			tr.hold(fmt.Sprintf("n%d", i), []byte{byte(j)}, time.Now())
		}
	}
	n := 0
	for _, h := range tr.held {
		n += len(h.messages)
		if len(h.messages) > heldPerNode || h.messages[len(h.messages)-1][0] != 2*heldPerNode-1 {
			t.Fatalf("%d are held of one node, the last is %v", len(h.messages), h.messages[len(h.messages)-1])
		}
	}
	if n != tr.size || n > heldInAll {
		t.Errorf("%d are held, %d counted", n, tr.size)
	}
}

// While members live that sign nothing, they are believed, and are told everything in
// the way that they understand. Once a node has a key, only what it signed counts,
// and what the old ones pass on of it is no forgery.
func TestUpgradeFromSpeakersThatSignNothing(t *testing.T) {
	m := listener(t)
	m.alive["old"], m.alive["n2"] = struct{}{}, struct{}{}
	n2 := newState("n2")
	m.SetKeys(Keys{"n1": {m.PublicKey()}, "n2": {publicOf(n2)}})
	m.know(&Want{})

	hears(t, m, claimMessages("old", []claimed{{address(1), 1}})...)
	if m.View().Claims[address(1)].Node != "old" {
		t.Error("a speaker of the version before is not believed")
	}
	hears(t, m, claimMessages("n2", []claimed{{address(2), 1}})...) // as old passes it on
	if _, ok := m.View().Claims[address(2)]; ok || len(m.Forgeries()) > 0 {
		t.Errorf("unsigned: claims %v, forgeries %v", m.View().Claims, m.Forgeries())
	}
	understood := map[byte]int{}
	count := func(b []byte) { understood[b[0]]++ }
	for _, b := range append(m.state.tell(announce.Facts{}, 3), m.state.claim(map[netip.Addr]int64{address(3): 1})...) {
		count(b)
	}
	if understood[kindLeaving] != 1 || understood[kindFacts] != 1 || understood[kindClaims] != 1 || understood[kindSigned] != 3 {
		t.Errorf("the old are told %v", understood)
	}
	clear(understood)
	if err := splitState(m.state.whole(), count); err != nil || understood[kindLeaving] != 1 || understood[kindFacts] != 1 || understood[kindClaims] != 2 {
		t.Errorf("the old compare notes on %v, %v", understood, err)
	}

	// What was believed unsigned is signed by and by, so that nobody who knows its
	// key takes it for a forgery.
	early := newState("early")
	word, err := (&message{kind: kindLeaving, node: "early", version: 3, life: 5}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	hears(t, m, word, early.sign(word).bytes)
	if m.state.nodes["early"].leavingSealed == nil {
		t.Error("the proof of what is known is not kept")
	}
	delete(m.state.nodes, "early")

	delete(m.alive, "old")
	m.know(&Want{Peers: []Peer{{Name: "old"}}})
	clear(understood)
	if err := splitState(m.state.whole(), count); err != nil || understood[kindLeaving]+understood[kindFacts] != 0 {
		t.Errorf("with nobody left who does not understand: %v, %v", understood, err)
	}
}

// A member with the gossip key, but not that of another node, is heard by all and moves
// nothing in that node's name.
func TestImpostorAmongTheMembers(t *testing.T) {
	f := newFleet(t, 31, 3)
	all := make([]*Members, 3)
	for i := range all {
		all[i], _ = f.start(i, f.keyFile)
		all[i].trust.mu.Lock()
		all[i].trust.patience = 0
		all[i].trust.mu.Unlock()
	}
	keys := Keys{}
	for i, m := range all {
		keys[f.peers[i].Name] = []ed25519.PublicKey{m.PublicKey()}
	}
	for _, m := range all {
		m.SetKeys(keys)
	}
	for _, m := range all {
		eventually(t, "all meet", func() bool { v := m.View(); return len(v.Alive) == 3 && len(v.Facts) == 3 })
	}
	victim, impostor := all[0], all[2]
	w := f.want(0)
	w.Claims = map[netip.Addr]int64{address(1): 4}
	victim.Set(w)
	eventually(t, "the claim of n1 is heard", func() bool { return all[1].View().Claims[address(1)].Node == "n1" })
	eventually(t, "nobody signs nothing", func() bool { return !impostor.state.mixed.Load() })

	forged := claimMessages("n1", []claimed{{address(1), 9}, {address(2), 1}})
	impostor.broadcast(append(forged, newState("n1").sign(forged[0]).bytes))
	other := f.want(2)
	other.Claims = map[netip.Addr]int64{address(3): 1} // what comes after it
	impostor.Set(other)
	for _, m := range all[:2] {
		eventually(t, "the impostor speaks for itself", func() bool { return m.View().Claims[address(3)].Node == "n3" })
	}
	for i, m := range all[:2] {
		eventually(t, "it is told", func() bool { _, told := m.Forgeries()["n1"]; return told })
		if v := m.View(); v.Claims[address(1)].Epoch != 4 || v.Claims[address(2)].Node != "" {
			t.Errorf("n%d believes the impostor: %v", i+1, v.Claims)
		}
	}
}

// Claims that their nodes sign end everywhere as those that they do not: per address
// the best, whatever the order and the detours, and whether or not all understand.
func TestSignedClaimsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mixed := rapid.Bool().Draw(t, "mixed")
		nodes := map[string]*state{}
		for _, name := range []string{"n0", "n1", "n2", "a", "b", "c"} {
			nodes[name] = unmixed(name)
			nodes[name].mixed.Store(mixed)
		}
		best := map[netip.Addr]announce.Claim{}
		var packets [][]byte
		for i := range rapid.IntRange(1, 6).Draw(t, "messages") {
			name, claims := fmt.Sprintf("n%d", i%3), map[netip.Addr]int64{}
			for _, c := range genClaims(t) {
				claims[c.address] = max(claims[c.address], c.epoch)
				if claim := (announce.Claim{Epoch: c.epoch, Node: name}); claim.Beats(best[c.address]) {
					best[c.address] = claim
				}
			}
			packets = append(packets, nodes[name].claim(claims)...)
		}
		tell := func(s *state, b []byte) (pass [][]byte) {
			m, err := parse(b, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > maxMessage {
				t.Fatalf("a packet of %d bytes", len(b))
			}
			if m.sealed != nil && !m.sealed.isBy([]ed25519.PublicKey{publicOf(nodes[m.node])}) {
				t.Fatal("a signature is broken on its way")
			}
			if s.isNews(m, true) {
				pass, _ = s.merge(m, true)
			}
			return pass
		}
		for _, b := range rapid.Permutation(packets).Draw(t, "order") {
			for _, p := range tell(nodes["a"], b) { // b hears only what a passes on
				tell(nodes["b"], p)
			}
		}
		if err := splitState(nodes["b"].whole(), func(b []byte) { tell(nodes["c"], b) }); err != nil { // c compares notes with b
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			var v View
			if nodes[name].fill(&v, &View{}); fmt.Sprint(v.Claims) != fmt.Sprint(best) {
				t.Fatalf("%s has %v, want %v", name, v.Claims, best)
			}
		}
	})
}

// A signed message stays whole as long as one of its claims stands. The others in it
// do not come back to life, years later, at a node that has forgotten their address.
func TestOldMessagesBringNoClaimsBack(t *testing.T) {
	n2, s := unmixed("n2"), unmixed("a")
	kept, gone := address(1), address(2)
	inner := claimMessages("n2", []claimed{{kept, 1}, {gone, 1}})[0]
	long := uint64(time.Now().Add(-2 * forgetAfter).UnixMicro())
	old, err := parse(seal(n2.key, "n2", long, inner).bytes, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.merge(old, true)
	s.know(map[netip.Addr]struct{}{kept: {}}, nil, time.Now())
	for _, b := range n2.tell(announce.Facts{}, 5) {
		m, err := parse(b, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.merge(m, true)
	}
	s.know(map[netip.Addr]struct{}{kept: {}}, nil, time.Now().Add(forgetAfter+time.Second))
	s.merge(old, true)
	if _, ok := s.claims[gone]; ok || s.claims[kept].Node != "n2" {
		t.Errorf("claims %v", s.claims)
	}
}

// Whoever is told what it knows verifies nothing: a signature costs more than all the
// rest of a message.
func TestWhatIsKnownIsNotVerified(t *testing.T) {
	n2, m := unmixed("n2"), listener(t)
	m.SetKeys(Keys{"n2": {publicOf(n2)}})
	packets := append(n2.tell(announce.Facts{}, 5), n2.claim(map[netip.Addr]int64{address(1): 1})...)
	hears(t, m, packets...)
	m.SetKeys(Keys{"n2": {publicOf(unmixed("n2"))}}) // nothing can be verified any more
	hears(t, m, packets...)
	if len(m.trust.held) > 0 {
		t.Error("it is verified again")
	}
}

func BenchmarkSignedClaims(b *testing.B) {
	n2 := unmixed("n2")
	claims := map[netip.Addr]int64{}
	for i := range 100 {
		claims[address(byte(i))] = 1
	}
	packet := n2.claim(claims)[0]
	keys := []ed25519.PublicKey{publicOf(n2)}
	b.Run("known", func(b *testing.B) {
		s := unmixed("a")
		for b.Loop() {
			m, err := parse(packet, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			if s.isNews(m, true) && m.sealed.isBy(keys) {
				s.merge(m, true)
			}
		}
	})
	b.Run("news", func(b *testing.B) {
		for b.Loop() {
			m, err := parse(packet, time.Now())
			if err != nil || !m.sealed.isBy(keys) {
				b.Fatal(err)
			}
		}
	})
}
