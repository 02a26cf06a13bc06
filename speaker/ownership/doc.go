// Package ownership is the state machine by which one node owns the addresses that it
// answers for on the LAN. Its input is the events, the state of the world and the time;
// its output is what layer 2 is to answer for, what to gossip and to write to the API
// server, which questions to ask on the LAN, and when to take the next step.
//
// It is pure. Package announce decides what a node should own; this package keeps the state
// that this decision needs, and what must happen before it is carried out. Only package
// speaker imports it, and carries out what it returns.
//
// It keeps these promises:
//   - nothing is claimed before the cluster is synced and the members have met;
//   - an address of a node that gossip calls dead moves only when no host answers for it
//     on the LAN, asked five times by a node that does get answers from other hosts; a
//     first claim is made only when no host outside the cluster answers; a node whose link
//     was down, or that gets no answers, is silent, and answers again only when no other
//     node does by then;
//   - a stop and a drain are announced first, and then hand over: other nodes answer before
//     this node stops;
//   - a host outside the cluster on an address of this node is reported, and does not take
//     the address over.
//
// Its tests run whole fleets of machines against a simulated LAN, gossip and clock: see
// fleet_test.go.
//
// Read machine.go first, then inquiry.go and holdings.go.
package ownership
