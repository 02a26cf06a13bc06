// Package members knows which other speakers are alive and which addresses
// they claim. It is memberlist, encrypted from its first packet, with our own
// types around it.
//
// Only package speaker imports it, and declares with Set who should be there, what
// this node says about itself and what it claims; Watch says when the View
// changed. The package decides nothing: a death that it reports, or a doubt about one
// whom this node would follow, is a suspicion, which the component has asked of the
// LAN before an address moves.
//
// It keeps these promises:
//   - nothing is sent or believed without a key. Keys are derived with HKDF from
//     the lines of a file that may appear late and may change: the first line
//     encrypts, all decrypt, so a rotation leaves no gap;
//   - claims only ever grow (epoch, then node name), so they may arrive in any
//     order, twice, or by way of others, and all members end with the same;
//   - what others send is bounded and checked before it is believed, and what is
//     said of a node whose key SetKeys knows must be signed with it: whoever has the
//     gossip key can write to all, and speaks for itself only. Signed messages are
//     passed on as they are;
//   - what was said by or about what exists no more is forgotten in time.
//
// Claims and facts travel as gossip in messages that fit a packet, and whole in
// the exchange of state that every join and every half minute brings. That a member
// lives, those who would follow it hear by packets that are none of memberlist's, see
// beat.go.
//
// Read members.go first, then profile.go for the timings.
package members
