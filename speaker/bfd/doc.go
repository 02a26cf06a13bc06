// Package bfd notices within milliseconds that a neighbor has fallen silent: BFD
// in asynchronous mode between direct neighbors (RFC 5881) and over several hops
// (RFC 5883), for IPv4 and IPv6. It needs no capability.
//
// Only package speaker imports it. Set declares the sessions, Watch says when
// State changed. The protocol itself is package session, which is pure; here are
// sockets, clocks and who is who.
//
// It keeps these promises:
//   - a session that is wanted as before is never touched, whatever happens to
//     others; other timings are negotiated while it stays up;
//   - a session goes down for silence only once the kernel's queue was looked
//     into, and time in which this process did not run is not counted. That it was
//     starved is told in State and counted;
//   - what comes from elsewhere than the peer, from too many hops away, or names
//     another session, is dropped and counted by reason. Beyond the RFC, a packet
//     that names no session of ours cannot end one that is up: a peer that has
//     forgotten us is found silent instead;
//   - who ends a session tells its peer that no failure is meant;
//   - packets are sent and received without allocating.
//
// Authentication, echo and demand mode of our own are not offered.
//
// Read bfd.go first, then apply.go, then packets.go.
package bfd
