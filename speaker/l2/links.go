package l2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"quayside.io/speaker/announce"
)

// link is an interface that can carry announcements.
type link struct {
	announce.Interface
	index int
	mac   mac
	arp   bool
}

// excluded are the beginnings of names of interfaces that lead to containers
// or nowhere, never to a LAN. They are the names the field has agreed on.
func excluded(name string) bool {
	if name == "lo" {
		return true
	}
	return slices.ContainsFunc([]string{
		"docker", "cbr", "dummy", "virbr", "lxcbr", "veth", "cali", "tunl", "flannel",
		"kube-ipvs", "cni", "nodelocaldns", "lxc", "cilium", "vxlan.calico", "ifb", "wg",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// readLinks asks the kernel for every interface that can carry announcements,
// again where something changed during the dump.
func readLinks() (links []link, err error) {
	for range 5 {
		if links, err = tryLinks(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return links, err
}

// tryLinks asks three times in all, not once for every interface: a node may have
// thousands of routes to its pods.
func tryLinks() ([]link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	found := candidates(all)
	for _, a := range addresses {
		if v := found[a.LinkIndex]; v != nil {
			v.addAddress(a)
		}
	}
	for _, r := range routes { // onLink knows all addresses by now
		hops := r.MultiPath
		if len(hops) == 0 {
			hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via}}
		}
		for _, h := range hops {
			if v := found[h.LinkIndex]; v != nil {
				v.addRoute(r.Dst, h)
			}
		}
	}
	out := make([]link, 0, len(found))
	for _, v := range found {
		slices.SortFunc(v.Prefixes, netip.Prefix.Compare)
		slices.SortFunc(v.Routes, netip.Prefix.Compare)
		slices.SortFunc(v.Gateways, netip.Addr.Compare)
		v.Routes, v.Gateways = slices.Compact(v.Routes), slices.Compact(v.Gateways)
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b link) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// candidates are the interfaces that can carry announcements, by index.
func candidates(all []netlink.Link) map[int]*link {
	kinds := map[int]string{}
	for _, l := range all {
		kinds[l.Attrs().Index] = l.Type()
	}
	out := map[int]*link{}
	for _, l := range all {
		a := l.Attrs()
		// The port of a bridge or a bond is not where a LAN ends; that of a VRF is.
		if len(a.HardwareAddr) != 6 || excluded(a.Name) || a.MasterIndex != 0 && kinds[a.MasterIndex] != "vrf" {
			continue
		}
		v := &link{index: a.Index, mac: mac(a.HardwareAddr), arp: a.RawFlags&unix.IFF_NOARP == 0}
		v.Name, v.MAC = a.Name, a.HardwareAddr.String()
		v.Up = a.Flags&net.FlagUp != 0 && a.Flags&net.FlagRunning != 0
		out[a.Index] = v
	}
	return out
}

func (l *link) addAddress(a netlink.Addr) {
	if p, ok := prefixOf(a.IPNet); ok && !p.Addr().IsLinkLocalUnicast() {
		l.Prefixes = append(l.Prefixes, p)
	}
}

// addRoute takes in one way to a destination: by a gateway, which may be of the
// other family, or by the link itself.
func (l *link) addRoute(to *net.IPNet, hop *netlink.NexthopInfo) {
	gw := hop.Gw
	if via, ok := hop.Via.(*netlink.Via); ok {
		gw = via.Addr
	}
	if gw, ok := netip.AddrFromSlice(gw); ok {
		l.Gateways = append(l.Gateways, gw.Unmap())
	} else if p, ok := prefixOf(to); ok && onLink(p, l.Prefixes) {
		l.Routes = append(l.Routes, p.Masked())
	}
}

// hazards are settings of this machine that spoil what we do, each with what
// to do about it.
func hazards() []string {
	var out []string
	if _, err := net.InterfaceByName("kube-ipvs0"); err != nil {
		return nil // kube-proxy does not run in IPVS mode
	}
	// In that mode every load balancer address stands on kube-ipvs0, and the
	// kernel answers for it on every other interface unless configured not to.
	for name, least := range map[string]string{"arp_ignore": "1", "arp_announce": "2"} {
		b, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/" + name)
		if value := strings.TrimSpace(string(b)); err == nil && value < least {
			out = append(out, fmt.Sprintf("kube-proxy runs in IPVS mode and net.ipv4.conf.all.%s is %s: this node's kernel answers for every load balancer address, owned or not; set strictARP: true in kube-proxy's configuration", name, value))
		}
	}
	slices.Sort(out)
	return out
}

// onLink leaves out routes that say nothing new: those of the interface's own
// subnets, the default, and what is not a LAN's.
func onLink(p netip.Prefix, own []netip.Prefix) bool {
	a := p.Addr()
	if p.Bits() == 0 || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsLoopback() {
		return false
	}
	return !slices.ContainsFunc(own, func(o netip.Prefix) bool { return o.Masked() == p.Masked() })
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	a = a.Unmap()
	return netip.PrefixFrom(a, ones-(bits-a.BitLen())), ok && bits >= a.BitLen()
}

// watchLinks calls changed, without much delay and maybe needlessly, whenever
// interfaces, addresses or routes change, until ctx ends. A subscription that
// breaks (the kernel drops messages under load) is made again by the caller.
func watchLinks(ctx context.Context, changed func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	broken := func(err error) { cancel(fmt.Errorf("netlink subscription: %w", err)) }
	failed := func(err error) error { return fmt.Errorf("subscribe to netlink: %w", err) }

	links := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{ErrorCallback: broken}); err != nil {
		return failed(err)
	}
	defer drain(links)
	addrs := make(chan netlink.AddrUpdate, 64)
	if err := netlink.AddrSubscribeWithOptions(addrs, ctx.Done(), netlink.AddrSubscribeOptions{ErrorCallback: broken}); err != nil {
		return failed(err)
	}
	defer drain(addrs)
	routes := make(chan netlink.RouteUpdate, 64)
	if err := netlink.RouteSubscribeWithOptions(routes, ctx.Done(), netlink.RouteSubscribeOptions{ErrorCallback: broken}); err != nil {
		return failed(err)
	}
	defer drain(routes)

	changed() // what happened before the subscription
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case _, ok := <-links:
			if !ok {
				return context.Cause(ctx)
			}
		case _, ok := <-addrs:
			if !ok {
				return context.Cause(ctx)
			}
		case _, ok := <-routes:
			if !ok {
				return context.Cause(ctx)
			}
		}
		changed()
	}
}

// drain lets the subscription's goroutine end: it closes the channel when its
// socket is closed, which it only sees between two sends.
func drain[T any](c <-chan T) {
	go func() {
		for range c {
		}
	}()
}
