package asker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/socket"
)

// connectTimeout bounds the making of one connection, as for backends.
const connectTimeout = 5 * time.Second

// errRefused is why an address is not asked.
var errRefused = errors.New("the address is the machine's own or its cloud's, and is not asked")

// A Lookup returns the endpoints of host:port if host is the name of a Service of the
// cluster. An error says that it is one, but that there is nobody to ask.
type Lookup func(host string, port uint16) (endpoints []netip.AddrPort, ours bool, err error)

// leastShare is the least time that an endpoint has to accept a connection: that of a
// first packet that is lost.
const leastShare = time.Second + time.Second/2

// Dial connects with d to address, HOST:PORT: to an endpoint of the Service that it names,
// in random order, or else to what DNS says. An endpoint that is mute costs its share of
// the time of ctx, and not that of the others.
func (l Lookup) Dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	endpoints, ours, err := l(host, uint16(port))
	switch {
	case err != nil:
		return nil, err
	case !ours:
		return d.DialContext(ctx, network, address)
	}
	err = fmt.Errorf("no endpoint of Service %s is ready", host)
	for n, i := range rand.Perm(len(endpoints)) {
		c, failed := dialShare(ctx, d, network, endpoints[i], len(endpoints)-n)
		if failed == nil {
			return c, nil
		}
		err = failed
	}
	return nil, err
}

// dialShare connects to an endpoint in its share of the time that is left, where so many
// have one.
func dialShare(ctx context.Context, d *net.Dialer, network string, to netip.AddrPort, shares int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && shares > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(time.Until(end)/time.Duration(shares), leastShare))
		defer cancel()
	}
	return d.DialContext(ctx, network, to.String())
}

// dial connects to who is asked, unless that is what is not.
func (a *Asker) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return a.options.Service.Dial(ctx, &net.Dialer{ControlContext: a.control}, network, address)
}

// silence is how long a machine that is asked over a connection that was kept may confirm
// nothing: it is gone then, and the question is asked over another. How long the service
// itself takes is another matter.
const silence = 2 * time.Second

// control looks at the address itself, which no name can hide.
func (a *Asker) control(_ context.Context, _, address string, raw syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !a.allowed(at.Addr()) {
		return errRefused
	}
	return socket.EndSilent(raw, silence)
}

func (a *Asker) allowed(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		return a.options.AllowLoopback
	case addr.IsUnspecified(), addr.IsMulticast():
		return false
	}
	return balance.RefuseOutside(addr) == ""
}

// portOf is the port that a URL means; 0 if it means none.
func portOf(u *url.URL) uint16 {
	text := u.Port()
	switch {
	case text != "":
	case u.Scheme == "https":
		return 443
	default:
		return 80
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}
