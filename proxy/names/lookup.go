package names

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// usualLife is that of an answer which does not say, as one from a file.
const usualLife = 5 * time.Second

// found is what a lookup has brought. Without an address, life is that of there being
// none.
type found struct {
	addrs []netip.Addr
	life  time.Duration
}

// ask looks a name up. The resolver of Go knows how the system is configured, servers
// and files, but keeps the time to live to itself: that is read from the answers as
// they pass.
func (r *Resolver) ask(ctx context.Context, name string) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dial := r.options.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	seen := &lives{}
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if udp, ok := c.(*net.UDPConn); ok {
			return datagrams{udp, seen}, nil
		}
		return stream{c, seen}, nil
	}}
	addrs, err := resolver.LookupNetIP(ctx, "ip", name+".")
	for i := range addrs {
		addrs[i] = addrs[i].Unmap().WithZone("")
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	return found{addrs[:min(len(addrs), maxAddrs)], seen.life(len(addrs) > 0)}, err
}

// datagrams and stream are connections to DNS servers whose answers are read along.
// Go's resolver tells the one from the other by the methods of net.PacketConn.
type (
	datagrams struct {
		*net.UDPConn
		seen *lives
	}
	stream struct {
		net.Conn
		seen *lives
	}
)

// Read implements net.Conn.
func (c datagrams) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	c.seen.note(b[:n])
	return n, err
}

// Read implements net.Conn. A message that comes in pieces is not understood, and
// then lives as long as one that does not say.
func (c stream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.seen.note(b[:n])
	return n, err
}

// lives are the shortest times to live among the answers to a lookup's questions.
type lives struct {
	mu       sync.Mutex
	some, no time.Duration // of addresses, and of there being none; 0: unknown
}

func (l *lives) life(some bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.no
	if some {
		d = l.some
	}
	if d == 0 {
		return usualLife
	}
	return d
}

// note reads a message. One of nobody whom we asked may shorten what is kept, no more:
// which addresses there are is for Go's resolver to say.
func (l *lives) note(message []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(message); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	answers, err := p.AllAnswers()
	if err != nil {
		return
	}
	authorities, _ := p.AllAuthorities()
	l.mu.Lock()
	defer l.mu.Unlock()
	address := false
	for _, a := range answers {
		address = address || a.Header.Type == dnsmessage.TypeA || a.Header.Type == dnsmessage.TypeAAAA
	}
	if address {
		for _, a := range answers {
			shorten(&l.some, a.Header.TTL)
		}
		return
	}
	for _, a := range authorities {
		if soa, ok := a.Body.(*dnsmessage.SOAResource); ok { // RFC 2308 section 5
			shorten(&l.no, min(a.Header.TTL, soa.MinTTL))
		}
	}
}

// shorten makes d the shorter of itself and a number of seconds. None is told from
// unknown by being a nanosecond.
func shorten(d *time.Duration, seconds uint32) {
	if t := max(time.Duration(seconds)*time.Second, 1); *d == 0 || t < *d {
		*d = t
	}
}
