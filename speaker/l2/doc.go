// Package l2 makes this node answer for addresses on its LANs: ARP for IPv4, neighbour discovery
// for IPv6, with gratuitous announcements when an address arrives, and slowly repeated ones from
// then on.
//
// Only package speaker imports it. Set declares which addresses are answered for on which
// interfaces, Listen asks the LAN whether another host answers, and Watch and Conflicts report
// changes of interfaces and other hosts that claim an address. The package decides nothing: who
// owns an address is decided by announce. Where it is told which other speakers are on a LAN, it
// asks them for signs of life, and reports which interfaces are deaf.
//
// It keeps these promises:
//   - the path from a received frame to its answer takes no lock, allocates nothing, and gives
//     malformed frames no answer;
//   - the kernel filters: only questions about our addresses reach this process;
//   - when an interface comes, goes, flaps or changes its MAC, its multicast groups are joined
//     again and its addresses announced again;
//   - an interface serves IPv4 addresses without having one itself.
//
// Frames are received on packet sockets, never on arp.Client or ndp.Conn: the former refuses an
// interface without IPv4, the latter never receives a unicast solicitation. The arp and ndp types
// encode the announcements.
//
// Read l2.go first, then answer.go.
package l2
