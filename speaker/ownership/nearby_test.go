package ownership

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
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
		again time.Duration
	}{
		{"its kernel answers", Finding{Found: map[netip.Addr]Found{at: answers(ownerMAC)}}, false, retryDoubt},
		{"its speaker answers", Finding{Found: map[netip.Addr]Found{a: answers(ownerMAC)}}, false, retryDoubt},
		{"it asks others", Finding{Found: map[netip.Addr]Found{at: {Interface: "eth1", MAC: ownerMAC}}}, true, 0},
		{"it announces the address", Finding{Found: map[netip.Addr]Found{a: {Interface: "eth1", MAC: ownerMAC}}}, true, 0},
		{"a stranger announces the address", Finding{Found: map[netip.Addr]Found{a: {Interface: "eth1", MAC: otherMAC}}}, false, retryForeign},
		{"others answer", Finding{Found: map[netip.Addr]Found{netip.MustParseAddr("10.0.0.99"): answers(otherMAC)}}, true, 0},
		{"nobody answers", Finding{Deaf: true}, false, retryMember},
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
		if asksFor(out, a) {
			t.Errorf("%s: it asks again at once", c.name)
		}
		if again := max(0, m.lan.deferred[a].until.Sub(m.now)); again != c.again {
			t.Errorf("%s: it asks again in %v, wanted %v", c.name, again, c.again)
		}
	}
}

// TestNobodyIsAskedByAll: each asks those that follow it by name, and of who is to lose an
// address also if others come before it.
func TestNobodyIsAskedByAll(t *testing.T) {
	const nodes = 2 * maxNearby
	m, w := together()
	w.Cluster = snapshot.Of(objects.Fleet(nodes)...)
	w.Link.Interfaces = []announce.Interface{link("eth0", "02:00:00:00:01:01", "10.0.0.1/28"), link("eth1", ownMAC, "10.0.0.101/24")}
	members := *w.Members
	members.Alive, members.Facts = map[string]struct{}{}, map[string]announce.Facts{}
	w.Members = &members
	at := func(i int) Host {
		return Host{netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)}), fmt.Sprintf("02:00:00:00:02:%02x", i)}
	}
	for i := 1; i <= nodes; i++ {
		members.Alive[objects.Node(i).Name] = struct{}{}
		members.Facts[objects.Node(i).Name] = announce.Facts{Interfaces: []announce.Interface{link("eth1", at(i).MAC, at(i).Address.String()+"/24")}}
	}
	for me, want := range map[int][]int{
		1:  {10, 11, 12, 13, 14, 15, 16, 2}, // in the order of names, n10 follows n1
		16: {2, 3, 4, 5, 6, 7, 8, 9},
		7:  {8, 9, 1, 10, 11, 12, 13, 14},
	} {
		m.opts.Node = objects.Node(me).Name
		w.Link.Interfaces[1].Prefixes = members.Facts[m.opts.Node].Interfaces[0].Prefixes
		m.Step(began(), w)
		own := &m.self.Interfaces[1]
		var hosts []Host
		for _, i := range want {
			hosts = append(hosts, at(i))
		}
		if got := m.hostsOn(own); !slices.Equal(got, hosts) {
			t.Errorf("n%d asks %v, wanted %v", me, got, hosts)
		}
		for loser, more := range map[int]bool{3: !slices.Contains(want, 3), 12: !slices.Contains(want, 12), me: false} {
			q := &Inquiry{Nearby: map[string][]Host{"eth1": slices.Clone(hosts)}, Takes: map[netip.Addr]announce.Take{netip.MustParseAddr(objects.VIP(0)): {From: objects.Node(loser).Name}}}
			expect := map[string][]Host{"eth1": slices.Clone(hosts)}
			if more {
				expect["eth1"] = append(expect["eth1"], at(loser))
			}
			if m.nameLosers(q); !reflect.DeepEqual(q.Nearby, expect) {
				t.Errorf("n%d, which takes from n%d, asks %v", me, loser, q.Nearby)
			}
		}
	}
}
