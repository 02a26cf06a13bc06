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

// WhoHas asks the LAN once who has addr, by ARP or by neighbour discovery, and
// returns the MACs of all who answer within 300 ms, in the order of their
// answers: one answer each, so a double answer shows.
func (c *Client) WhoHas(addr string) []string {
	c.view.helper()
	macs, err := c.ask(addr, 1, 300*time.Millisecond, 0)
	c.view.must(err)
	return macs
}

// Answers asks the LAN n times who has addr, one question per beat, and counts
// the answers by MAC.
func (c *Client) Answers(addr string, n int, beat time.Duration) map[string]int {
	c.view.helper()
	return c.count(addr, n, beat, 0)
}

// AllAnswers is Answers that asks the next question when the last one is answered:
// a busy machine answers late, and loses what queues up. It ends with the first that
// nobody answers in three seconds.
func (c *Client) AllAnswers(addr string, n int, beat time.Duration) map[string]int {
	c.view.helper()
	return c.count(addr, n, beat, 3*time.Second)
}

func (c *Client) count(addr string, n int, beat, patience time.Duration) map[string]int {
	c.view.helper()
	macs, err := c.ask(addr, n, beat, patience)
	c.view.must(err)
	count := map[string]int{}
	for _, mac := range macs {
		count[mac]++
	}
	return count
}

// ARP is WhoHas for an IPv4 address.
func (c *Client) ARP(addr string) []string {
	c.view.helper()
	return c.WhoHas(addr)
}

// ARPOwner is Owner for an IPv4 address.
func (c *Client) ARPOwner(addr string, within time.Duration) string {
	c.view.helper()
	return c.Owner(addr, within)
}

// Owner asks until exactly one answer comes, and returns its MAC.
func (c *Client) Owner(addr string, within time.Duration) string {
	c.view.helper()
	var owner string
	c.view.must(eventually(within, func() error {
		macs, err := c.ask(addr, 1, 100*time.Millisecond, 0)
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

// Claim announces to the LAN, unasked, that this client has addr: what a host does
// that comes up with it.
func (c *Client) Claim(addr string) {
	c.view.helper()
	target, err := netip.ParseAddr(addr)
	c.view.must(err)
	mac, err := net.ParseMAC(c.MAC())
	c.view.must(err)
	proto, frame := unix.ETH_P_ARP, arpFrame(mac, target, target)
	if target.Is6() {
		proto, frame = unix.ETH_P_IPV6, advertisement(mac, target)
	}
	c.view.must(c.ns.do(func() error {
		fd, err := openPacket(proto)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, frame)
		return errors.Join(err, unix.Close(fd))
	}))
}

// ask sends n questions, one per beat, and returns who answers until a beat
// (or, with short beats, 300 ms) after the last. With patience each question waits so
// long for its answer before the next is asked, and the first without is the last.
func (c *Client) ask(addr string, n int, beat, patience time.Duration) (macs []string, err error) {
	target, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, fmt.Errorf("lab: who has %q: %w", addr, err)
	}
	mac, err := net.ParseMAC(c.MAC())
	if err != nil {
		return nil, err
	}
	proto, question, answer := unix.ETH_P_ARP, []byte(nil), replyFor
	if target.Is4() {
		question = arpFrame(mac, mustAddr(c.IP()), target)
	} else {
		question, proto, answer = solicitation(mac, mustAddr(c.IPv6()), target), unix.ETH_P_IPV6, advertisedFor
	}
	var fd int
	err = c.ns.do(func() (err error) {
		fd, err = openPacket(proto)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lab: packet socket in %s: %w", c.ns.name, err)
	}
	defer unix.Close(fd)
	note := func(frame []byte) {
		// What is sent to everybody unasked answers no question.
		if len(frame) < etherLen || !slices.Equal(frame[:6], mac) {
			return
		}
		if who, ok := answer(frame, target); ok {
			macs = append(macs, who)
		}
	}
	next := time.Now()
	for i := range n {
		before := len(macs)
		if _, err := unix.Write(fd, question); err != nil {
			return nil, fmt.Errorf("lab: ask who has %s: %w", addr, err)
		}
		next = next.Add(beat)
		end := next
		if i == n-1 && n > 1 {
			end = end.Add(max(0, 300*time.Millisecond-beat))
		}
		if err := readUntil(fd, end, note); err != nil {
			return nil, err
		}
		for last := time.Now().Add(patience); len(macs) == before && patience > 0; {
			if !time.Now().Before(last) {
				return macs, nil
			}
			if err := readUntil(fd, time.Now().Add(time.Millisecond), note); err != nil {
				return nil, err
			}
		}
	}
	return macs, nil
}

// openPacket is called in the namespace.
func openPacket(protocol int) (int, error) {
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return 0, err
	}
	proto := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(protocol))))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: eth0.Index}); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// readUntil hands every frame to note until the time has come.
func readUntil(fd int, until time.Time, note func(frame []byte)) error {
	frame := make([]byte, 1500)
	for {
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err == unix.EINTR || ready == 0 {
			continue
		}
		if err != nil {
			return fmt.Errorf("lab: wait for answers: %w", err)
		}
		n, err := unix.Read(fd, frame)
		if err != nil {
			return fmt.Errorf("lab: read answers: %w", err)
		}
		note(frame[:n])
	}
}
