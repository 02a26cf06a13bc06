package members

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
)

// passed is what s tells somebody who knows nothing.
func passed(t *testing.T, s *state) (all []byte) {
	t.Helper()
	if err := splitState(s.whole(), func(b []byte) { all = append(all, b...) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestClaimsOnAddressesThatAreGoneAreForgotten(t *testing.T) {
	s, now := newState("a"), time.Unix(1000, 0)
	gone, kept := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{gone, 1}, {kept, 1}}}, true)
	known := map[netip.Addr]struct{}{kept: {}}
	for range 3 {
		s.know(known, nil, now)
		now = now.Add(forgetAfter/2 + time.Second)
	}
	var v View
	s.fill(&v, &View{})
	if _, ok := v.Claims[gone]; ok || len(v.Claims) != 1 {
		t.Errorf("claims %v", v.Claims)
	}
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{gone, 1}}}, true)
	if bytes.Contains(passed(t, s), gone.AsSlice()) {
		t.Error("a claim on an unknown address is passed on: it would never die")
	}
}

// A Service that goes and comes back within the time finds its claims, however
// long nothing happened before it went.
func TestClaimsAreRememberedForAWhile(t *testing.T) {
	s, now := newState("a"), time.Unix(1000, 0)
	vip := netip.MustParseAddr("10.0.0.1")
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{vip, 1}}}, true)
	there, gone := map[netip.Addr]struct{}{vip: {}}, map[netip.Addr]struct{}{}
	for range 2 {
		s.know(there, nil, now)
		now = now.Add(2 * forgetAfter)
		s.know(gone, nil, now)
		now = now.Add(forgetAfter / 2)
	}
	var v View
	if s.fill(&v, &View{}); len(v.Claims) != 1 {
		t.Error("it is forgotten too soon")
	}
}

// A speaker that starts again is told what it claimed of addresses that exist, and
// of those only: what else it claimed must not stand anywhere.
func TestANewLifeHasNoClaimsOfItsOldOneOnAddressesThatAreGone(t *testing.T) {
	s := newState("a")
	gone, kept := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	says := func(version, life uint64) {
		s.merge(message{kind: kindLeaving, node: "b", version: version, life: life}, true)
	}
	claims := func() map[netip.Addr]announce.Claim {
		var v View
		s.fill(&v, &View{})
		return v.Claims
	}
	says(1, 11)
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{gone, 4}, {kept, 4}}}, true)
	s.merge(message{kind: kindClaims, node: "c", claims: []claimed{{netip.MustParseAddr("10.0.0.3"), 1}}}, true)
	s.know(map[netip.Addr]struct{}{kept: {}}, nil, time.Unix(1000, 0))
	says(2, 11)
	says(3, 0) // one that does not say
	if got := claims(); len(got) != 3 {
		t.Fatalf("one life goes on, and claims %v are left", got)
	}
	says(4, 12)
	if got := claims(); len(got) != 2 || got[kept].Node != "b" {
		t.Errorf("after a new life: claims %v, want those on addresses that exist, and of others", got)
	}
	if m := newState("a"); s.life == 0 || m.life == s.life {
		t.Errorf("lives %d and %d", s.life, m.life)
	}
}

// What a node said is forgotten some time after the node has gone: neither a
// peer nor alive. Until then it is not passed on, and who returns is believed.
func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	s, now := newState("a"), time.Unix(1000, 0)
	told := func(version uint64) {
		s.merge(message{kind: kindLeaving, node: "gone", version: version, leaving: bitLeaving}, true)
		s.merge(message{kind: kindFacts, node: "gone", version: version, ifaces: []announce.Interface{{Name: "eth0", MAC: "02:00:00:00:00:09"}}}, true)
	}
	facts := func() int {
		var v View
		s.fill(&v, &View{})
		return len(v.Facts["gone"].Interfaces)
	}
	here, all := map[string]struct{}{"a": {}, "b": {}}, map[string]struct{}{"a": {}, "b": {}, "gone": {}}
	told(1)
	s.know(nil, all, now)
	if now = now.Add(3 * forgetAfter); facts() != 1 || !bytes.Contains(passed(t, s), []byte("gone")) {
		t.Fatal("a peer is forgotten")
	}
	s.know(nil, here, now)
	if bytes.Contains(passed(t, s), []byte("gone")) {
		t.Error("what a node said that is gone is passed on: it would never die")
	}
	now = now.Add(forgetAfter / 2)
	s.know(nil, all, now) // a split that lasted, or a Node made anew
	now = now.Add(forgetAfter / 2)
	s.know(nil, here, now)
	now = now.Add(forgetAfter)
	if s.know(nil, here, now); facts() != 1 {
		t.Error("it is forgotten too soon")
	}
	now = now.Add(time.Second)
	if s.know(nil, here, now); facts() != 0 || s.remembers("gone") {
		t.Error("it is never forgotten")
	}
	told(1) // again, with the word of before: whoever knew better has forgotten, too
	s.know(nil, all, now)
	if facts() != 1 || !bytes.Contains(passed(t, s), []byte("gone")) {
		t.Error("who returns is not believed")
	}
}

// With what a node said goes the rest of what is known of it.
func TestWhoIsGoneIsNotListed(t *testing.T) {
	m, err := New(Options{NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.state.merge(message{kind: kindLeaving, node: "told", version: 1, leaving: bitLeaving}, true)
	for _, name := range []string{"told", "peer", "alive", "gone"} {
		m.lastSeen[name], m.missing[name] = time.Now(), Unanswered
	}
	m.alive["alive"] = struct{}{}
	m.know(&Want{Peers: []Peer{{Name: "peer"}}})
	for name, want := range map[string]bool{"told": true, "peer": true, "alive": true, "gone": false} {
		_, seen := m.lastSeen[name]
		if _, missing := m.missing[name]; seen != want || missing != want {
			t.Errorf("%s: seen %v, missing %v, want %v", name, seen, missing, want)
		}
	}
}

// Who has the key may invent nodes and addresses. It takes no more of our memory
// than it would take of anybody's, and what exists is heard all the same.
func TestInventionsAreBounded(t *testing.T) {
	s := newState("a")
	vip := netip.MustParseAddr("192.0.2.1")
	s.know(map[netip.Addr]struct{}{vip: {}}, map[string]struct{}{"a": {}, "b": {}}, time.Unix(1000, 0))
	for i := range 2 * maxUnknown {
		s.merge(message{kind: kindLeaving, node: fmt.Sprintf("invented-%d", i), version: 1}, true)
	}
	for i := range 2 * maxClaims / 100 {
		m := message{kind: kindClaims, node: "invented"}
		for j := range 100 {
			m.claims = append(m.claims, claimed{netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(10<<24+100*i+j)))), 1})
		}
		s.merge(m, true)
	}
	if len(s.nodes) > 2+maxUnknown || len(s.claims) > maxClaims {
		t.Errorf("%d nodes and %d claims are remembered", len(s.nodes), len(s.claims))
	}
	s.merge(message{kind: kindLeaving, node: "b", version: 1, leaving: bitLeaving}, true)
	s.merge(message{kind: kindClaims, node: "b", claims: []claimed{{vip, 1}}}, true)
	if !s.isLeaving("b") || s.claims[vip].Node != "b" {
		t.Error("a peer, or a claim on an address that exists, is not heard")
	}
}

// One claim that nothing could beat costs the others of its message nothing. A
// word that nothing could follow is not heard; and whatever is believed, its
// node can follow.
func TestOddCountersAreNotBelieved(t *testing.T) {
	now := time.Now()
	most := announce.MaxCount(now)
	var claims []claimed
	for i, epoch := range []int64{3, 0, most, most + 1, -1, 4} {
		claims = append(claims, claimed{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), epoch})
	}
	m, err := parse(claimMessages("n2", claims)[0], now)
	if want := []claimed{claims[0], claims[2], claims[5]}; err != nil || fmt.Sprint(m.claims) != fmt.Sprint(want) {
		t.Errorf("of %v were believed %v, want %v; %v", claims, m.claims, want, err)
	}
	believed := func(version uint64, now time.Time) bool {
		b, err := (&message{kind: kindLeaving, node: "n1", version: version, leaving: bitLeaving}).append(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(b, now)
		return err == nil
	}
	if believed(uint64(most)+1, now) || believed(1<<63, now) || believed(1<<64-1, now) || !believed(uint64(most), now) {
		t.Error("words of another century are believed, or those of this one are not")
	}
	n1, err := New(Options{NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n1.recall(uint64(most))
	if !believed(n1.nextVersion(), now.Add(time.Microsecond)) {
		t.Error("nobody believes a node what it says after a forged word")
	}
}

// A node with more interfaces than others believe in says as many as they do,
// rather than nothing; one that says too much is not heard.
func TestInterfacesAreBounded(t *testing.T) {
	ifaces := make([]announce.Interface, 2*maxInterfaces)
	for i := range ifaces {
		ifaces[i] = vlans(true)[i%12]
	}
	for _, b := range newState("n1").tell(announce.Facts{Interfaces: ifaces}, 1) {
		if m, err := parse(b, time.Now()); err != nil || m.kind == kindFacts && len(m.ifaces) != maxInterfaces {
			t.Errorf("%d interfaces are heard, %v", len(m.ifaces), err)
		}
	}
	prefixes := make([]netip.Prefix, maxFacts/len(`"2001:db8::1/128",`))
	for i := range prefixes {
		prefixes[i] = netip.MustParsePrefix("2001:db8::1/128")
	}
	b, err := (&message{kind: kindFacts, node: "n1", version: 1, ifaces: []announce.Interface{{Name: "eth0", Prefixes: prefixes}}}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(b, time.Now()); err == nil {
		t.Errorf("interfaces in %d bytes are believed", len(b))
	}
}
