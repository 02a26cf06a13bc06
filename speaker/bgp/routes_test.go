package bgp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"pgregory.net/rapid"
)

// table is what a router knows: the stupid twin of all the grouping and packing.
type table map[netip.Prefix]string

// receive applies an UPDATE as a router does.
func (k table) receive(t interface{ Fatalf(string, ...any) }, b []byte) (announces bool) {
	if len(b) > maxMessage || int(binary.BigEndian.Uint16(b[16:])) != len(b) {
		t.Fatalf("a message of %d bytes", len(b))
	}
	m, err := bgp.ParseBGPMessage(b)
	if err != nil {
		t.Fatalf("%v", err)
	}
	u := m.Body.(*bgp.BGPUpdate)
	prefix := func(p interface{ String() string }) netip.Prefix { return netip.MustParsePrefix(p.String()) }
	for _, p := range u.WithdrawnRoutes {
		delete(k, prefix(p))
	}
	hop, rest := "", ""
	var reach []bgp.AddrPrefixInterface
	for _, a := range u.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeMpUnreachNLRI:
			for _, p := range a.Value {
				delete(k, prefix(p))
			}
		case *bgp.PathAttributeMpReachNLRI:
			hop, reach = a.Nexthop.String(), a.Value
		case *bgp.PathAttributeNextHop:
			hop = a.Value.String()
		default:
			rest += " " + a.String()
		}
	}
	for _, p := range u.NLRI {
		k[prefix(p)] = hop + rest
	}
	for _, p := range reach {
		k[prefix(p)] = hop + rest
	}
	return len(u.NLRI)+len(reach) > 0
}

func sampleLink(external bool) *link {
	return &link{
		asn: 64500, external: external, peer: open{as4: true}, families: [2]bool{true, true},
		own: [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")},
	}
}

func sampleAttributes() []*Attributes {
	return []*Attributes{
		{}, {}, {LocalPref: 200}, {Communities: []uint32{1, 2}}, {Prepend: 3}, {NextHop: netip.MustParseAddr("10.0.0.9")},
		{LargeCommunities: slices.Repeat([]LargeCommunity{{1, 2, 3}}, 300)},
	}
}

// drawRoutes draws a list from few prefixes, so that lists meet.
func drawRoutes(t *rapid.T, name string) []Route {
	attributes := sampleAttributes()
	chosen := map[netip.Prefix]*Attributes{}
	for range rapid.IntRange(0, 40).Draw(t, name) {
		i := rapid.IntRange(0, 30).Draw(t, "prefix")
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32)
		if rapid.Bool().Draw(t, "IPv6") {
			p = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}), 128)
		}
		chosen[p] = rapid.SampledFrom(attributes).Draw(t, "attributes")
	}
	var list []Route
	for p, a := range chosen {
		list = append(list, Route{p, a})
	}
	return sorted(list)
}

func send(t interface{ Fatalf(string, ...any) }, l *link, to table, have, want []Route) (messages int) {
	difference := diff(have, want)
	withdrawn := false
	if err := difference.send(l, func(b []byte) error {
		messages++
		before := len(to)
		announces := to.receive(t, b)
		if announces && withdrawn {
			t.Fatalf("an addition after a withdrawal")
		}
		withdrawn = withdrawn || len(to) < before
		return nil
	}); err != nil {
		t.Fatalf("%v", err)
	}
	return messages
}

// TestDifferencesAddUp: a router that was told difference after difference
// knows what one knows that was told the last list.
func TestDifferencesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := sampleLink(rapid.Bool().Draw(t, "external"))
		known := table{}
		var have []Route
		for i := range 4 {
			want := drawRoutes(t, fmt.Sprint("list", i))
			send(t, l, known, have, want)
			fresh := table{}
			send(t, l, fresh, nil, want)
			if !maps.Equal(known, fresh) {
				t.Fatalf("knows %v, not %v", known, fresh)
			}
			if got := l.tally(want).announced; got != len(known) {
				t.Fatalf("says that %d are announced, of %d", got, len(known))
			}
			have = want
		}
	})
}

func TestManyRoutesFillFewMessages(t *testing.T) {
	var list []Route
	a := &Attributes{Communities: []uint32{1}}
	for i := range 10_000 {
		list = append(list, Route{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), 32), a})
	}
	known := table{}
	if n := send(t, sampleLink(true), known, nil, list); n > 14 || len(known) != len(list) {
		t.Errorf("%d messages for %d prefixes", n, len(known))
	}
	if n := send(t, sampleLink(true), known, list, list[:9_999]); n != 1 || len(known) != 9_999 {
		t.Errorf("%d messages for one withdrawal", n)
	}
	if n := send(t, sampleLink(true), known, nil, nil); n != 0 {
		t.Errorf("%d messages for nothing", n)
	}
}

// TestRoutesThatAPeerCannotBeTold are counted with the reason.
func TestRoutesThatAPeerCannotBeTold(t *testing.T) {
	routes := append(routesOf(&Attributes{}, "192.0.2.1/32"), routesOf(&Attributes{}, "2001:db8::1/128", "2001:db8::2/128")...)
	l := sampleLink(true)
	l.families[ipv6] = false
	if got := l.tally(routes); got.announced != 1 || got.withheld["the peer does not take IPv6 unicast"] != 2 {
		t.Errorf("%+v", got)
	}
	l = sampleLink(true)
	l.own[ipv6] = netip.Addr{}
	if got := l.tally(routes); got.announced != 1 || len(got.withheld) != 1 {
		t.Errorf("%+v", got)
	}
	l.own[ipv4] = netip.Addr{}
	if got := l.tally(routes); got.announced != 0 || len(got.withheld) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestHashesTellListsApart, whatever the order and the pointers.
func TestHashesTellListsApart(t *testing.T) {
	l := sampleLink(true)
	hash := func(a *Attributes, list ...string) uint64 { return l.tally(routesOf(a, list...)).hash }
	same := hash(&Attributes{Prepend: 1}, "192.0.2.1/32", "192.0.2.2/32")
	if same != hash(&Attributes{Prepend: 1}, "192.0.2.2/32", "192.0.2.1/32") {
		t.Error("the order counts")
	}
	for _, other := range []uint64{
		hash(&Attributes{Prepend: 2}, "192.0.2.1/32", "192.0.2.2/32"), hash(&Attributes{Prepend: 1}, "192.0.2.1/32"),
		hash(&Attributes{Prepend: 1}, "192.0.2.1/32", "192.0.2.3/32"), hash(&Attributes{Prepend: 1}, "192.0.2.1/32", "192.0.2.2/31"), 0,
	} {
		if other == same {
			t.Error("two lists have one hash")
		}
	}
}

// TestDrainedRoutes carry the community, and no preference inside our AS.
func TestDrainedRoutes(t *testing.T) {
	for _, external := range []bool{true, false} {
		known := table{}
		send(t, sampleLink(external), known, nil, tagged(routesOf(&Attributes{LocalPref: 300}, "192.0.2.1/32")))
		want := "10.0.0.1 {Origin: i} {AsPath: } {LocalPref: 0} {Communities: planned-shut}"
		if external {
			want = "10.0.0.1 {Origin: i} {AsPath: 64500} {Communities: planned-shut}"
		}
		if got := known[netip.MustParsePrefix("192.0.2.1/32")]; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
