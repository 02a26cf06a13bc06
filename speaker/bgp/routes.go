package bgp

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

const (
	gracefulShutdown = 0xFFFF0000 // RFC 8326
	defaultPref      = 100
)

// link is what the encoding of routes depends on. But for our next hops, see look, it stays
// for the life of a connection.
type link struct {
	asn      uint32
	external bool
	peer     open
	families [2]bool       // that both sides speak
	own      [2]netip.Addr // our next hops: addresses on the session's interface, by family
	// linkLocal goes along with an IPv6 next hop of ours (RFC 2545); it may be invalid.
	linkLocal netip.Addr
}

// change is a difference between two lists of routes.
type change struct {
	announce [2][]group
	withdraw [2][]netip.Prefix
}

// group is prefixes of one family with equal attributes.
type group struct {
	attributes *Attributes
	prefixes   []netip.Prefix
}

// diff compares two lists in the order of CompareRoutes.
func diff(have, want []Route) change {
	var c change
	groups := newGrouping()
	for i, j := 0, 0; i < len(have) || j < len(want); {
		order := 1
		switch {
		case j == len(want):
			order = -1
		case i == len(have):
		case have[i].Prefix == want[j].Prefix: // most are, and that is quicker to see
			order = 0
		default:
			order = CompareRoutes(have[i], want[j])
		}
		switch {
		case order < 0:
			f := familyOf(have[i].Prefix.Addr())
			c.withdraw[f] = append(c.withdraw[f], have[i].Prefix)
			i++
		case order > 0:
			groups.add(want[j])
			j++
		default:
			if !have[i].Attributes.equal(want[j].Attributes) {
				groups.add(want[j])
			}
			i, j = i+1, j+1
		}
	}
	c.announce = groups.list
	return c
}

// grouping collects routes by their attributes, in the order of their first.
type grouping struct {
	byPointer [2]map[*Attributes]int // index in list
	byKey     [2]map[string]int
	list      [2][]group
}

func newGrouping() *grouping {
	g := &grouping{}
	for f := range g.list {
		g.byPointer[f], g.byKey[f] = map[*Attributes]int{}, map[string]int{}
	}
	return g
}

func (g *grouping) add(r Route) {
	f := familyOf(r.Prefix.Addr())
	at, known := g.byPointer[f][r.Attributes]
	if !known {
		key := r.Attributes.key()
		if at, known = g.byKey[f][key]; !known {
			at = len(g.list[f])
			g.list[f] = append(g.list[f], group{attributes: r.Attributes})
			g.byKey[f][key] = at
		}
		g.byPointer[f][r.Attributes] = at
	}
	g.list[f][at].prefixes = append(g.list[f][at].prefixes, r.Prefix)
}

// send encodes the change, additions first, and hands out message after message.
func (c *change) send(l *link, write func([]byte) error) error {
	for _, f := range []family{ipv4, ipv6} {
		for _, g := range c.announce[f] {
			hop, why := l.nextHop(f, g.attributes)
			if why != "" {
				// What was announced with other attributes must go.
				c.withdraw[f] = append(c.withdraw[f], g.prefixes...)
				continue
			}
			if err := l.announce(f, hop, g, write); err != nil {
				return err
			}
		}
	}
	for _, f := range []family{ipv4, ipv6} {
		if !l.families[f] {
			continue
		}
		if err := l.withdraw(f, c.withdraw[f], write); err != nil {
			return err
		}
	}
	return nil
}

// nextHop of routes, or why there is none.
func (l *link) nextHop(f family, a *Attributes) (netip.Addr, string) {
	if !l.families[f] {
		return netip.Addr{}, fmt.Sprintf("the peer does not take %v", f)
	}
	hop := a.NextHop
	switch {
	case !hop.IsValid():
		hop = l.own[f]
		if f == ipv4 && !hop.IsValid() && l.peer.nextHop6 {
			hop = l.own[ipv6]
		}
		if !hop.IsValid() {
			return hop, fmt.Sprintf("the session's interface has no address that can be a next hop for %v", f)
		}
	case f == ipv4 && hop.Is6() && !l.peer.nextHop6:
		return hop, fmt.Sprintf("the peer takes no IPv6 next hop %v for %v", hop, f)
	case f == ipv6 && hop.Is4():
		return hop, fmt.Sprintf("%v cannot be a next hop for %v", hop, f)
	}
	return hop, ""
}

// classic routes stand outside of attributes.
func classic(f family, hop netip.Addr) bool { return f == ipv4 && hop.Is4() }

func (l *link) announce(f family, hop netip.Addr, g group, write func([]byte) error) error {
	attributes := l.attributes(g.attributes)
	if classic(f, hop) {
		attributes = append(attributes, bgp.NewPathAttributeNextHop(hop.String()))
	}
	room, err := roomBeside(attributes)
	if err != nil {
		return err
	}
	for chunk := range packed(g.prefixes, room) {
		var m *bgp.BGPMessage
		if classic(f, hop) {
			m = bgp.NewBGPUpdateMessage(nil, attributes, prefixes4(chunk))
		} else {
			// MP_REACH_NLRI comes first (RFC 7606 5.1).
			reach := bgp.NewPathAttributeMpReachNLRI(hop.WithZone("").String(), prefixes(chunk))
			if l.linkLocal.IsValid() && hop == l.own[ipv6] && !hop.IsLinkLocalUnicast() {
				reach.LinkLocalNexthop = l.linkLocal.AsSlice()
			}
			m = bgp.NewBGPUpdateMessage(nil, append([]bgp.PathAttributeInterface{reach}, attributes...), nil)
		}
		if err := encodeTo(write, m); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) withdraw(f family, gone []netip.Prefix, write func([]byte) error) error {
	room, _ := roomBeside(nil)
	for chunk := range packed(gone, room) {
		m := bgp.NewBGPUpdateMessage(nil, []bgp.PathAttributeInterface{bgp.NewPathAttributeMpUnreachNLRI(prefixes(chunk))}, nil)
		if f == ipv4 {
			m = bgp.NewBGPUpdateMessage(prefixes4(chunk), nil, nil)
		}
		if err := encodeTo(write, m); err != nil {
			return err
		}
	}
	return nil
}

// end tells the peer that this was all (RFC 4724 section 2).
func (l *link) end(write func([]byte) error) error {
	for _, f := range []family{ipv4, ipv6} {
		if l.families[f] {
			if err := encodeTo(write, bgp.NewEndOfRib(f.codec())); err != nil {
				return err
			}
		}
	}
	return nil
}

func encodeTo(write func([]byte) error, m *bgp.BGPMessage) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	return write(b)
}

// attributes of an UPDATE, without the next hop, ascending by type as RFC 4271 5 asks.
func (l *link) attributes(a *Attributes) []bgp.PathAttributeInterface {
	list := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP)}
	path, path4 := l.path(a)
	list = append(list, path)
	if !l.external {
		pref := uint32(defaultPref)
		switch {
		case a.shutdown:
			pref = 0
		case a.LocalPref != 0:
			pref = a.LocalPref
		}
		list = append(list, bgp.NewPathAttributeLocalPref(pref))
	}
	communities := a.Communities
	if a.shutdown && !slices.Contains(communities, gracefulShutdown) {
		communities = append(slices.Clone(communities), gracefulShutdown)
	}
	if len(communities) > 0 {
		list = append(list, bgp.NewPathAttributeCommunities(slices.Compact(slices.Sorted(slices.Values(communities)))))
	}
	if path4 != nil {
		list = append(list, path4)
	}
	if len(a.LargeCommunities) > 0 {
		large := make([]*bgp.LargeCommunity, len(a.LargeCommunities))
		for i, c := range a.LargeCommunities {
			large[i] = bgp.NewLargeCommunity(c.Global, c.Local1, c.Local2)
		}
		list = append(list, bgp.NewPathAttributeLargeCommunities(large))
	}
	return list
}

// path is the AS_PATH, and for a peer that knows only short AS numbers the
// AS4_PATH if it takes one (RFC 6793 4.2.2).
func (l *link) path(a *Attributes) (path, path4 bgp.PathAttributeInterface) {
	if !l.external {
		return bgp.NewPathAttributeAsPath(nil), nil
	}
	long := slices.Repeat([]uint32{l.asn}, 1+min(max(a.Prepend, 0), maxPrepend))
	if l.peer.as4 {
		return bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, long)}), nil
	}
	number := uint16(asTrans)
	if l.asn <= 0xffff {
		number = uint16(l.asn)
	} else {
		path4 = bgp.NewPathAttributeAs4Path([]*bgp.As4PathParam{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, long)})
	}
	short := slices.Repeat([]uint16{number}, len(long))
	return bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAsPathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, short)}), path4
}

// roomBeside says how many bytes of prefixes fit into an UPDATE with attributes.
func roomBeside(attributes []bgp.PathAttributeInterface) (int, error) {
	const multiprotocol = 4 + 5 + 32 // head of the attribute, of MP_REACH_NLRI, and the longest next hop
	bare, err := encode(bgp.NewBGPUpdateMessage(nil, attributes, nil))
	if err != nil {
		return 0, err
	}
	const longest = 17 // bytes of one prefix
	room := maxMessage - len(bare) - multiprotocol
	if room < longest {
		return 0, fmt.Errorf("the attributes of a route fill a message: %d bytes", len(bare))
	}
	return room, nil
}

// packed cuts a list of prefixes into those that fill a message.
func packed(list []netip.Prefix, room int) func(yield func([]netip.Prefix) bool) {
	return func(yield func([]netip.Prefix) bool) {
		from, used := 0, 0
		for i, p := range list {
			size := 1 + (p.Bits()+7)/8
			if used+size > room {
				if !yield(list[from:i]) {
					return
				}
				from, used = i, 0
			}
			used += size
		}
		if from < len(list) {
			yield(list[from:])
		}
	}
}

func prefixes4(list []netip.Prefix) []*bgp.IPAddrPrefix {
	out := make([]*bgp.IPAddrPrefix, len(list))
	for i, p := range list {
		out[i] = bgp.NewIPAddrPrefix(uint8(p.Bits()), p.Addr().String())
	}
	return out
}

func prefixes(list []netip.Prefix) []bgp.AddrPrefixInterface {
	out := make([]bgp.AddrPrefixInterface, len(list))
	for i, p := range list {
		if p.Addr().Is4() {
			out[i] = bgp.NewIPAddrPrefix(uint8(p.Bits()), p.Addr().String())
		} else {
			out[i] = bgp.NewIPv6AddrPrefix(uint8(p.Bits()), p.Addr().String())
		}
	}
	return out
}

// tally counts the routes of a list that a peer is sent.
type tally struct {
	announced int
	hash      uint64 // of the announced, the same on every node and in every order
	withheld  map[string]int
}

func (l *link) tally(routes []Route) tally {
	type outcome struct { // the same for all routes with these attributes
		hash uint64
		why  string
	}
	known := [2]map[*Attributes]outcome{{}, {}}
	var t tally
	var last [2]*Attributes // most routes have those of the one before
	var outcomes [2]outcome
	for _, r := range routes {
		f := familyOf(r.Prefix.Addr())
		v, ok := outcomes[f], last[f] == r.Attributes
		if !ok {
			v, ok = known[f][r.Attributes]
			last[f], outcomes[f] = r.Attributes, v
		}
		if !ok {
			_, v.why = l.nextHop(f, r.Attributes)
			h := fnv.New64a()
			_, _ = h.Write([]byte(r.Attributes.key()))
			v.hash = h.Sum64()
			known[f][r.Attributes], outcomes[f] = v, v
		}
		if v.why != "" {
			if t.withheld == nil {
				t.withheld = map[string]int{}
			}
			t.withheld[v.why]++
			continue
		}
		t.announced++
		t.hash += mix(r.Prefix, v.hash)
	}
	return t
}

// mix hashes a prefix with the hash of its attributes.
func mix(p netip.Prefix, attributes uint64) uint64 {
	b := p.Addr().As16()
	h := scatter(attributes ^ binary.BigEndian.Uint64(b[:8]))
	h = scatter(h ^ binary.BigEndian.Uint64(b[8:]))
	return scatter(h ^ uint64(p.Bits()))
}

// scatter is the finalizer of SplitMix64: each bit in changes half of those out.
func scatter(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// tagged is routes with GRACEFUL_SHUTDOWN.
func tagged(routes []Route) []Route {
	known := map[*Attributes]*Attributes{}
	out := slices.Clone(routes)
	for i, r := range out {
		t := known[r.Attributes]
		if t == nil {
			copied := *r.Attributes
			copied.shutdown = true
			t = &copied
			known[r.Attributes] = t
		}
		out[i].Attributes = t
	}
	return out
}
