package names

import (
	"context"
	"errors"
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
	// half is set where DNS failed to tell of one family, and the other has addresses.
	half error
	is4  bool // it is of IPv4
}

// misses reports whether some of what was known is of the family that DNS did not tell of.
func (f found) misses(known []netip.Addr) bool {
	return f.half != nil && slices.ContainsFunc(known, func(a netip.Addr) bool { return a.Is4() == f.is4 })
}

// with returns what was found, and what was known of the family that DNS did not tell of.
func (f found) with(known []netip.Addr) []netip.Addr {
	all := slices.Clone(f.addrs)
	for _, a := range known {
		if a.Is4() == f.is4 {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all[:min(len(all), maxAddrs)]
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
		context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) }) // Go goes on waiting for the answer
		if udp, ok := c.(*net.UDPConn); ok {
			return datagrams{udp, seen}, nil
		}
		return stream{c, seen}, nil
	}}
	f, err := bothFamilies(ctx, resolver.LookupNetIP, name+".")
	for i := range f.addrs {
		f.addrs[i] = f.addrs[i].Unmap().WithZone("")
	}
	slices.SortFunc(f.addrs, netip.Addr.Compare)
	f.addrs = slices.Compact(f.addrs)
	f.life = seen.life(len(f.addrs) > 0)
	f.addrs = f.addrs[:min(len(f.addrs), maxAddrs)]
	return f, err
}

// bothFamilies looks up the addresses of each family by itself. Of a question for both, Go
// returns the error of one, and that there is no IPv6 address must not hide that nobody
// said whether there is an IPv4 address. The error is that of DNS, if it failed; none, if
// there are addresses.
func bothFamilies(ctx context.Context, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error), host string) (found, error) {
	var addrs [2][]netip.Addr
	var errs [2]error
	var both sync.WaitGroup
	for i, network := range [2]string{"ip4", "ip6"} {
		both.Go(func() { addrs[i], errs[i] = lookup(ctx, network, host) })
	}
	both.Wait()
	failed := 0 // whose error counts
	if errs[0] == nil || isNone(errs[0]) {
		failed = 1
	}
	f := found{addrs: slices.Concat(addrs[0], addrs[1])}
	if len(f.addrs) == 0 {
		return f, errs[failed]
	}
	if !isNone(errs[failed]) {
		f.half, f.is4 = errs[failed], failed == 0
	}
	return f, nil
}

// isNone reports whether DNS says that there is no such address.
func isNone(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
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
