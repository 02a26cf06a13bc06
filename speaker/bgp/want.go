package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quayside.io/speaker/bgp/fsm"
)

// Want is everything to announce. It must not be modified after Set.
type Want struct {
	// Sessions, each with a name of its own.
	Sessions []Session
	// Draining tags all routes with GRACEFUL_SHUTDOWN, and withdraws them after
	// Options.Drain. The sessions stay up.
	Draining bool
}

// Session is one peer and what it is told.
type Session struct {
	// Name of the BGPPeer. It is a metric's label.
	Name     string
	Settings Settings
	// Refused says why there can be no such session, such as a password that is
	// not there; "": there can. It is told as the LastError.
	Refused string
	// Routes, one per prefix. Sessions may share a slice; one that is sorted
	// with CompareRoutes is not copied.
	Routes []Route
	// Failures counts how often the path to the peer has failed, as BFD found it.
	// Whenever it becomes another number, the session ends at once with the subcode
	// BFD Down (RFC 9384), and begins again; zero says that counting begins anew.
	Failures uint64
}

// Kinship says which autonomous systems a peer may belong to.
type Kinship = fsm.Kinship

const (
	Exactly  = fsm.Exactly  // Settings.PeerASN
	Internal = fsm.Internal // our own (dynamicASN)
	External = fsm.External // any but our own (dynamicASN)
)

// Settings of a session. Two that are equal are the same session.
type Settings struct {
	// Peer to dial, and from whose address connections are taken. The zone of a
	// link-local address is the name of an interface.
	Peer netip.AddrPort
	// ASN is ours towards this peer: localASN, if there, replaces myASN altogether.
	ASN uint32
	// PeerASN is the peer's; with Kinship other than Exactly it is found out.
	PeerASN uint32
	Kinship Kinship
	// RouterID has the form of an IPv4 address.
	RouterID netip.Addr
	// Source address of the session; invalid: the system chooses.
	Source netip.Addr
	// Device that the socket is bound to, such as a VRF; "": none.
	Device string
	// Hold is the hold time, zero (no timer) or 3 s to 65535 s.
	Hold time.Duration
	// Keepalive is the pause between KEEPALIVEs; zero: a third of the hold time.
	Keepalive time.Duration
	// Connect is the longest pause between attempts; zero: 10 s.
	Connect time.Duration
	// Password for TCP MD5 (RFC 2385), at most 80 bytes; "": none.
	Password string
	// MultiHop lets an external peer be further away than the next hop.
	MultiHop bool
	// TTLSecurity takes packets of direct neighbours only (RFC 5082).
	TTLSecurity bool
	// Passive never dials.
	Passive bool
	// IPv4 and IPv6 are the families announced.
	IPv4, IPv6 bool
	// Restart is how long the peer may keep our routes after we are gone without
	// a word (RFC 4724), up to 4095 s; zero: no graceful restart.
	Restart time.Duration
}

// Route is a prefix announced. Attributes are shared and never modified.
type Route struct {
	Prefix     netip.Prefix
	Attributes *Attributes
}

// Attributes of routes.
type Attributes struct {
	// NextHop, if valid; else our own address of the route's family on the
	// session's interface, or for IPv4 an IPv6 one if the peer takes it (RFC 8950).
	NextHop netip.Addr
	// LocalPref is sent to internal peers; zero: 100, the default of routers.
	LocalPref        uint32
	Communities      []uint32
	LargeCommunities []LargeCommunity
	// Prepend is how many more times our AS number stands in the path that
	// external peers see, at most 64.
	Prepend int

	// shutdown is the GRACEFUL_SHUTDOWN community, and the lowest LOCAL_PREF.
	shutdown bool
}

// LargeCommunity of RFC 8092.
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

// CompareRoutes orders routes by prefix, IPv4 first.
func CompareRoutes(a, b Route) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

func (s *Settings) announces(f family) bool { return f == ipv4 && s.IPv4 || f == ipv6 && s.IPv6 }

// external says whether the peer with that AS number is an external one.
func (s *Settings) external(asn uint32) bool { return asn != s.ASN }

// neighbour says that a configuration expects an external peer next door.
func (s *Settings) neighbour() bool {
	external := s.Kinship == External || s.Kinship == Exactly && s.external(s.PeerASN)
	return external && !s.MultiHop
}

const (
	maxPassword  = 80 // TCP_MD5SIG_MAXKEYLEN
	maxPrepend   = 64
	maxRestart   = 4095 * time.Second
	maxTime      = 65535 * time.Second
	defaultRetry = 10 * time.Second
)

// check returns why a session cannot be; "": it can.
func (s *Session) check() string {
	set := &s.Settings
	if s.Refused != "" {
		return s.Refused
	}
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{!set.Peer.IsValid() || set.Peer.Port() == 0 && !set.Passive, "the peer needs an address and a port"},
		{set.Peer.IsValid() && set.Peer.Addr().IsLinkLocalUnicast() && set.Peer.Addr().Is6() && set.Peer.Addr().Zone() == "", "a link-local peer needs an interface"},
		{set.ASN == 0, "our AS number is 0"},
		{set.Kinship == Exactly && set.PeerASN == 0, "the peer's AS number is 0"},
		{!set.RouterID.Is4() || set.RouterID.IsUnspecified(), "the router ID needs the form of an IPv4 address"},
		{set.Source.IsValid() && set.Peer.IsValid() && set.Source.Is4() != set.Peer.Addr().Is4(), "source and peer address are of different families"},
		{set.Hold != 0 && (set.Hold < 3*time.Second || set.Hold > maxTime), fmt.Sprintf("hold time %v: must be 0 or 3s to 65535s", set.Hold)},
		{set.Keepalive < 0 || set.Keepalive > maxTime, fmt.Sprintf("keepalive time %v", set.Keepalive)},
		{set.Connect < 0 || set.Connect > maxTime, fmt.Sprintf("connect time %v", set.Connect)},
		{len(set.Password) > maxPassword, "the password is longer than 80 bytes"},
		{set.Restart < 0 || set.Restart > maxRestart, fmt.Sprintf("restart time %v: must be at most 4095s", set.Restart)},
		{!set.IPv4 && !set.IPv6, "no address family"},
	} {
		if rule.broken {
			return rule.why
		}
	}
	return ""
}

// sorted returns routes in order, one per prefix, without touching what it is given.
func sorted(routes []Route) []Route {
	strictly := func() bool {
		for i := 1; i < len(routes); i++ {
			if CompareRoutes(routes[i-1], routes[i]) >= 0 {
				return false
			}
		}
		return true
	}
	if strictly() {
		return routes
	}
	routes = slices.Clone(routes)
	slices.SortStableFunc(routes, CompareRoutes)
	return slices.CompactFunc(routes, func(a, b Route) bool { return a.Prefix == b.Prefix })
}

// key is equal for attributes that are.
func (a *Attributes) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d %d %v %v %v", a.NextHop, a.LocalPref, a.Prepend, a.Communities, a.LargeCommunities, a.shutdown)
	return b.String()
}

func (a *Attributes) equal(b *Attributes) bool {
	return a == b || a.NextHop == b.NextHop && a.LocalPref == b.LocalPref && a.Prepend == b.Prepend && a.shutdown == b.shutdown &&
		slices.Equal(a.Communities, b.Communities) && slices.Equal(a.LargeCommunities, b.LargeCommunities)
}
