package bfd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// receiveBuffer holds a second's worth of a thousand quick sessions, if
// net.core.rmem_max allows.
const receiveBuffer = 4 << 20

// batch is how many packets are read before others may have the lock, and
// backlog how many may wait in a socket.
const (
	batch   = 32
	backlog = 1 << 14
)

// receiver hears all sessions of one port and family.
type receiver struct {
	port
	conn    net.PacketConn
	raw     syscall.RawConn
	message *message
	lowest  uint8  // TTL that the kernel lets through
	lost    uint32 // packets that the kernel dropped, as it last said

	drainFn func(fd uintptr)
	now     time.Time // of drainFn
}

func receiverOptions(ipv6 bool) []option {
	if ipv6 {
		return []option{
			{unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer}, {unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1},
			{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		}
	}
	return []option{
		{unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer}, {unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1},
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
	}
}

// listen makes sure that a port is heard.
func (d *Detector) listen(p port) error {
	if d.receivers[p] != nil {
		return nil
	}
	r := &receiver{port: p, message: newMessage()}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if err := control(c, p.ipv6, p.vrf, receiverOptions); err != nil {
			return err
		}
		return filter(c, p.ipv6, d.lowest(p))
	}}
	conn, err := config.ListenPacket(context.Background(), p.network(), ":"+strconv.Itoa(p.number()))
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("UDP port %d is taken; does another BFD daemon run on this node? %w", p.number(), err)
	}
	if err != nil {
		return fmt.Errorf("listen on UDP port %d: %w", p.number(), err)
	}
	r.conn, r.lowest = conn, d.lowest(p)
	if r.raw, err = conn.(*net.UDPConn).SyscallConn(); err != nil {
		_ = conn.Close()
		return err
	}
	r.drainFn = func(fd uintptr) { d.read(r, fd, r.now, backlog) }
	d.receivers[p] = r
	d.readers.Go(func() { d.follow(r) })
	return nil
}

// follow reads until the socket is closed.
func (d *Detector) follow(r *receiver) {
	_ = r.raw.Read(func(fd uintptr) bool {
		for {
			d.mu.Lock()
			drained := d.read(r, fd, time.Now(), batch)
			d.unlock()
			if drained {
				return false // come back when there is more
			}
		}
	})
}

// drain hears what waits in every socket. A packet that was read and not yet heard
// cannot be: whoever reads holds the lock.
func (d *Detector) drain(now time.Time) {
	for _, r := range d.receivers {
		r.now = now
		_ = r.raw.Control(r.drainFn)
	}
}

// read hears packets, and reports whether none is left.
func (d *Detector) read(r *receiver, fd uintptr, now time.Time, limit int) bool {
	for range limit {
		m := r.message
		switch err := m.receive(int(fd), r.ipv6); {
		case err == 0:
			if m.lost != r.lost {
				d.dropped[dropKernel] += uint64(m.lost - r.lost)
				r.lost = m.lost
			}
			d.hear(r, m, now)
		case err == unix.EINTR:
		default: // EAGAIN; there is no other error that reading again would mend
			return true
		}
	}
	return false
}

// lowest is the lowest TTL that a session of a port accepts.
func (d *Detector) lowest(p port) uint8 {
	lowest := uint8(255)
	for _, peer := range d.have {
		if peer.port() == p {
			lowest = min(lowest, peer.minimumTTL)
		}
	}
	return lowest
}

// refilter tells the kernel what no session would accept.
func (d *Detector) refilter() {
	for _, r := range d.receivers {
		if lowest := d.lowest(r.port); lowest != r.lowest {
			if err := filter(r.raw, r.ipv6, lowest); err != nil {
				d.opts.Log.Warn("the kernel takes no filter", "error", err)
				continue
			}
			r.lowest = lowest
		}
	}
}

// closeUnneeded closes those that no session needs. Close waits for whoever reads,
// who may wait for the lock.
func (d *Detector) closeUnneeded() {
	d.mu.Lock()
	if !d.removed {
		d.unlock()
		return
	}
	d.removed = false
	unneeded := maps.Clone(d.receivers)
	for _, p := range d.have {
		delete(unneeded, p.port())
	}
	for p := range unneeded {
		delete(d.receivers, p)
	}
	d.unlock()
	for _, r := range unneeded {
		_ = r.conn.Close()
	}
}
