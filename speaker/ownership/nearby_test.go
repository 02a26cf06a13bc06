package ownership

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// link is an interface that is up.
func link(name, mac string, prefixes ...string) announce.Interface {
	i := announce.Interface{Name: name, MAC: mac, Up: true}
	for _, p := range prefixes {
		i.Prefixes = append(i.Prefixes, netip.MustParsePrefix(p))
	}
	return i
}

// Who is to be asked for signs of life, and where. n1 is at 10.0.0.1, and the
// addresses of layer 2 are in 10.0.0.0/24 and 2001:db8:0:1::/64.
func TestWhoIsNearby(t *testing.T) {
	at := func(a, mac string) Host { return Host{netip.MustParseAddr(a), mac} }
	gossip := link("eth0", "02:00:00:00:01:01", "10.0.0.1/28")
	for _, c := range []struct {
		name       string
		own, their []announce.Interface
		want       map[string][]Host
	}{
		{name: "gossip and addresses on one network", own: []announce.Interface{link("eth0", ownMAC, "10.0.0.1/24")}, their: []announce.Interface{link("eth0", ownerMAC, "10.0.0.2/24")}},
		{name: "a network without addresses", own: []announce.Interface{gossip, link("eth1", ownMAC, "192.168.7.1/24")}, their: []announce.Interface{link("eth1", ownerMAC, "192.168.7.2/24")}},
		{
			name: "a LAN of its own, of both families",
			own:  []announce.Interface{gossip, link("eth1", ownMAC, "10.0.0.21/24", "2001:db8:0:1::21/64")},
			their: []announce.Interface{
				link("eth1", ownerMAC, "10.0.0.22/24", "10.0.0.32/24", "2001:db8:0:1::22/64"),
				link("eth2", otherMAC, "192.168.7.2/24"),
			},
			want: map[string][]Host{"eth1": {at("10.0.0.22", ownerMAC), at("2001:db8:0:1::22", ownerMAC)}},
		},
		{
			name: "a LAN that is down here", own: []announce.Interface{gossip, {Name: "eth1", MAC: ownMAC, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.21/24")}}},
			their: []announce.Interface{link("eth1", ownerMAC, "10.0.0.22/24")},
		},
		{
			name: "a LAN that is down there", own: []announce.Interface{gossip, link("eth1", ownMAC, "10.0.0.21/24")},
			their: []announce.Interface{{Name: "eth1", MAC: ownerMAC, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.22/24")}}},
			want:  map[string][]Host{"eth1": nil},
		},
		{
			name: "one that claims an address of ours", own: []announce.Interface{gossip, link("eth1", ownMAC, "10.0.0.21/24")},
			their: []announce.Interface{link("eth1", ownerMAC, "10.0.0.21/24")},
			want:  map[string][]Host{"eth1": nil},
		},
	} {
		m, w := together()
		w.Link.Interfaces = c.own
		w.Members = w.Members.copied()
		w.Members.Facts["n2"] = announce.Facts{Interfaces: c.their}
		out := m.Step(began(), w)
		if c.want == nil {
			c.want = map[string][]Host{}
		}
		if !reflect.DeepEqual(out.LAN.Nearby, c.want) {
			t.Errorf("%s: asked are %v, want %v", c.name, out.LAN.Nearby, c.want)
		}
	}
}

// n2 says that its LAN is deaf, and its kernel answers there: the address stays. Where
// it does not, and others do, n1 takes it, also if n2 is heard to ask and to announce.
func TestADeafNodeThatAnswersKeepsItsAddress(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	at := netip.MustParseAddr("10.0.0.22")
	answers := func(mac string) Found { return Found{Interface: "eth1", MAC: mac, Answered: true} }
	for _, c := range []struct {
		name  string
		heard Finding
		taken bool
	}{
		{"its kernel answers", Finding{Found: map[netip.Addr]Found{at: answers(ownerMAC)}}, false},
		{"its speaker answers", Finding{Found: map[netip.Addr]Found{a: answers(ownerMAC)}}, false},
		{"it asks others", Finding{Found: map[netip.Addr]Found{at: {Interface: "eth1", MAC: ownerMAC}}}, true},
		{"it announces the address", Finding{Found: map[netip.Addr]Found{a: {Interface: "eth1", MAC: ownerMAC}}}, true},
		{"a stranger announces the address", Finding{Found: map[netip.Addr]Found{a: {Interface: "eth1", MAC: otherMAC}}}, false},
		{"others answer", Finding{Found: map[netip.Addr]Found{netip.MustParseAddr("10.0.0.99"): answers(otherMAC)}}, true},
		{"nobody answers", Finding{Deaf: true}, false},
	} {
		m, w := together(holder("n2", ownerMAC, objects.VIP(0), 2))
		w.Link.Interfaces = []announce.Interface{link("eth0", "02:00:00:00:01:01", "10.0.0.1/28"), link("eth1", ownMAC, "10.0.0.21/24")}
		theirs := link("eth1", ownerMAC, "10.0.0.22/24")
		theirs.Deaf = true
		w.Members = w.Members.copied()
		w.Members.Facts["n2"] = announce.Facts{Interfaces: []announce.Interface{theirs}}
		out := m.Step(began(), w)
		i := slices.IndexFunc(out.Ask, func(q *Inquiry) bool { return q.Takes[a].Cause == announce.Deaf })
		if i < 0 || !slices.Contains(out.Ask[i].Nearby["eth1"], Host{at, ownerMAC}) || len(out.Ask[i].Nodes) > 0 {
			t.Fatalf("%s: asked %+v", c.name, out.Ask)
		}
		c.heard.Inquiry = out.Ask[i]
		out = m.Step(began().Add(60*time.Millisecond), w, &c.heard)
		if _, taken := out.LAN.Addresses[a]; taken != c.taken {
			t.Errorf("%s: taken: %v", c.name, taken)
		}
	}
}
