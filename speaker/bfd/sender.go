package bfd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"quayside.io/speaker/bfd/session"
)

// Ports of RFC 5881 4 and RFC 5883 5.
const (
	portSingleHop = 3784
	portMultihop  = 4784
	firstSource   = 49152 // to 65535
)

// internetControl is the traffic class of what routers tell each other (CS6).
const internetControl = 0xc0

func (p port) number() int {
	if p.multihop {
		return portMultihop
	}
	return portSingleHop
}

func (p port) network() string {
	if p.ipv6 {
		return "udp6"
	}
	return "udp4"
}

// sender sends the packets of one session, from a port of its own. It is not
// connected: an ICMP error, which anybody may forge, would swallow a packet.
type sender struct {
	conn  net.PacketConn
	raw   syscall.RawConn
	port  uint16
	index int // of the interface; 0: any

	to      unix.Sockaddr
	buf     [session.PacketLength]byte
	err     error
	writeFn func(fd uintptr) // made once: a closure per packet would escape
}

// openSender opens a socket on a source port that is not taken.
func openSender(e ends, taken func(uint16) bool) (*sender, error) {
	s := &sender{}
	if e.link != "" {
		link, err := net.InterfaceByName(e.link)
		if err != nil {
			return nil, fmt.Errorf("interface %s: %w", e.link, err)
		}
		s.index = link.Index
	}
	if e.peer.Is4() {
		s.to = &unix.SockaddrInet4{Port: e.port().number(), Addr: e.peer.As4()}
	} else {
		to := &unix.SockaddrInet6{Port: e.port().number(), Addr: e.peer.As16()}
		if e.peer.IsLinkLocalUnicast() {
			to.ZoneId = uint32(s.index)
		}
		s.to = to
	}
	if err := s.bind(e, taken); err != nil {
		return nil, err
	}
	s.writeFn = func(fd uintptr) { s.err = unix.Sendto(int(fd), s.buf[:], unix.MSG_DONTWAIT, s.to) }
	return s, nil
}

func (s *sender) bind(e ends, taken func(uint16) bool) error {
	local := e.local
	if local.Is6() && local.IsLinkLocalUnicast() {
		local = local.WithZone(strconv.Itoa(s.index)) // package net remembers which one a name had
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return control(c, e.port().ipv6, e.device(), senderOptions)
	}}
	begin := rand.IntN(1 << 14)
	for i := range 1 << 14 {
		port := uint16(firstSource + (begin+i)%(1<<14))
		if taken(port) {
			continue
		}
		host := ""
		if local.IsValid() {
			host = local.String()
		}
		conn, err := config.ListenPacket(context.Background(), e.port().network(), net.JoinHostPort(host, strconv.Itoa(int(port))))
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open a socket: %w", err)
		}
		s.conn, s.port = conn, port
		s.raw, err = conn.(*net.UDPConn).SyscallConn()
		return err
	}
	return errPorts
}

// send writes one packet, and neither blocks nor allocates. A full queue drops
// it, as the network might.
func (s *sender) send(p *session.Packet) error {
	p.Append(s.buf[:0])
	if err := s.raw.Control(s.writeFn); err != nil {
		return err
	}
	return s.err
}

func (s *sender) close() { _ = s.conn.Close() }

// option is a socket option that is an integer.
type option struct{ level, name, value int }

// senderOptions are those of a sender; what arrives there is not read.
func senderOptions(ipv6 bool) []option {
	if ipv6 {
		return []option{
			{unix.SOL_SOCKET, unix.SO_RCVBUF, 0},
			{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, 255},
			{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, internetControl},
		}
	}
	return []option{
		{unix.SOL_SOCKET, unix.SO_RCVBUF, 0},
		{unix.IPPROTO_IP, unix.IP_TTL, 255},
		{unix.IPPROTO_IP, unix.IP_TOS, internetControl},
	}
}

// control sets options before a socket is bound. Anybody may bind a socket to an
// interface that is bound to none.
func control(c syscall.RawConn, ipv6 bool, link string, options func(ipv6 bool) []option) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		for _, o := range options(ipv6) {
			if err := unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
				failed = errors.Join(failed, fmt.Errorf("socket option %d of level %d: %w", o.name, o.level, err))
			}
		}
		if link != "" {
			if err := unix.BindToDevice(int(fd), link); err != nil {
				failed = errors.Join(failed, fmt.Errorf("bind to interface %s: %w", link, err))
			}
		}
	})
	return errors.Join(err, failed)
}
