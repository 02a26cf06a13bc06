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

// Liveness is the state of a node's speaker as seen from the node's kernel.
type Liveness int

// The results of Probe.
const (
	Silent    Liveness = iota // the node does not answer, or a firewall drops the answer
	Listening                 // a process listens: it is alive, however slow
	Closed                    // the node is up, and no speaker listens there
)

// Probe finds out by a TCP connection whether a speaker listens on the node at addr. The
// kernel accepts it, so a speaker that gets no CPU time is not mistaken for a dead one;
// and a dead one on a live node is detected at once.
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
