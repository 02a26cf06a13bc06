package members

import (
	"net/netip"
	"testing"

	"quayside.io/speaker/announce"
)

// A view has the maps of the one before as long as they say the same, and new ones as
// soon as anything is known that they do not say.
func TestAViewIsMadeOfTheOneBefore(t *testing.T) {
	s, a := newState("a"), netip.MustParseAddr("10.0.0.1")
	link := announce.Interface{Name: "eth0", Up: true}
	fill := func(before *View) *View {
		v := &View{}
		s.fill(v, before)
		return v
	}
	before := fill(&View{})
	for _, step := range []struct {
		name          string
		do            func()
		claims, facts bool // are others than before
	}{
		{name: "nothing", do: func() {}},
		{"b claims", func() { s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{a, 1}}}, true) }, true, false},
		{"b says it again", func() { s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{a, 1}}}, true) }, false, false},
		{"b claims more", func() { s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{a, 2}}}, true) }, true, false},
		{"b has an interface", func() {
			s.merge(message{kind: kindFacts, node: "b", version: 1, ifaces: []announce.Interface{link}}, true)
		}, false, true},
		{"it is the same, newly told", func() {
			s.merge(message{kind: kindFacts, node: "b", version: 2, ifaces: []announce.Interface{link}}, true)
		}, false, true},
		{"b leaves", func() { s.merge(message{kind: kindLeaving, node: "b", version: 3, leaving: bitLeaving}, true) }, false, true},
		{"b hands an address over", func() {
			s.merge(message{kind: kindLeaving, node: "b", version: 4, leaving: bitLeaving, handsOver: map[netip.Addr]announce.Claim{a: {Epoch: 3, Node: "c"}}}, true)
		}, false, true},
		{"c has a better claim", func() { s.merge(message{kind: kindClaims, node: "c", claims: []claimed{{a, 3}}}, true) }, true, false},
	} {
		step.do()
		next := fill(before)
		mark := netip.MustParseAddr("192.0.2.1")
		before.Claims[mark], before.Facts["mark"] = announce.Claim{}, announce.Facts{}
		_, sameClaims := next.Claims[mark]
		_, sameFacts := next.Facts["mark"]
		delete(before.Claims, mark)
		delete(before.Facts, "mark")
		if sameClaims == step.claims || sameFacts == step.facts {
			t.Errorf("%s: the same claims %v, the same facts %v", step.name, sameClaims, sameFacts)
		}
		if anew := fill(&View{}); len(anew.Claims) != len(next.Claims) || anew.Claims[a] != next.Claims[a] || len(anew.Facts) != len(next.Facts) {
			t.Errorf("%s: %v and %v, and anew %v and %v", step.name, next.Claims, next.Facts, anew.Claims, anew.Facts)
		}
		before = next
	}
}

// Whoever claims in vain what this node has is answered by the next round, and the LAN hears
// once more who has it, however often that is claimed; nobody else is.
func TestClaimsInVain(t *testing.T) {
	mine, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	s := newState("b")
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{mine, 2}}}, true)
	s.merge(message{kind: kindClaims, node: "a", claims: []claimed{{other, 2}}}, true)
	for _, test := range []struct {
		name   string
		from   string
		epoch  int64
		inVain bool
	}{
		{"an older claim", "c", 1, true},
		{"the same epoch, a lower name", "a", 2, true},
		{"this node's own", "b", 2, false},
		{"a better one", "c", 2, false},
	} {
		m := message{kind: kindClaims, node: test.from, claims: []claimed{{mine, test.epoch}, {other, 1}}}
		told, before := s.contested(m), s.rounds[mine]
		answers := 0
		for range 100 {
			s.merge(m, true)
		}
		if again := s.isNews(m, true); again {
			t.Errorf("%s is news again before it is answered", test.name)
		}
		for range 2 {
			answers += len(s.answers())
		}
		if answers > 2 || answers > 0 != test.inVain { // signed and unsigned
			t.Errorf("%s gets %d answers", test.name, answers)
		}
		if inVain := len(told) == 1 && told[0] == mine; inVain != test.inVain || len(told) > 1 {
			t.Errorf("%s: told of %v", test.name, told)
		}
		if again := s.rounds[mine] - before; again > 1 || again == 1 != test.inVain {
			t.Errorf("%s: announced again %d times", test.name, again)
		}
	}
}
