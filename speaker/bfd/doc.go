// Package bfd detects within milliseconds that a neighbour has fallen silent: BFD in
// asynchronous mode, single-hop (RFC 5881) and multihop (RFC 5883), for IPv4 and IPv6. It needs
// no capability.
//
// Only package speaker imports it. Set declares the sessions, Watch signals that State has
// changed. The protocol itself is package session, which is pure; here are sockets, clocks and
// demultiplexing.
//
// It keeps these promises:
//   - a session whose settings are unchanged is never affected by changes to others; new timings
//     are negotiated while it stays up;
//   - a session goes down by timeout only after the kernel's receive queue has been read, and
//     time in which this process did not run is not counted; such starvation is reported in State
//     and counted;
//   - a packet from another source than the peer, from too many hops away, or for another session
//     is dropped and counted by reason. Beyond the RFC, a packet with a discriminator of zero
//     cannot end a session that is up: a peer that has lost its state is detected by timeout;
//   - a session that is removed tells its peer that it is administratively down;
//   - packets are sent and received without allocating.
//
// Authentication, echo and demand mode are not offered.
//
// Read bfd.go first, then apply.go, then packets.go.
package bfd
