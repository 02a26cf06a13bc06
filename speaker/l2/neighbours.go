package l2

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxNeighbours bounds how many hosts Neighbours returns.
const maxNeighbours = 32

// Neighbours are hosts that this machine has lately talked to on its LANs,
// gateways first. If none of them answers, and nobody asks anything either,
// it is rather we who are cut off.
func (a *Announcer) Neighbours() ([]Question, error) {
	links, err := readLinks()
	if err != nil {
		return nil, err
	}
	var gateways, others []Question
	for _, l := range links {
		if !l.Up {
			continue
		}
		list, err := netlink.NeighList(l.index, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list neighbours on %s: %w", l.Name, err)
		}
		for _, g := range l.Gateways {
			gateways = append(gateways, Question{Address: g.WithZone(""), Interfaces: []string{l.Name}, Host: true})
		}
		for _, n := range list {
			ip, ok := netip.AddrFromSlice(n.IP)
			if ok && len(n.HardwareAddr) == 6 && n.State&(unix.NUD_NOARP|unix.NUD_PERMANENT) == 0 && !ip.IsMulticast() {
				others = append(others, Question{Address: ip.Unmap(), Interfaces: []string{l.Name}, Host: true})
			}
		}
	}
	all := slices.Concat(gateways, others)
	return all[:min(len(all), maxNeighbours)], nil
}
