package speaker

import (
	"net/netip"
	"slices"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bgp"
)

// guards are the BFD sessions for the paths to routers, by the names of the BGP sessions.
// An iBGP peer may be several hops away: if it is on none of the links, where these are
// known, its session is multihop (RFC 5883), as in FRR.
func guards(sessions []announce.Session, links []announce.Interface) *bfd.Want {
	want := &bfd.Want{Sessions: map[string]bfd.Session{}}
	for i := range sessions {
		p := &sessions[i]
		if p.BFD == nil || !p.Peer.IsValid() {
			continue
		}
		want.Sessions[p.Name] = bfd.Session{
			Peer: p.Peer, Local: p.Source, VRF: p.VRF, Multihop: p.MultiHop || p.IsInternal() && isElsewhere(p.Peer, links), MinimumTTL: p.BFD.MinimumTTL,
			Transmit: p.BFD.Transmit, Receive: p.BFD.Receive, Multiplier: p.BFD.Multiplier, Passive: p.BFD.Passive,
		}
	}
	return want
}

func isElsewhere(a netip.Addr, links []announce.Interface) bool {
	if links == nil || a.IsLinkLocalUnicast() {
		return false
	}
	holds := func(p netip.Prefix) bool { return p.Contains(a) }
	return !slices.ContainsFunc(links, func(l announce.Interface) bool {
		return slices.ContainsFunc(l.Prefixes, holds) || slices.ContainsFunc(l.Routes, holds)
	})
}

// guarded returns the sessions with the current results of BFD, which detects a failure
// seconds before the hold timer.
func guarded(w *bgp.Want, found map[string]bfd.Status) *bgp.Want {
	next := *w
	next.Sessions = slices.Clone(w.Sessions)
	for i := range next.Sessions {
		next.Sessions[i].Failures = found[next.Sessions[i].Name].Failures
	}
	return &next
}
