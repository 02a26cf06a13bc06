package members

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"quayside.io/cluster/gossipkey"
	"quayside.io/speaker/announce"
)

func TestProfilesKeepTheirPromise(t *testing.T) {
	type promise struct{ watched, told, worst time.Duration }
	for profile, want := range map[string]promise{
		"default": {300 * time.Millisecond, 450 * time.Millisecond, 1600 * time.Millisecond},
		"fast":    {110 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond},
	} {
		tm, err := timings(profile)
		if err != nil {
			t.Fatal(err)
		}
		if is := (promise{tm.watched(), tm.told(), tm.worst()}); is.watched > want.watched || is.told > want.told || is.worst > want.worst {
			t.Errorf("%s: until an address has moved %v, promised %v", profile, is, want)
		}
		if 2*tm.timeout >= tm.probe {
			t.Errorf("%s: a relay cannot refuse within a probe", profile)
		}
		// What memberlist makes of it must be what the comment says.
		c := memberlist.DefaultLANConfig()
		tm.configure(c)
		if c.SuspicionMult > 2 || c.SuspicionMaxTimeoutMult != 1 {
			t.Errorf("%s: memberlist would wait for confirmations", profile)
		}
	}
	if _, err := timings("slow"); err == nil {
		t.Error("an unknown profile was accepted")
	}
}

func genClaims(t *rapid.T) []claimed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) claimed {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 5).Draw(t, "address"))})
		if rapid.Bool().Draw(t, "v6") {
			a = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(rapid.IntRange(0, 5).Draw(t, "address"))})
		}
		return claimed{a, int64(rapid.IntRange(1, 4).Draw(t, "epoch"))}
	}), 0, 200).Draw(t, "claims")
}

func TestMessagesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "node")
		claims := genClaims(t)
		var got []claimed
		for _, b := range claimMessages(node, claims) {
			if len(b) > maxMessage {
				t.Fatalf("message of %d bytes", len(b))
			}
			m, err := parse(b, time.Now())
			if err != nil || m.node != node {
				t.Fatal(m, err)
			}
			got = append(got, m.claims...)
		}
		if fmt.Sprint(got) != fmt.Sprint(claims) {
			t.Fatalf("got %v, want %v", got, claims)
		}
	})
}

// Whatever the order, the repetitions and the detours, all end with the same:
// per address the claim that beats all others.
func TestClaimsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		best := map[netip.Addr]announce.Claim{}
		var messages []message
		for i := range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := message{kind: kindClaims, node: fmt.Sprintf("n%d", i%3), claims: genClaims(t)}
			messages = append(messages, m)
			for _, c := range m.claims {
				if claim := (announce.Claim{Epoch: c.epoch, Node: m.node}); claim.Beats(best[c.address]) {
					best[c.address] = claim
				}
			}
		}
		a, b, c := newState("a"), newState("b"), newState("c")
		for _, m := range rapid.Permutation(messages).Draw(t, "order at a") {
			a.merge(m, true)
		}
		for _, m := range append(rapid.Permutation(messages).Draw(t, "order at b"), messages...) {
			pass, _ := b.merge(m, true)
			for _, p := range pass { // c hears only what b passes on
				m, err := parse(p, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				c.merge(m, true)
			}
		}
		d := newState("d") // and d only compares notes with a
		if err := splitState(a.whole(), func(p []byte) {
			if m, err := parse(p, time.Now()); err == nil {
				d.merge(m, true)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*state{a, b, c, d} {
			var v View
			s.fill(&v, &View{})
			if fmt.Sprint(v.Claims) != fmt.Sprint(best) {
				t.Fatalf("%s has %v, want %v", s.me, v.Claims, best)
			}
		}
	})
}

// A speaker of the version before says less, and hears less.
func TestFlagsMayBeMissing(t *testing.T) {
	whole, err := (&message{kind: kindLeaving, node: "n1", version: 3, leaving: bitLeaving, flags: bitBehind, life: 5}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for missing, want := range map[int]message{10: {leaving: bitLeaving}, 9: {leaving: bitLeaving, flags: bitBehind}} {
		m, err := parse(whole[:len(whole)-missing], time.Now())
		if err != nil || m.leaving != want.leaving || m.flags != want.flags || m.life != 0 {
			t.Errorf("without %d bytes: %+v, %v", missing, m, err)
		}
	}
	m, err := parse(append(whole, 7, 7), time.Now())
	if err != nil || m.leaving != bitLeaving || m.flags != bitBehind || m.life != 5 {
		t.Errorf("with more to come: %+v, %v", m, err)
	}
}

// That a node has no interfaces is something else than that it has not looked.
func TestNoInterfacesAreTold(t *testing.T) {
	for name, ifaces := range map[string][]announce.Interface{"not known": nil, "none": {}} {
		if got := heardOf(t, newState("n2"), newState("n1").tell(announce.Facts{Interfaces: ifaces}, 1)).Facts["n1"].Interfaces; len(got) > 0 || (got == nil) != (ifaces == nil) {
			t.Errorf("%s is heard as %#v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(claimMessages("n1", []claimed{{netip.MustParseAddr("10.0.0.1"), 7}})[0])
	for _, m := range []message{{kind: kindLeaving, node: "n1", version: 3, leaving: bitLeaving | bitDrained, flags: bitBehind, life: 7}, {kind: kindLeaving, node: "n1", version: 4, life: 7, handsOver: handsOver(2)}, {kind: kindFacts, node: "n1", version: 3, ifaces: []announce.Interface{{Name: "eth0"}}}, {kind: kindAsk, node: "n1", about: "n2"}} {
		b, err := m.append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{kindClaims, 200})
	signer := newState("n1")
	signed := signer.claim(map[netip.Addr]int64{netip.MustParseAddr("10.0.0.1"): 7})[0]
	f.Add(signed)
	f.Add(append(signed[:4+saidLen:4+saidLen], signed...)) // a signature within a signature
	key := []ed25519.PublicKey{signer.key.Public().(ed25519.PublicKey)}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b, time.Now())
		if err == nil {
			if m.sealed != nil && m.sealed.isBy(key) != bytes.Equal(b, signed) {
				t.Errorf("another message is believed to be signed: %x", b)
			}
			s := newState("me")
			s.isNews(m, true)
			s.merge(m, true)
			s.whole()
		}
		_ = splitState(b, func([]byte) {})
	})
}

func TestMembersMeetClaimAndPart(t *testing.T) {
	f := newFleet(t, 1, 3)
	a, _ := f.start(0, f.keyFile)
	b, stopB := f.start(1, f.keyFile)
	eventually(t, "a and b meet", func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 })
	if why := a.View().Missing["n3"]; why == "" {
		t.Error("nothing is said of the peer that is not there")
	}
	eventually(t, "a settles without n3", func() bool { return a.View().Settled })

	// A third dies without a word.
	list := f.mortal(2)
	eventually(t, "c is met", func() bool { return len(a.View().Alive) == 3 && len(b.View().Alive) == 3 })
	died := time.Now()
	if err := list.Shutdown(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "c is missed", func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 })
	t.Logf("death known to both after %v", time.Since(died).Round(time.Millisecond))

	vip := netip.MustParseAddr("10.0.0.50")
	w := f.want(0)
	w.Claims = map[netip.Addr]int64{vip: 4}
	w.Facts.Leaving = true
	a.Set(w)
	claimed := time.Now()
	eventually(t, "b hears of the claim", func() bool { return b.View().Claims[vip] == announce.Claim{Epoch: 4, Node: "n1"} })
	t.Logf("claim heard after %v", time.Since(claimed).Round(time.Millisecond))
	eventually(t, "b hears that a leaves", func() bool { return b.View().Facts["n1"].Leaving })
	if got := b.View().Facts["n1"].Interfaces; len(got) != 1 || got[0].MAC != "mac of n1" {
		t.Errorf("b knows %+v of a", got)
	}
	drained := f.want(1)
	drained.Facts.Drained, drained.Facts.Behind = true, true
	b.Set(drained)
	eventually(t, "a hears that the node of b is drained, and behind", func() bool {
		told := a.View().Facts["n2"]
		return told.Drained && told.Behind && !told.Leaving
	})
	b.Set(f.want(1))
	eventually(t, "a hears that it is not any more", func() bool { return !a.View().Facts["n2"].Drained && !a.View().Facts["n2"].Behind })
	leaving := f.want(1)
	leaving.Facts.Leaving = true
	b.Set(leaving)
	eventually(t, "a hears that b leaves", func() bool { return a.View().Facts["n2"].Leaving })
	stopB()
	eventually(t, "a hears the goodbye", func() bool { return a.View().Missing["n2"] == "it has left" })
}

// What is claimed after a death is told to the living: a message goes out but a
// few times, and none of them is to be wasted on the dead.
func TestClaimsReachTheLiving(t *testing.T) {
	f := newFleet(t, 10, 3)
	f.profile = "default" // a busy machine makes members of profile fast lose each other
	a, _ := f.start(0, f.keyFile)
	b, _ := f.start(1, f.keyFile)
	list := f.mortal(2)
	eventually(t, "all meet", func() bool { return len(a.View().Alive) == 3 && len(b.View().Alive) == 3 })
	if err := list.Shutdown(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "c is missed", func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 })
	w := f.want(0)
	for round := range 10 {
		w.Claims = map[netip.Addr]int64{}
		for i := range 1000 {
			w.Claims[netip.AddrFrom4([4]byte{10, byte(round), byte(i / 250), byte(i % 250)})] = 1
		}
		next := *w
		a.Set(&next)
		began := time.Now()
		eventually(t, fmt.Sprintf("b hears of %d thousand claims", round+1), func() bool { return len(b.View().Claims) == 1000*(round+1) })
		t.Logf("a thousand claims heard after %v", time.Since(began).Round(time.Millisecond))
	}
}

// Nodes that have only IPv6 addresses meet, too.
func TestANodeIsReachedByItsFamily(t *testing.T) {
	for _, self := range []string{"127.77.9.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(self, "0"))
		if err != nil {
			t.Skipf("this machine cannot listen on %s: %v", self, err)
		}
		_ = l.Close()
		f := newFleet(t, 9, 0)
		f.peers = []Peer{{"n1", netip.MustParseAddr(self)}}
		m := f.make(0, f.keyFile)
		m.host = "" // as with --members-bind :7946
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = m.Run(ctx) }()
		eventually(t, self+" is listened on", func() bool {
			return m.Probe(ctx, f.peers[0].Addr, time.Second) == Listening
		})
		cancel()
		<-done
	}
}

// The component declares after every step, also where nothing has changed. Were it
// woken by its own words it would turn for ever.
func TestSayingTheSameAgainWakesNobody(t *testing.T) {
	f := newFleet(t, 6, 1)
	m, _ := f.start(0, f.keyFile)
	vip := netip.MustParseAddr("10.0.0.50")
	say := func(epoch int64) {
		w := f.want(0)
		w.Claims = map[netip.Addr]int64{vip: epoch}
		m.Set(w)
	}
	say(1)
	eventually(t, "the claim is in the view", func() bool { return m.View().Settled && m.View().Claims[vip].Epoch == 1 })
	quiet := func() bool {
		select {
		case <-m.Watch():
			return false
		case <-time.After(100 * time.Millisecond):
			return true
		}
	}
	eventually(t, "what the start caused is over", quiet)
	say(1)
	if !quiet() {
		t.Error("a claim that was known woke the component")
	}
	say(2)
	select {
	case <-m.Watch():
	case <-time.After(10 * time.Second):
		t.Error("a new claim went unnoticed")
	}
}

func TestAnotherKeyIsToldByName(t *testing.T) {
	f := newFleet(t, 2, 2)
	other := filepath.Join(t.TempDir(), "other")
	f.writeKey(other, "a secret of somebody else")
	a, _ := f.start(0, f.keyFile)
	b, _ := f.start(1, other)
	eventually(t, "both settle alone", func() bool { return a.View().Settled && b.View().Settled })
	if n := len(a.View().Alive); n != 1 {
		t.Errorf("%d alive with two keys", n)
	}
	eventually(t, "a reason", func() bool { return a.View().Missing["n2"] != "" && a.View().Missing["n2"] != "not met yet" })
	t.Log(a.View().Missing["n2"])
}

// printsOf are the words for the keys of these secrets.
func printsOf(secrets []string) (words []string) {
	for _, secret := range secrets {
		key, err := gossipkey.Derive([]byte(secret))
		if err != nil {
			return nil
		}
		words = append(words, gossipkey.Print(key))
	}
	return words
}

func TestKeysRotateWithoutAGap(t *testing.T) {
	f := newFleet(t, 3, 2)
	fileA, fileB := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	const old, next = "the first secret of all", "the second secret is better"
	f.writeKey(fileA, old)
	a, _ := f.start(0, fileA) // b's file does not exist yet
	b, _ := f.start(1, fileB)
	eventually(t, "b says what it waits for", func() bool { return strings.Contains(b.View().Waiting, fileB) })
	f.writeKey(fileB, old)
	together := func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 }
	eventually(t, "they meet", together)
	epoch := int64(0)
	heard := func(step string) {
		epoch++
		w := f.want(0)
		w.Claims = map[netip.Addr]int64{netip.MustParseAddr("10.0.0.1"): epoch}
		a.Set(w)
		eventually(t, step, func() bool { return b.View().Claims[netip.MustParseAddr("10.0.0.1")].Epoch == epoch })
		// Either may miss the other for a moment where the machine is busy; but no
		// packet may be one that it cannot open.
		if f.logged("member refused") > 0 {
			t.Fatalf("%s: a key was missing", step)
		}
	}
	for rotations, step := range [][2][]string{
		{{old, next}, {old}}, {{old, next}, {old, next}}, {{next, old}, {old, next}}, {{next, old}, {next, old}}, {{next}, {next, old}}, {{next}, {next}},
	} {
		f.writeKey(fileA, step[0]...)
		f.writeKey(fileB, step[1]...)
		eventually(t, "the file that changed is noticed", func() bool { return f.logged("members keys rotated") > rotations })
		// Each says which keys it has by now, and which of them it writes with.
		eventually(t, "both say their keys", func() bool {
			return slices.Equal(a.KeyPrints(), printsOf(step[0])) && slices.Equal(b.KeyPrints(), printsOf(step[1]))
		})
		heard(fmt.Sprint(step))
	}
}

func TestABusyPortIsTold(t *testing.T) {
	f := newFleet(t, 4, 1)
	a, _ := f.start(0, f.keyFile)
	eventually(t, "a listens", func() bool { return a.View().Waiting == "" })
	err := f.make(0, f.keyFile).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--members-bind") || !strings.Contains(err.Error(), "127.77.4.1:17946") {
		t.Errorf("error %v", err)
	}
}
