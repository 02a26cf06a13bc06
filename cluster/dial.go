package cluster

import (
	"context"
	"net"
	"syscall"
	"time"
)

// An API server whose machine fails sends no FIN. client-go asks it over HTTP/2
// after 30 s whether it lives, and waits 15 s for the answer; all that time
// pods that are gone go on being served. So the kernels ask each other sooner.
// They answer for a process that is busy, so a slow API server is not left.
const (
	idleBeforeProbe   = 5 * time.Second
	probeInterval     = time.Second
	unansweredProbes  = 3
	unacknowledgedFor = idleBeforeProbe + unansweredProbes*probeInterval

	// connectWithin leaves room for two lost SYNs, sent again after 1 and 3 s. A
	// longer patience would outlast the outage: the third comes after 7 s.
	connectWithin = 5 * time.Second
)

// dial connects to an API server. The connection breaks 8 s after the peer's
// kernel has fallen silent, whether it was idle (keepalive) or had something to
// say (TCP_USER_TIMEOUT, RFC 5482).
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		Timeout: connectWithin,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: idleBeforeProbe, Interval: probeInterval, Count: unansweredProbes,
		},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if broken := c.Control(func(fd uintptr) { err = breakUnacknowledged(fd) }); broken != nil {
				return broken
			}
			return err
		},
	}
	return d.DialContext(ctx, network, address)
}
