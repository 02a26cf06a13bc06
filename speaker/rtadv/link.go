package rtadv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

const (
	// interval is the longest pause between advertisements, as FRR has it for
	// these links. The first come sooner, so that both sides begin at once.
	interval    = 10 * time.Second
	firstOnes   = 3
	firstPause  = time.Second
	answerPause = time.Second // between advertisements that were asked for; RFC 4861 6.2.6 has 3 s
	// look is how often the interface itself is looked at.
	look = time.Second
	// again is the pause after which a link is tried again.
	again = 250 * time.Millisecond
	// readPause bounds the pace of reading to a thousand a second.
	readPause = time.Millisecond
	// biggest message that is read; longer ones are dropped.
	biggest = 1500
)

// allNodes and allRouters are the groups of RFC 4291 2.7.1 on a link.
func allNodes() netip.Addr   { return netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 15: 1}) }
func allRouters() netip.Addr { return netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 15: 2}) }

// errChanged ends a conversation on an interface that is not what it was.
var errChanged = errors.New("the interface changed")

// link is one, and the goroutine that works on it.
type link struct {
	name   string
	finder *Finder
	heard  heard
	own    netip.Addr // that we advertise from
	lookAt time.Time  // at the interface
}

// run works on the link until ctx ends, through all that may happen to it.
func (l *link) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := l.attend(ctx)
		if ctx.Err() != nil {
			return
		}
		l.heard.interrupted()
		if !errors.Is(err, errChanged) {
			l.publish(fmt.Sprintf("interface %s: %v", l.name, err))
		}
		timer.Reset(again)
	}
}

// attend advertises and listens until the interface changes or fails.
func (l *link) attend(ctx context.Context) error {
	c, err := open(l.name)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := c.WriteTo(&ndp.RouterSolicitation{Options: c.source()}, nil, allRouters()); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	l.own = c.own
	l.publish("")
	var sent pace
	for ctx.Err() == nil {
		now := time.Now()
		if err := l.inspect(c, now); err != nil {
			return err
		}
		if sent.due(now) {
			if err := c.WriteTo(&ndp.RouterAdvertisement{Options: c.source()}, nil, allNodes()); err != nil {
				return fmt.Errorf("cannot send: %w", err)
			}
			sent.done(now, rand.Float64())
		}
		if err := l.listen(c, &sent); err != nil {
			return err
		}
	}
	return nil
}

// inspect looks at the interface now and then.
func (l *link) inspect(c *conn, now time.Time) error {
	if now.Before(l.lookAt) {
		return nil
	}
	l.lookAt = now.Add(look)
	if !c.isAsItWas() {
		return errChanged
	}
	if !c.runs() {
		l.heard.interrupted()
	}
	return nil
}

// listen takes one message, if one comes before there is something else to do.
func (l *link) listen(c *conn, sent *pace) error {
	until := l.lookAt
	if sent.next.Before(until) {
		until = sent.next
	}
	if err := c.SetReadDeadline(until); err != nil {
		return err
	}
	m, from, err := c.next()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
	case err != nil:
		return fmt.Errorf("cannot listen: %w", err)
	case m.kind == advertisement:
		was := l.heard.router.at
		l.heard.hear(time.Now(), from, m.lifetime)
		if l.heard.router.at != was {
			sent.ask(time.Now()) // it may have begun after our last
		}
	case m.kind == solicitation:
		sent.ask(time.Now())
	}
	l.publish("")
	return nil
}

// publish says what is known, and what ails the link, if anything does.
func (l *link) publish(problem string) {
	now := l.heard.state(time.Now(), l.name)
	now.Own = l.own
	if problem != "" {
		now.Problem = problem
	}
	l.finder.tell(l.name, &now)
}

// pace is when to advertise. The zero pace is due at once.
type pace struct {
	count      int
	last, next time.Time
}

func (p *pace) due(now time.Time) bool { return !now.Before(p.next) }

// done plans the next; random in [0, 1) keeps two ends from beating in time.
func (p *pace) done(now time.Time, random float64) {
	p.count++
	p.last = now
	if p.count < firstOnes {
		p.next = now.Add(firstPause)
		return
	}
	p.next = now.Add(interval - time.Duration(random*float64(interval/4)))
}

// ask makes the next come as soon as it may.
func (p *pace) ask(now time.Time) {
	soon := p.last.Add(answerPause)
	if soon.Before(now) {
		soon = now
	}
	if soon.Before(p.next) {
		p.next = soon
	}
}

// conn is a socket for neighbour discovery on one interface.
type conn struct {
	*ndp.Conn
	name  string
	index int
	mac   string
	own   netip.Addr
	buf   [biggest + 1]byte
}

// open opens one on the link-local address of an interface.
func open(name string) (*conn, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	// Package net remembers for a minute which number a name had, and interfaces
	// are made anew: the number stands for the name.
	numbered := *found
	numbered.Name = strconv.Itoa(found.Index)
	nc, own, err := ndp.Listen(&numbered, ndp.LinkLocal)
	if err != nil {
		return nil, fmt.Errorf("no socket for neighbour discovery: %w", err)
	}
	c := &conn{Conn: nc, name: name, index: found.Index, mac: found.HardwareAddr.String(), own: own.WithZone("")}
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	for _, err := range []error{c.SetICMPFilter(&filter), c.SetControlMessage(ipv6.FlagHopLimit, true), c.JoinGroup(allRouters())} {
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("socket for neighbour discovery: %w", err)
		}
	}
	return c, nil
}

// source is the option that tells our link-layer address.
func (c *conn) source() []ndp.Option {
	mac, err := net.ParseMAC(c.mac)
	if err != nil { // the link has none
		return nil
	}
	return []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}}
}

// next returns the next message that counts. The zone of who sent it is the
// interface.
func (c *conn) next() (message, netip.Addr, error) {
	for {
		n, control, from, err := c.ReadRaw(c.buf[:])
		if err != nil {
			return message{}, from, err
		}
		time.Sleep(readPause)
		from = from.WithZone("")
		if n <= biggest && control != nil && from != c.own {
			if m, ok := parse(c.buf[:n], control.HopLimit, from); ok {
				return m, from.WithZone(c.name), nil
			}
		}
	}
}

// isAsItWas reports whether the interface still is the one that was opened.
func (c *conn) isAsItWas() bool {
	now, err := net.InterfaceByName(c.name)
	if err != nil || now.Index != c.index || now.HardwareAddr.String() != c.mac {
		return false
	}
	addresses, err := now.Addrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == c.own {
			return true
		}
	}
	return false
}

// runs reports whether the interface is up and has a carrier.
func (c *conn) runs() bool {
	now, err := net.InterfaceByIndex(c.index)
	return err == nil && now.Flags&net.FlagUp != 0 && now.Flags&net.FlagRunning != 0
}
