package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"quayside.io/command/explain"
)

// Limits bound the questions.
type Limits struct {
	Connect time.Duration // a name, a connection, a handshake, each
	Answer  time.Duration // to a request
	Ends    int           // that are asked
}

// Usual are the Limits for a person who waits.
func Usual() Limits { return Limits{Connect: 3 * time.Second, Answer: 10 * time.Second, Ends: 8} }

// Look asks at the ends of a path for the target that it leads to, and returns what it
// found. A URL whose path ends nowhere is looked for in DNS.
func Look(ctx context.Context, target string, path *explain.Path, limits Limits) []explain.Link {
	l := &looker{limits: limits, backend: path.Backend}
	ends := path.Ends
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		u = nil
	}
	if u != nil {
		ends = l.named(ctx, u, ends)
	}
	if len(ends) == 0 {
		l.say("live connect", explain.Unknown, "there is no address and TCP port to connect to")
	}
	for i, end := range ends {
		if i == limits.Ends {
			l.say("live connect", explain.Unknown, "%d more were not asked", len(ends)-i)
			break
		}
		l.end(ctx, u, end)
	}
	return l.links
}

// looker gathers links.
type looker struct {
	limits  Limits
	backend string // as in the path
	links   []explain.Link
}

func (l *looker) say(link string, state explain.State, format string, args ...any) {
	l.links = append(l.links, explain.Link{Name: link, State: state, Says: fmt.Sprintf(format, args...)})
}

// named looks the host of a URL up, and returns ends, or where the name leads if there
// are none.
func (l *looker) named(ctx context.Context, u *url.URL, ends []netip.AddrPort) []netip.AddrPort {
	host, port := u.Hostname(), portOf(u)
	if ip, err := netip.ParseAddr(host); err == nil {
		if len(ends) == 0 {
			ends = []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), port)}
		}
		return ends
	}
	const link = "live name"
	ctx, enough := context.WithTimeout(ctx, l.limits.Connect)
	defer enough()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	var known []string
	for i := range found {
		found[i] = found[i].Unmap()
		known = append(known, found[i].String())
	}
	slices.Sort(known)
	at := strings.Join(slices.Compact(known), ", ")
	var missing *net.DNSError
	switch leads := slices.ContainsFunc(ends, func(e netip.AddrPort) bool { return slices.Contains(found, e.Addr()) }); {
	case errors.As(err, &missing) && missing.IsNotFound:
		l.say(link, explain.Broken, "%s has no address in DNS here: clients need a record of it", host)
	case err != nil:
		l.say(link, explain.Unknown, "%s could not be looked up: %v", host, err)
	case len(ends) > 0 && !leads:
		l.say(link, explain.Unknown, "%s is %s here, and not where this path begins: does DNS, a hosts file or something in front lead elsewhere?", host, at)
	default:
		l.say(link, explain.Works, "%s is %s here", host, at)
	}
	if len(ends) > 0 {
		return ends
	}
	for _, ip := range found {
		ends = append(ends, netip.AddrPortFrom(ip, port))
	}
	return ends
}

// portOf is the port of a URL.
func portOf(u *url.URL) uint16 {
	var port uint16
	if _, err := fmt.Sscan(u.Port(), &port); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// end connects to an end, and asks there for u, if that is not nil.
func (l *looker) end(ctx context.Context, u *url.URL, at netip.AddrPort) {
	begin := time.Now()
	connecting, enough := context.WithTimeout(ctx, l.limits.Connect)
	defer enough()
	conn, err := new(net.Dialer).DialContext(connecting, "tcp", at.String())
	took := time.Since(begin)
	// The kernel has asked for the neighbour in order to connect.
	if says, state, onLink := neighbour(at.Addr()); onLink {
		l.say("live neighbour", state, "%s", says)
	}
	if err != nil {
		l.say("live connect", explain.Broken, "%s: %s", at, l.why(err))
		return
	}
	defer conn.Close()
	l.say("live connect", explain.Works, "%s in %s", at, round(took))
	if u != nil {
		l.request(ctx, conn, u, at)
	}
}

// why puts an error of a connection into words.
func (l *looker) why(err error) string {
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused: the address is somebody's who does not listen there"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "no route: nobody on the way, or on the LAN, answers for the address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s: nobody answers for the address, or a firewall drops what is sent", l.limits.Connect)
	}
	return err.Error()
}

// round shortens a duration for people.
func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
