package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quayside.io/cluster/snapshot"
)

// BGP is what this node tells routers. It needs no gossip: every node that may
// serve an address announces it.
type BGP struct {
	// Sessions that this node holds, by name.
	Sessions []Session
	// Draining says that this node hands its traffic over: its routes are to be
	// tagged with GRACEFUL_SHUTDOWN (RFC 8326) and then withdrawn, while the
	// sessions stay.
	Draining bool
	// Barred says why this node announces no route at all; "" it may.
	Barred string
	// Others names, for each address of policy Local that this node serves, another
	// node that does; see Settling.
	Others map[netip.Addr]Other
	// Checks are where this node's kube-proxy may be asked whether it has endpoints
	// of a Service here (healthCheckNodePort): those with a ready one.
	Checks map[netip.AddrPort]snapshot.Key
}

// Other is a node that has had an endpoint all the time since then.
type Other struct {
	Node  string
	Since time.Time // zero: when the first plan was made
}

// Session is one BGPPeer as this node sees it, and what it is told.
type Session struct {
	// Name of the BGPPeer.
	Name string
	// Peer is the router's address, with a zone if it is link-local; invalid where
	// Interface says where to find it.
	Peer netip.Addr
	// Interface of an unnumbered session; "" there is an address.
	Interface string
	Port      uint16
	// ASN is ours towards this peer.
	ASN uint32
	// PeerASN is the peer's; 0 with a Kinship other than Exactly.
	PeerASN uint32
	Kinship Kinship
	// RouterID has the form of an IPv4 address.
	RouterID netip.Addr
	// Source is our end; invalid: the system chooses.
	Source netip.Addr
	// VRF that the session runs in; "" none.
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
	// BFD that guards the session; nil: none.
	BFD *BFD
	// Routes sorted by prefix, IPv4 first, one each. Sessions share them.
	Routes []Route
}

// IsInternal says that the peer is of our own AS.
func (s *Session) IsInternal() bool {
	return s.Kinship == Internal || s.Kinship == Exactly && s.PeerASN == s.ASN
}

// Kinship says which autonomous systems a peer may belong to.
type Kinship uint8

// The kinds of peers.
const (
	Exactly  Kinship = iota // Session.PeerASN
	Internal                // our own, by dynamicASN
	External                // any but our own, by dynamicASN
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

// Route is one prefix, with attributes that are shared and never modified. The
// next hop is this node.
type Route struct {
	Prefix     netip.Prefix
	Attributes *Attributes
}

// Attributes of routes.
type Attributes struct {
	// LocalPref is sent to internal peers; 0: unsaid.
	LocalPref uint32
	// Communities, sorted, each once (RFC 1997, RFC 8092).
	Communities      []uint32
	LargeCommunities []LargeCommunity
	// Prepend is how many more times our AS number stands in the path.
	Prepend int
}

// LargeCommunity of RFC 8092.
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

func (c LargeCommunity) compare(o LargeCommunity) int {
	return cmp.Or(cmp.Compare(c.Global, o.Global), cmp.Compare(c.Local1, o.Local1), cmp.Compare(c.Local2, o.Local2))
}

// CompareRoutes orders routes by prefix, IPv4 first.
func CompareRoutes(a, b Route) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// readBGP reads what is announced to whom, whatever endpoints there are, and tells
// what is wrong with the peers and advertisements of all nodes.
func (k *compiler) readBGP() {
	k.readPrefixes()
	k.peers = k.readPeers()
	k.tellUnheard(k.peers)
	k.tellConflicts(k.peers)
}

// decideBGP compiles the sessions of this node.
func (k *compiler) decideBGP() {
	k.plan.BGP.Others, k.plan.BGP.Checks = map[netip.Addr]Other{}, map[netip.AddrPort]snapshot.Key{}
	me, known := k.nodeIndex[k.me]
	if !known {
		return
	}
	k.plan.BGP.Draining = k.nodes[me].leaving()
	k.plan.BGP.Barred = k.nodes[me].barredFromBGP()
	served := k.servedBy(me) // asked of a barred node, too: it remembers since when
	if !k.resumed || !slices.EqualFunc(served, k.served, func(a, b *holding) bool { return a.addr == b.addr }) {
		k.sessions = k.sessionsOf(me, served)
	}
	k.served, k.plan.BGP.Sessions = served, k.sessions
}

// sessionsOf are those of node me, with the routes to what it serves.
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

// barredFromBGP says why no router may send this node anything; "" one may. That
// the API server finds it NotReady is no reason.
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

// ofFamilies are the routes of the families wanted, without a copy.
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
