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
	// largestPacket is the most bytes that a UDP packet carries.
	largestPacket = 1 << 16
	// receiveBuffer, in bytes, holds what arrives while this process gets no CPU time.
	// The kernel may grant less.
	receiveBuffer = 2 << 20
	// acceptPause is the pause after a connection could not be accepted, for example for
	// lack of file descriptors.
	acceptPause = 100 * time.Millisecond
)

// transport carries memberlist's packets by UDP and its streams by TCP. memberlist's own
// transport costs an idle speaker too much: it allocates 64 kB for every packet that
// arrives, and resolves the address of every packet that it sends.
type transport struct {
	tcp       *net.TCPListener
	udp       *net.UDPConn
	raw       *packets
	heartbeat func(packet []byte) bool // handles a heartbeat, and reports whether it was one
	packets   chan *memberlist.Packet
	streams   chan net.Conn
	closed    chan struct{}
	closing   sync.Once
	reading   sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport listens on a port, UDP and TCP.
func newTransport(host string, port int, heartbeat func(packet []byte) bool) (*transport, error) {
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
		tcp: tcp, udp: udp, raw: raw, heartbeat: heartbeat, packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closed: make(chan struct{}),
	}
	t.reading.Go(t.readPackets)
	t.reading.Go(t.acceptStreams)
	return t, nil
}

// readPackets passes on each packet in a slice of its own size: memberlist keeps some of
// them.
func (t *transport) readPackets() {
	buf := make([]byte, largestPacket)
	for {
		n, from, err := t.raw.receive(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || n == 0:
			continue // such as an ICMP message about a packet of ours
		case t.heartbeat(buf[:n]):
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
			_ = conn.Close() // memberlist reads no more streams
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
