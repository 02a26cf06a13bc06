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
