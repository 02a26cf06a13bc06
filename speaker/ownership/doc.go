// Package ownership is the state machine by which one node owns the addresses that
// it answers for on the LAN. What happened, how the world is and what time it is
// go in; what layer 2 is to answer for, what the members and the API server are to
// hear, which questions to put to the LAN and when to come back go out.
//
// It is pure: package announce decides what a node should own, and this package
// remembers between two decisions what that depends on and what must pass before
// one is carried out. Only package speaker imports it, and carries out what it
// returns.
//
// It keeps these promises:
//   - nothing is claimed before the cluster is synced and the members have met;
//   - an address of a node that gossip calls dead moves only when the LAN, asked
//     five times by a node that hears others, stays silent about it; a first claim
//     is made only when no stranger answers; and a node whose link was down, or that
//     hears nobody, is silent, and answers again only when nobody else does by now;
//   - an orderly end and a drain are announced, and then hand over: others answer
//     before this node stops;
//   - a strange host on an address of this node is told, and takes nothing away.
//
// Its tests run whole fleets of machines against a LAN and a gossip that are made
// up, in a time that is made up: see fleet_test.go.
//
// Read machine.go first, then inquiry.go and holdings.go.
package ownership
