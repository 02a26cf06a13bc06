package bgp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxTTL      = 255
	tos         = 0xc0 // CS6, network control
	dialTimeout = 10 * time.Second
)

// dial opens a connection to the peer.
func dial(ctx context.Context, s *Settings) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error {
			if s.Password != "" {
				if err := setPassword(fd, s.Peer.Addr(), s.Peer.Addr().Is4(), s.Password); err != nil {
					return err
				}
			}
			return s.prepare(fd)
		})
	}}
	to, err := numbered(s.Peer)
	if err != nil {
		return nil, err
	}
	if from := s.Source; from.IsValid() {
		if from.Is6() && from.IsLinkLocalUnicast() {
			from = from.WithZone(to.Addr().Zone())
		}
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil && isTimeout(err) {
		switch {
		case s.Password != "":
			err = fmt.Errorf("%w (so it looks if the passwords differ)", err)
		case s.TTLSecurity:
			err = fmt.Errorf("%w (%s)", err, withoutTTLSecurity)
		}
	}
	return c, err
}

// withoutTTLSecurity is a guess at why a peer is silent.
const withoutTTLSecurity = "so it looks if the peer has no TTL security, or is further away than the next hop"

// numbered names the interface of a link-local address by its number: package
// net remembers for a minute which one a name had, and interfaces are made anew.
func numbered(peer netip.AddrPort) (netip.AddrPort, error) {
	zone := peer.Addr().Zone()
	if zone == "" {
		return peer, nil
	}
	link, err := net.InterfaceByName(zone)
	if err != nil {
		return peer, fmt.Errorf("interface %s: %w", zone, err)
	}
	return netip.AddrPortFrom(peer.Addr().WithZone(strconv.Itoa(link.Index)), peer.Port()), nil
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// adopt prepares a connection that the peer opened.
func (s *Settings) adopt(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, s.prepare)
}

// prepare sets what both kinds of connections need. The TTL is 1 towards an
// external peer next door, as other speakers have it; with TTL security it is
// 255 both ways.
func (s *Settings) prepare(fd int) error {
	ttl, least := maxTTL, 0
	switch {
	case s.TTLSecurity:
		least = maxTTL
	case s.neighbour():
		ttl = 1
	}
	if s.Device != "" {
		if err := unix.BindToDevice(fd, s.Device); err != nil {
			return fmt.Errorf("cannot bind to %s: %w", s.Device, err)
		}
	}
	if s.Peer.Addr().Is4() {
		return firstError(
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, ttl),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MINTTL, least),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tos))
	}
	return firstError(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ttl),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MINHOPCOUNT, least),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func control(raw syscall.RawConn, do func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// setPassword sets the key for packets to and from an address (RFC 2385); ""
// removes it. The socket is of the family that is said, of which peer must be.
func setPassword(fd int, peer netip.Addr, v4 bool, password string) error {
	sig := unix.TCPMD5Sig{Keylen: uint16(len(password))}
	copy(sig.Key[:], password)
	// The address is a sockaddr in the layout of the kernel: family, port, and
	// for IPv6 a flow label before the address and the scope after it.
	sig.Addr.Family = unix.AF_INET6
	if v4 {
		sig.Addr.Family = unix.AF_INET
		put(sig.Addr.Data[2:], peer.AsSlice())
	} else {
		put(sig.Addr.Data[6:], peer.AsSlice())
	}
	if err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, &sig); err != nil {
		return fmt.Errorf("cannot set the password for %v: %w", peer, err)
	}
	return nil
}

// put copies bytes into a field that Go has as signed or unsigned ones.
func put[B ~uint8 | ~int8](to []B, from []byte) {
	for i, b := range from {
		to[i] = B(b)
	}
}

// abroad is the address that stands for the session's own one among other
// machines. A peer on this node, such as the BIRD of Calico, may be spoken to from
// a loopback address; as a next hop it would be handed on to where it means
// somebody else. Then it is that of the peer, or the router ID, if the node has it.
func (s *Settings) abroad(local netip.Addr) netip.Addr {
	if !local.IsLoopback() {
		return local
	}
	for _, a := range []netip.Addr{s.Peer.Addr(), s.RouterID} {
		if !a.IsLoopback() && len(interfaceOf(a)) > 0 {
			return a
		}
	}
	return local
}

// ours are the addresses of the session's interface that can be next hops, by
// family, and its link-local address, if the peer is on that link: to others it means
// nothing (RFC 2545 section 3). The session's own address comes first.
func ours(local, peer netip.Addr) (own [2]netip.Addr, linkLocal netip.Addr) {
	all := interfaceOf(local)
	addresses := []netip.Addr{local.WithZone("")}
	for _, p := range all {
		addresses = append(addresses, p.Addr())
	}
	for _, a := range addresses {
		switch {
		case a.IsLinkLocalUnicast() && a.Is6():
			if !linkLocal.IsValid() {
				linkLocal = a
			}
		case a.IsLoopback() && !local.IsLoopback():
		case !own[familyOf(a)].IsValid():
			own[familyOf(a)] = a
		}
	}
	if !own[ipv6].IsValid() && local.Is6() {
		own[ipv6] = linkLocal // the only one there is
	}
	if !slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(peer.WithZone("")) }) {
		linkLocal = netip.Addr{}
	}
	return own, linkLocal
}

// interfaceOf lists the addresses of the interface that has an address, with their
// networks.
func interfaceOf(local netip.Addr) []netip.Prefix {
	links, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, link := range links {
		if local.Zone() != "" && local.Zone() != link.Name {
			continue
		}
		addrs, err := link.Addrs()
		if err != nil {
			continue
		}
		var list []netip.Prefix
		found := false
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			list = append(list, p)
			found = found || p.Addr() == local.WithZone("")
		}
		if found {
			return list
		}
	}
	return nil
}
