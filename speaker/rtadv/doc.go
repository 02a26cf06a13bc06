// Package rtadv finds the router at the other end of a link by Router
// Advertisements (RFC 4861), and lets it find us, for sessions with peers that
// are configured by their interface and not by an address.
//
// Only package speaker imports it: it declares with Set on which links, reads
// State, and hears through Watch that it changed.
//
// It keeps these promises:
//   - what we send makes nobody's default router of us: the lifetime is zero, and
//     there is neither a prefix nor a flag;
//   - what is heard counts only with hop limit 255, from a link-local address and
//     well formed; all that is kept of it are two addresses for each link;
//   - a router that was found stays until it has been silent for as long as it
//     said, or the link was down, and another one speaks: a stranger on the link
//     takes over no session;
//   - a flood costs a bounded pace of reading, and at most one answer a second.
//
// FRR does the same for `neighbor IFACE interface`: both sides advertise, and
// each dials the source of what it hears.
//
// Read heard.go first, then link.go.
package rtadv
