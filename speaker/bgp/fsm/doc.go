// Package fsm is the finite state machine of BGP (RFC 4271 section 8) for one peer to which
// routes are only announced. Time, events and randomness are arguments; the result is a list of
// actions. It is pure.
//
// Only package bgp imports it: that owns the sockets, turns what happens on them into Events, and
// carries out the Actions.
//
// It keeps these promises:
//   - every state handles every event, and an event of a closed connection changes nothing;
//   - no state lasts for ever unless both sides agreed on a hold time of zero: a connection
//     becomes Established in time or ends;
//   - at most two connections exist, and at most one is Established; a collision is resolved by
//     RFC 4271 section 6.8 (with RFC 6286);
//   - a session that flaps is dialled ever more slowly, up to Config.MaxWait; after a long
//     session it is dialled again at once.
//
// The machine is for a peer, not for a connection as in the RFC, since collisions concern two
// connections. Its State is that of the connection that has progressed furthest.
//
// Read machine.go first.
package fsm
