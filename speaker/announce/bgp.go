package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// BGP is what this node announces to routers. It needs no gossip: every node that may
// serve an address announces it.
type BGP struct {
	// Sessions of this node, sorted by name.
	Sessions []Session
	// Draining says that this node hands its traffic over: its routes are to get the
	// community GRACEFUL_SHUTDOWN (RFC 8326) and then to be withdrawn, while the sessions
	// stay.
	Draining bool
	// Barred is why this node announces no route at all; "": it may.
	Barred string
	// Others is, for each address with externalTrafficPolicy Local that this node serves,
	// another node that does; see Settling.
	Others map[netip.Addr]Other
}

// Other is another node with an endpoint of an address, and since when it has had one.
type Other struct {
	Node  string
	Since time.Time // zero: since before the first plan
}

// Session is one BGPPeer on this node, with the routes to announce to it.
type Session struct {
	// Name of the BGPPeer.
	Name string
	// Peer is the router's address, with a zone if it is link-local; invalid: see
	// Interface.
	Peer netip.Addr
	// Interface of an unnumbered session; "": Peer is the address.
	Interface string
	Port      uint16
	// ASN is the local AS number for this peer.
	ASN uint32
	// PeerASN is the peer's AS number; 0 if Kinship is not Exactly.
	PeerASN uint32
	Kinship Kinship
	// RouterID has the form of an IPv4 address.
	RouterID netip.Addr
	// Source is the local address; invalid: the kernel chooses.
	Source netip.Addr
	// VRF of the session; "": none.
	VRF string
	// Hold is zero (no timer) or 3 s to 65535 s; Keepalive zero is a third of it;
	// Connect zero is the driver's own.
	Hold, Keepalive, Connect time.Duration
	// Password for TCP MD5 (RFC 2385), or PasswordSecret, the name of the Secret
	// that has it; both "": none.
	Password, PasswordSecret                        string
	MultiHop, TTLSecurity, Passive, GracefulRestart bool
	// IPv4 and IPv6 are the families announced.
	IPv4, IPv6 bool
	// BFD settings of the session; nil: no BFD.
	BFD *BFD
	// Routes sorted by prefix, IPv4 first, one per prefix. Sessions share the slice.
	Routes []Route
}

// IsInternal reports whether the session is iBGP.
func (s *Session) IsInternal() bool {
	return s.Kinship == Internal || s.Kinship == Exactly && s.PeerASN == s.ASN
}

// Kinship is which AS numbers a peer may have.
type Kinship uint8

// The values of Kinship.
const (
	Exactly  Kinship = iota // Session.PeerASN
	Internal                // Session.ASN (dynamicASN: internal)
	External                // any but Session.ASN (dynamicASN: external)
)

// BFD is a BFDProfile (RFC 5880).
type BFD struct {
	Profile string
	// Receive and Transmit are the shortest intervals; zero: the driver's own, as
	// for Multiplier and MinimumTTL.
	Receive, Transmit      time.Duration
	Multiplier, MinimumTTL uint8
	Passive                bool
}

// Route is one prefix with its attributes, which routes share and nothing modifies. The
// next hop is this node.
type Route struct {
	Prefix     netip.Prefix
	Attributes *Attributes
}

// Attributes are path attributes of routes (RFC 4271).
type Attributes struct {
	// LocalPref is sent to internal peers; 0: the driver's default.
	LocalPref uint32
	// Communities, sorted, each once (RFC 1997, RFC 8092).
	Communities      []uint32
	LargeCommunities []LargeCommunity
	// Prepend is how often the local AS number is added to AS_PATH beyond the first time.
	Prepend int
}

// LargeCommunity is a large community (RFC 8092).
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

func (c LargeCommunity) compare(o LargeCommunity) int {
	return cmp.Or(cmp.Compare(c.Global, o.Global), cmp.Compare(c.Local1, o.Local1), cmp.Compare(c.Local2, o.Local2))
}

// compareRoutes orders routes by prefix, IPv4 first.
func compareRoutes(a, b Route) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// readBGP reads peers and prefixes, which do not depend on endpoints, and reports what is
// wrong with the peers and advertisements of all nodes.
func (k *compiler) readBGP() {
	k.readPrefixes()
	k.peers = k.readPeers()
	k.tellUnheard(k.peers)
	k.tellConflicts(k.peers)
}

// decideBGP compiles the sessions of this node.
func (k *compiler) decideBGP() {
	k.plan.BGP.Others = map[netip.Addr]Other{}
	me, known := k.nodeIndex[k.me]
	if !known {
		return
	}
	k.plan.BGP.Draining = k.nodes[me].leaving()
	k.plan.BGP.Barred = k.nodes[me].barredFromBGP()
	local := k.servedHere(me) // computed for a barred node, too: it records since when
	anywhere := func(i int) bool { return k.holdings[i].users[0].local == nil }
	if !k.resumed || slices.ContainsFunc(k.moved, anywhere) || !slices.EqualFunc(local, k.local, func(a, b *holding) bool { return a.addr == b.addr }) {
		k.sessions = k.sessionsOf(me, k.served(local))
	}
	k.local, k.plan.BGP.Sessions = local, k.sessions
}

// sessionsOf are the sessions of node me, with the routes to the addresses that it serves.
func (k *compiler) sessionsOf(me int, served []*holding) (sessions []Session) {
	lists := map[string][]Route{}
	for i := range k.peers {
		p := &k.peers[i]
		if p.shadowed || !p.selects(&k.nodes[me]) {
			continue
		}
		s := p.Session
		if k.nodes[me].barredFromBGP() == "" {
			adverts := k.advertised(p, me)
			id := fmt.Sprint(adverts)
			if _, known := lists[id]; !known {
				lists[id] = k.routes(served, adverts)
			}
			s.Routes = ofFamilies(lists[id], s.IPv4, s.IPv6)
		}
		sessions = append(sessions, s)
	}
	slices.SortFunc(sessions, func(a, b Session) int { return strings.Compare(a.Name, b.Name) })
	return sessions
}

// barredFromBGP is why this node may announce no routes; "": it may. NotReady is no
// reason.
func (n *node) barredFromBGP() string {
	switch {
	case n.barred != "":
		return n.barred
	case n.unfit&unfitBehind != 0:
		return "its kube-proxy may not have written its rules"
	}
	return ""
}

// advertised are the advertisements whose routes node i sends to p.
func (k *compiler) advertised(p *peer, i int) (adverts []int) {
	for a := range k.bgp {
		if v := &k.bgp[a]; v.reaches(p) && anyMatches(v.nodes, k.nodes[i].labels) {
			adverts = append(adverts, a)
		}
	}
	return adverts
}

// ofFamilies returns the part of routes that is of the wanted families.
func ofFamilies(routes []Route, v4, v6 bool) []Route {
	first6, _ := slices.BinarySearchFunc(routes, true, func(r Route, _ bool) int {
		if r.Prefix.Addr().Is4() {
			return -1
		}
		return 1
	})
	from, to := 0, len(routes)
	if !v4 {
		from = first6
	}
	if !v6 {
		to = first6
	}
	return routes[from:max(from, to)]
}
