// Package fsm is the finite state machine of BGP (RFC 4271 section 8) for one
// peer that is only announced to. Time, events and randomness are arguments;
// what comes out is a list of actions. It is pure.
//
// Only package bgp imports it: that owns the sockets, turns what happens on
// them into Events, and does what the Actions say.
//
// It keeps these promises:
//   - every state knows every event, and an event of a connection that is gone
//     changes nothing;
//   - no state lasts for ever unless both sides agreed on a hold time of zero:
//     a connection is Established in time or ends;
//   - at most two connections exist, and at most one is Established; of two the
//     one survives that RFC 4271 6.8 (with RFC 6286) names;
//   - a session that flaps is dialled ever more slowly, up to Config.MaxWait; one
//     that was quiet is dialled again at once.
//
// The machine is that of a peer, not of a connection as in the RFC, since the
// rules about collisions speak of two connections. Its State is that of the
// connection that has come furthest.
//
// Read machine.go first.
package fsm
