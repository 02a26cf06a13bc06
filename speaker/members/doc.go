// Package members knows which other speakers are alive and which addresses they claim.
// It wraps memberlist, with encryption from the first packet, in types of its own.
//
// Only package speaker imports it. Set declares the peers, the facts of this node and its
// claims; Watch signals that View has changed. The package decides nothing: a death that
// it reports, or a doubt about a watched member, is a suspicion, which the component
// verifies on the LAN before an address moves.
//
// It keeps these promises:
//   - nothing is sent or believed without a key. Keys are derived with HKDF from the lines
//     of a file that may appear late and may change: the first line encrypts, all decrypt,
//     so a rotation leaves no gap;
//   - claims are ordered (epoch, then node name) and only the highest stays, so messages
//     may arrive in any order, twice or relayed, and all members converge;
//   - messages are bounded and checked before they are believed, and a message about a
//     node whose key SetKeys knows must be signed with it: a process with the gossip key
//     can write to all, and can speak only for its own node. Signed messages are passed on
//     unchanged;
//   - what is known of nodes and addresses that no longer exist is forgotten in time.
//
// Claims and facts are gossiped in messages that fit a packet, and sent whole in the
// push/pull exchange at every join and every half minute. The nodes that would take over
// a member's addresses also receive heartbeats from it, which are not memberlist
// messages, see heartbeat.go.
//
// Read members.go first, then profile.go for the timings.
package members
