package members

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// largestPacket is the most that UDP carries.
	largestPacket = 1 << 16
	// receiveBuffer holds what comes while this process has no processor. The
	// kernel may give less.
	receiveBuffer = 2 << 20
	// acceptPause is waited when a connection cannot be accepted, such as for want
	// of file descriptors.
	acceptPause = 100 * time.Millisecond
)

// transport carries packets by UDP and states by TCP for memberlist. It is here for
// what memberlist's own costs a speaker that has nothing to do: 64 kB of fresh
// memory for every packet that comes, and a resolver for every one that goes.
type transport struct {
	tcp     *net.TCPListener
	udp     *net.UDPConn
	raw     *packets
	beat    func(packet []byte) bool // takes in what is not memberlist's, if it is that
	packets chan *memberlist.Packet
	streams chan net.Conn
	closed  chan struct{}
	closing sync.Once
	reading sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport listens on a port for both.
func newTransport(host string, port int, beat func(packet []byte) bool) (*transport, error) {
	ip := net.ParseIP(host)
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip, Port: port})
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	_ = udp.SetReadBuffer(receiveBuffer) // less will do
	raw, err := newPackets(udp)
	if err != nil {
		return nil, errors.Join(err, udp.Close(), tcp.Close())
	}
	t := &transport{
		tcp: tcp, udp: udp, raw: raw, beat: beat, packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closed: make(chan struct{}),
	}
	t.reading.Go(t.readPackets)
	t.reading.Go(t.acceptStreams)
	return t, nil
}

// readPackets passes on what comes, each in memory of its own size: memberlist
// keeps some of it.
func (t *transport) readPackets() {
	buf := make([]byte, largestPacket)
	for {
		n, from, err := t.raw.receive(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || n == 0:
			continue // such as an ICMP message about a packet of ours
		case t.beat(buf[:n]):
			continue
		}
		p := &memberlist.Packet{Buf: bytes.Clone(buf[:n]), From: net.UDPAddrFromAddrPort(from), Timestamp: time.Now()}
		select {
		case t.packets <- p:
		case <-t.closed:
			return
		}
	}
}

func (t *transport) acceptStreams() {
	for {
		conn, err := t.tcp.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-time.After(acceptPause):
				continue
			case <-t.closed:
				return
			}
		}
		select {
		case t.streams <- conn:
		case <-t.closed:
			_ = conn.Close() // nobody wants it any more
			return
		}
	}
}

// FinalAdvertiseAddr implements memberlist.Transport: Members always says where it
// is reached.
func (t *transport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, 0, fmt.Errorf("address of this member: %w", err)
	}
	return a.AsSlice(), port, nil
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("address of a member: %w", err)
	}
	return time.Now(), t.send(b, to)
}

func (t *transport) send(b []byte, to netip.AddrPort) error {
	if to.Addr().Zone() != "" { // the kernel wants its number
		_, err := t.udp.WriteToUDPAddrPort(b, to)
		return err
	}
	return t.raw.send(b, to)
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It may be called twice: memberlist does
// not call it where it could not begin.
func (t *transport) Shutdown() error {
	t.closing.Do(func() {
		close(t.closed)
		_ = t.tcp.Close()
		_ = t.udp.Close()
	})
	t.reading.Wait()
	return nil
}
