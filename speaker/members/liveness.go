package members

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Liveness is what the kernel of a node says about its speaker.
type Liveness int

// What a probe finds out.
const (
	Silent    Liveness = iota // the node does not answer, or a firewall does not let it
	Listening                 // a process listens: it lives, however slowly
	Closed                    // the node lives, and no speaker listens there
)

// Probe asks the node at addr whether a speaker listens. The kernel answers, so
// a speaker that is starved of CPU is not mistaken for a dead one; and a dead
// one on a node that lives is known at once.
func (m *Members) Probe(ctx context.Context, addr netip.Addr, timeout time.Duration) Liveness {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), strconv.Itoa(m.port)))
	switch {
	case err == nil:
		_ = conn.Close() // it was only opened
		return Listening
	case errors.Is(err, syscall.ECONNREFUSED):
		return Closed
	}
	return Silent
}
