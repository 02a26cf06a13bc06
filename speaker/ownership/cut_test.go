package ownership

import (
	"net/netip"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// holdsAll is a machine of n1 that holds every address, and has met n2, and its
// world.
func holdsAll(t *testing.T) (*Machine, World) {
	t.Helper()
	var says []v1alpha1.Announcing
	for i := range objects.Services {
		says = append(says, v1alpha1.Announcing{Service: "default/s0", Address: objects.VIP(i), Protocol: "l2", Epoch: 2})
	}
	m, w := together(speaks("n1", ownMAC, "10.0.0.1/24", says...))
	if out := m.Step(began(), w); len(out.LAN.Addresses) != objects.Services || len(out.Ask) > 0 {
		t.Fatalf("answered for: %v, asked: %v", out.LAN.Addresses, out.Ask)
	}
	return m, w
}

// A node loses all others, or none answers it any more, and has nothing to take from them.
// It asks for a sign of life, and where there is none, twice, it is silent, and asks for
// what it holds.
func TestWhoHearsNobodyIsSilent(t *testing.T) {
	t.Run("it is dead for gossip", func(t *testing.T) {
		hearsNobody(t, func(of *Members) { delete(of.Alive, "n2") })
	})
	t.Run("it is doubted", func(t *testing.T) {
		hearsNobody(t, func(of *Members) { of.Doubted = map[string]struct{}{"n2": {}} })
	})
}

func hearsNobody(t *testing.T, lose func(of *Members)) {
	a := netip.MustParseAddr(objects.VIP(0))
	m, w := holdsAll(t)
	now := began()
	step := func(events ...Event) *Output {
		now = now.Add(100 * time.Millisecond)
		return m.Step(now, w, events...)
	}
	w.Members = w.Members.copied()
	lose(w.Members)
	out := step()
	if len(out.Ask) != 1 || len(out.Ask[0].Takes) > 0 || out.Ask[0].Nodes["n2"] != netip.MustParseAddr("10.0.0.2") {
		t.Fatalf("alone, and asks %+v", out.Ask)
	}
	if again := step(); len(again.Ask) > 0 {
		t.Errorf("it asks %+v before the answer is there", again.Ask)
	}
	out = step(&Finding{Inquiry: out.Ask[0], Deaf: true})
	if len(out.Ask) != 1 || len(out.LAN.Addresses) != objects.Services {
		t.Fatalf("one question without an answer: asks %+v, answers for %d addresses", out.Ask, len(out.LAN.Addresses))
	}
	out = step(&Finding{Inquiry: out.Ask[0], Deaf: true})
	if len(out.LAN.Addresses) > 0 || len(out.Members.Claims) != objects.Services {
		t.Errorf("cut off, it answers for %v and claims %v", out.LAN.Addresses, out.Members.Claims)
	}
	if len(out.Ask) != 1 || out.Ask[0].Takes[a].Cause != announce.Returned || out.Ask[0].Timing != continuous() {
		t.Fatalf("cut off, it asks %+v", out.Ask)
	}
	asked := out.Ask[0]
	if out = step(&Finding{Inquiry: asked, Deaf: true}); len(out.LAN.Addresses) > 0 || out.Wake.Sub(now) > retryDeaf {
		t.Errorf("still cut off, it answers for %v, and wakes in %v", out.LAN.Addresses, out.Wake.Sub(now))
	}
	if out = step(); len(out.Ask) != 1 {
		t.Errorf("still cut off, it asks %+v", out.Ask)
	}
	// It is back: one address is n2's by now, and nobody has the others.
	out = step(&Finding{Inquiry: asked, Found: map[netip.Addr]Found{a: {Interface: "eth0", MAC: ownerMAC}}})
	if _, answers := out.LAN.Addresses[a]; answers || len(out.LAN.Addresses) != objects.Services-1 {
		t.Errorf("back again, it answers for %v", out.LAN.Addresses)
	}
	w.Members = w.Members.copied()
	w.Members.Alive["n2"], w.Members.Doubted = struct{}{}, nil
	w.Members.Claims[a] = announce.Claim{Epoch: 3, Node: "n2"}
	if out = step(); len(out.LAN.Addresses) != objects.Services-1 || len(out.Members.Claims) != objects.Services-1 {
		t.Errorf("n2 is back, and this node answers for %v", out.LAN.Addresses)
	}
}

// Who loses all others and hears that the LAN works goes on, and asks once; so does
// one that cannot ask.
func TestTheLastOneAsksOnce(t *testing.T) {
	for name, f := range map[string]Finding{
		"a neighbour answers": {Found: map[netip.Addr]Found{netip.MustParseAddr("10.0.0.200"): {Interface: "eth0", MAC: otherMAC}}},
		"somebody asks":       {},
	} {
		m, w := holdsAll(t)
		delete(w.Members.Alive, "n2")
		out := m.Step(began().Add(time.Second), w)
		if len(out.Ask) != 1 {
			t.Fatalf("%s: asks %+v", name, out.Ask)
		}
		f.Inquiry = out.Ask[0]
		for i := range 3 {
			out = m.Step(began().Add(time.Duration(i+2)*time.Second), w, &f)
			if len(out.Ask) > 0 || len(out.LAN.Addresses) != objects.Services {
				t.Errorf("%s: asks %+v, answers for %d addresses", name, out.Ask, len(out.LAN.Addresses))
			}
		}
	}
}

// A LAN that loses most packets is not one that this node is cut off from: now and
// then somebody is heard.
func TestALossyLANIsNoCut(t *testing.T) {
	m, w := holdsAll(t)
	w.Members = w.Members.copied()
	delete(w.Members.Alive, "n2")
	found := map[netip.Addr]Found{netip.MustParseAddr("10.0.0.200"): {Interface: "eth0", MAC: otherMAC}}
	out := m.Step(began().Add(time.Second), w)
	for i := range 5 {
		if len(out.Ask) != 1 {
			t.Fatalf("asks %+v", out.Ask)
		}
		out = m.Step(began().Add(time.Duration(i+2)*time.Second), w, &Finding{Inquiry: out.Ask[0], Found: found, Deaf: true})
		if len(out.LAN.Addresses) != objects.Services {
			t.Fatalf("it answers for %d addresses", len(out.LAN.Addresses))
		}
	}
}
