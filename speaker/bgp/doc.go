// Package bgp announces routes to BGP routers and accepts none.
//
// Only package speaker imports it: Set declares the sessions and the routes of each, State
// reports, and Watch signals that it has changed. What to announce is decided by announce.
//
// It keeps these promises:
//   - messages of a peer are framed in a fixed buffer and bounded in rate; UPDATEs are dropped
//     unparsed, and all decoding runs under recover;
//   - each peer has its own goroutines: one that stalls delays no other;
//   - a session whose settings are unchanged is never reset; a change of routes sends the
//     difference, additions before withdrawals;
//   - a drain adds GRACEFUL_SHUTDOWN (RFC 8326) to the routes before it withdraws them, and ends
//     with a NOTIFICATION that has the reason (RFC 9003).
//
// The state machine is ours (package fsm) and the codec gobgp's. gobgp's server keeps a RIB that
// is not needed here and panics on a crafted UPDATE. corebgp v0.8.5 was considered: it identifies a
// peer by its address alone and by one fixed AS number, has one router ID, sends KEEPALIVEs at a
// third of the hold time, pauses for a minute or more after any protocol error, and cannot close
// without a NOTIFICATION for a graceful restart.
//
// Read want.go first, then bgp.go, session.go and routes.go.
package bgp
