// Package rtadv finds the router at the other end of a link by Router Advertisements (RFC 4861),
// and lets it find this node, for BGP sessions with peers that are configured by interface and not
// by address (unnumbered).
//
// Only package speaker imports it: Set declares the links, State reports, and Watch signals that
// it has changed.
//
// It keeps these promises:
//   - its advertisements make this node no host's default router: the router lifetime is zero, and
//     there is neither a prefix nor a flag;
//   - a received packet counts only with hop limit 255, from a link-local address and well formed;
//     only two addresses are kept per link;
//   - a router stays until it has been silent for its advertised lifetime, or the link was down,
//     and another one advertises: another host on the link takes over no session;
//   - a flood costs a bounded rate of reads, and at most one answer a second.
//
// FRR does the same for `neighbor IFACE interface`: both sides advertise, and each dials the source
// of what it receives.
//
// Read heard.go first, then link.go.
package rtadv
