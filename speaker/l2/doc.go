// Package l2 makes this node answer for addresses on its LANs: ARP for IPv4,
// neighbour discovery for IPv6, with gratuitous announcements when an address
// arrives, repeated slowly from then on.
//
// Only package speaker imports it, and declares with Set which address is answered
// on which interfaces, asks the LAN with Probe whether anybody else answers,
// and hears through Watch that interfaces changed or that a stranger claimed
// an address of ours. The package decides nothing: who owns an address is the
// business of announce. Where it is told which other speakers are on a LAN, it asks
// them for signs of life, and says which interfaces are deaf.
//
// It keeps these promises:
//   - the path from a received frame to its answer takes no lock, allocates
//     nothing, and gives malformed frames no answer;
//   - the kernel filters: only questions about our addresses reach us;
//   - an interface that comes, goes, flaps, or changes its MAC is followed, its
//     multicast groups are joined again and its addresses announced again;
//   - an interface serves IPv4 addresses without having one itself.
//
// Frames are received on packet sockets, never on arp.Client or ndp.Conn: the
// former refuses an interface without IPv4, the latter never sees a unicast
// solicitation. The arp and ndp types encode what is sent unasked.
//
// Read l2.go first, then answer.go.
package l2
