// Package bgp announces routes to BGP routers and accepts none from anybody.
//
// Only package speaker imports it: it declares with Set which sessions there are
// and which routes each announces, reads State, and hears through Watch that it
// changed. What to announce is the business of announce.
//
// It keeps these promises:
//   - what a peer sends is framed from a fixed buffer and bounded in pace; UPDATEs
//     are dropped unparsed, and what is decoded is decoded under recover;
//   - each peer has its own goroutines: one that stalls delays nobody else;
//   - a session whose settings did not change is never reset; a change of routes
//     sends the difference, additions before withdrawals;
//   - a drain tags the routes with GRACEFUL_SHUTDOWN (RFC 8326) before it
//     withdraws them, and ends with a NOTIFICATION that says why (RFC 9003).
//
// The state machine is ours (package fsm) and the codec gobgp's. gobgp's server
// keeps a RIB that we have no use for and dies of a crafted UPDATE. corebgp
// v0.8.5 was weighed: it knows a peer by its address alone and by one fixed AS
// number, has one router ID, ties KEEPALIVEs to a third of the hold time, rests
// for a minute or more after any protocol error, and cannot close without a word
// for a graceful restart.
//
// Read want.go first, then bgp.go, session.go and routes.go.
package bgp
