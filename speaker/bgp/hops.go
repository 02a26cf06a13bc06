package bgp

import (
	"net/netip"
	"slices"
	"time"
)

func (s *session) wentUp(c *conn) {
	s.up, s.sent = c, nil
	s.restarting, s.refreshDue = false, false
	c.established.Store(true)
	s.forgets.Store(!c.peer.Restart)
	own, linkLocal := s.nextHops(c)
	s.looked, s.hopless = time.Now(), false
	s.link = link{
		asn: s.settings.ASN, external: s.settings.external(c.peer.ASN), peer: c.peer, own: own, linkLocal: linkLocal,
	}
	for _, f := range []family{ipv4, ipv6} {
		s.link.families[f] = s.settings.announces(f) && c.peer.families[f]
	}
	s.log.Info("BGP session is up", "address", c.RemoteAddr(), "asn", c.peer.ASN)
	s.sync()
	if c.peer.Restart && s.up == c {
		s.check(c, s.link.end(s.sender(c)))
	}
}

// nextHops are those of routes without one of their own.
func (s *session) nextHops(c *conn) (own [2]netip.Addr, linkLocal netip.Addr) {
	own, linkLocal = ours(s.settings.abroad(c.local()), s.settings.Peer.Addr())
	if c.peer.nextHop6 && c.local().Is6() {
		own[ipv4] = netip.Addr{} // an IPv4 one may be none that the peer can reach
	}
	return own, linkLocal
}

// look finds out whether the next hops are still addresses of the session's interface,
// and tells everything again if not. The one of the family that the session does not run
// over comes and goes without it: IPv6 after the start of a node, and whenever a router
// advertises another prefix.
func (s *session) look() {
	s.looked = time.Now()
	c := s.up
	have := interfaceOf(s.settings.abroad(c.local()))
	if len(have) == 0 {
		return // the interfaces could not be read, or the session is about to end
	}
	own, linkLocal := s.nextHops(c)
	gone := false
	for f, was := range s.link.own {
		own[f] = kept(have, was, own[f])
		gone = gone || was.IsValid() && !own[f].IsValid()
	}
	linkLocal = kept(have, s.link.linkLocal, linkLocal)
	if own == s.link.own && linkLocal == s.link.linkLocal {
		s.hopless = false
		return
	}
	// An address that is only being replaced, or that the kernel left out, withdraws nothing.
	if gone && !s.hopless {
		s.hopless = true
		return
	}
	s.hopless = false
	s.log.Info("the next hops of the session are others", "were", s.link.own, "are", own)
	s.link.own, s.link.linkLocal = own, linkLocal
	all := diff(nil, s.sent)
	if err := all.send(&s.link, s.sender(c)); err != nil {
		s.check(c, err)
		return
	}
	s.told = s.link.tally(s.sent)
	s.publish()
}

// kept is the next hop to use among the addresses of an interface: the one in use while it
// is there. The kernel lists the newest first, such as one for privacy that soon goes again.
func kept(have []netip.Prefix, was, now netip.Addr) netip.Addr {
	if slices.ContainsFunc(have, func(p netip.Prefix) bool { return p.Addr() == was }) {
		return was
	}
	return now
}
