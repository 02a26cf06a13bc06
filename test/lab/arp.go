package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	etherLen   = 14
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2
)

// ARP asks the LAN once who has addr, and returns the MACs of all who answer
// within 300 ms, in the order of their answers: one answer each, so a double
// answer shows. (Raw sockets, not the libraries that the product uses: what
// judges it should not share its mistakes.)
func (c *Client) ARP(addr string) []string {
	c.view.helper()
	macs, err := c.askARP(addr, 300*time.Millisecond)
	c.view.must(err)
	return macs
}

// ARPOwner asks until exactly one answer comes, and returns its MAC.
func (c *Client) ARPOwner(addr string, within time.Duration) string {
	c.view.helper()
	var owner string
	c.view.must(eventually(within, func() error {
		macs, err := c.askARP(addr, 100*time.Millisecond)
		if err != nil {
			return &permanent{err}
		}
		if len(macs) != 1 {
			return fmt.Errorf("lab: %s: %d answers %v, want one", addr, len(macs), macs)
		}
		owner = macs[0]
		return nil
	}))
	return owner
}

func (c *Client) askARP(addr string, window time.Duration) ([]string, error) {
	target, err := netip.ParseAddr(addr)
	if err != nil || !target.Is4() {
		return nil, fmt.Errorf("lab: ARP for %q: not an IPv4 address", addr)
	}
	var fd int
	err = c.ns.do(func() (err error) {
		fd, err = openARP()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lab: ARP socket in %s: %w", c.ns.name, err)
	}
	defer unix.Close(fd)
	mac, err := net.ParseMAC(c.MAC())
	if err != nil {
		return nil, err
	}
	question := arpFrame(mac, mustAddr(c.IP()), target)
	if _, err := unix.Write(fd, question); err != nil {
		return nil, fmt.Errorf("lab: ask ARP: %w", err)
	}
	return readReplies(fd, target, time.Now().Add(window))
}

// openARP is called in the namespace.
func openARP() (int, error) {
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return 0, err
	}
	proto := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP)))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: eth0.Index}); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func arpFrame(mac net.HardwareAddr, from, target netip.Addr) []byte {
	f := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, []byte{0x08, 0x06})
	f = append(f, 0, 1, 8, 0, 6, 4, 0, arpRequest)
	f = slices.Concat(f, mac, from.AsSlice(), make([]byte, 6), target.AsSlice())
	return f
}

func readReplies(fd int, target netip.Addr, until time.Time) ([]string, error) {
	var macs []string
	frame := make([]byte, 1500)
	for {
		left := time.Until(until)
		if left <= 0 {
			return macs, nil
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err == unix.EINTR || ready == 0 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lab: wait for ARP: %w", err)
		}
		n, err := unix.Read(fd, frame)
		if err != nil {
			return nil, fmt.Errorf("lab: read ARP: %w", err)
		}
		if mac, ok := replyFor(frame[:n], target); ok {
			macs = append(macs, mac)
		}
	}
}

// replyFor returns who says that it has target: by an answer, not by asking.
func replyFor(frame []byte, target netip.Addr) (mac string, ok bool) {
	if len(frame) < etherLen+arpLen {
		return "", false
	}
	arp := frame[etherLen:]
	if binary.BigEndian.Uint16(arp[6:]) != arpReply || !slices.Equal(arp[14:18], target.AsSlice()) {
		return "", false
	}
	return net.HardwareAddr(arp[8:14]).String(), true
}
