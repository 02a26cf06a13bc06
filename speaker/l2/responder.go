package l2

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

// counters of one interface and family.
type counters struct{ requests, replies, gratuitous, dropped atomic.Uint64 }

// responder answers on one interface, in its present incarnation: another
// index or MAC means another responder. It has no sockets before there is
// something to answer for.
type responder struct {
	key    responderKey
	link   link
	ifi    *net.Interface
	ans    *answerer
	v4, v6 channel
	out    chan<- claimant

	signs  atomic.Uint64      // of life, from other hosts
	groups []*ipv6.PacketConn // where solicited-node groups are joined
	joined map[netip.Addr]*ipv6.PacketConn
	done   sync.WaitGroup
}

// channel is how a responder speaks one family.
type channel struct {
	proto    int
	filter   filter
	counters *counters

	socket *socket // nil: nothing to answer for yet
	spans  []span  // that its filter lets through
	near   []span  // whose answers it does
	writer *writer // for announcements
}

func newResponder(key responderKey, l link, c4, c6 *counters, claims chan<- claimant) *responder {
	return &responder{
		key: key, link: l, ans: newAnswerer(l.mac), out: claims,
		ifi:    &net.Interface{Index: l.index, Name: l.Name, HardwareAddr: l.mac[:]},
		v4:     channel{proto: protoARP, filter: arpFilter, counters: c4},
		v6:     channel{proto: protoIPv6, filter: ndpFilter, counters: c6},
		joined: map[netip.Addr]*ipv6.PacketConn{},
	}
}

// serveARP and serveNDP are two functions so that a goroutine dump names them.
func (r *responder) serveARP() { r.serve(r.v4.socket, r.ans.arp, r.v4.counters) }
func (r *responder) serveNDP() { r.serve(r.v6.socket, r.ans.ndp, r.v6.counters) }

func (r *responder) serve(s *socket, answer func(frame, out []byte) reading, c *counters) {
	out, w := make([]byte, 128), s.writer()
	for {
		frame, open := s.read()
		if !open {
			return
		}
		v := answer(frame, out)
		if v.asked {
			c.requests.Add(1)
		}
		if v.reply > 0 {
			if err := w.write(out[:v.reply]); err != nil {
				c.dropped.Add(1)
			} else {
				c.replies.Add(1)
			}
		}
		if v.sign {
			r.signs.Add(1)
		}
		if v.claimed.IsValid() {
			select {
			case r.out <- claimant{place{v.claimed, r.key}, v.claimant}:
			default: // somebody floods; the first few said it
			}
		}
	}
}

// set makes the responder answer for exactly these addresses. The filter opens
// before the table knows an address, and closes after.
func (r *responder) set(t *tables) error {
	var errs []error
	if r.link.arp {
		errs = append(errs, r.let(&r.v4, spansOf(t.v4), spansOf(t.near4), r.serveARP))
	}
	errs = append(errs, r.let(&r.v6, spansOf(t.v6), spansOf(t.near6), r.serveNDP), r.join(t.v6))
	r.ans.tables.Store(t)
	return errors.Join(errs...)
}

// let makes c let these spans through, and answers from those near, and begins to
// serve with the first.
func (r *responder) let(c *channel, spans, near []span, serve func()) error {
	if slices.Equal(spans, c.spans) && slices.Equal(near, c.near) {
		return nil
	}
	program, err := c.filter(r.link.index, spans, near)
	switch {
	case err != nil:
	case c.socket != nil:
		err = c.socket.conn.SetBPF(program)
	default:
		var s *socket
		if s, err = openSocket(r.ifi, c.proto, program); err == nil {
			c.socket, c.writer = s, s.writer()
			r.done.Go(serve)
		}
	}
	if err != nil {
		return fmt.Errorf("let questions through: %w", err)
	}
	c.spans, c.near = spans, near
	return nil
}

// join makes the interface receive what is sent to the solicited-node groups
// of the addresses. Several addresses may share a group.
func (r *responder) join(addresses map[[16]byte]struct{}) error {
	want := map[netip.Addr]struct{}{}
	for a := range addresses {
		if g, err := ndp.SolicitedNodeMulticast(netip.AddrFrom16(a)); err == nil {
			want[g] = struct{}{}
		}
	}
	var errs []error
	for g := range want {
		if _, ok := r.joined[g]; !ok {
			errs = append(errs, r.joinGroup(g))
		}
	}
	holding := map[*ipv6.PacketConn]struct{}{}
	for g, conn := range maps.Clone(r.joined) {
		if _, ok := want[g]; ok {
			holding[conn] = struct{}{}
			continue
		}
		delete(r.joined, g)
		_ = conn.LeaveGroup(r.ifi, &net.IPAddr{IP: g.AsSlice()}) // the interface may be gone
	}
	r.groups = slices.DeleteFunc(r.groups, func(conn *ipv6.PacketConn) bool {
		_, holds := holding[conn]
		return !holds && conn.Close() == nil
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("join solicited-node groups: %w", err)
	}
	return nil
}

// joinGroup uses the newest socket, or another one when that is full: the
// kernel bounds memberships per socket by its option memory.
func (r *responder) joinGroup(g netip.Addr) error {
	to := &net.IPAddr{IP: g.AsSlice()}
	if n := len(r.groups); n > 0 && r.groups[n-1].JoinGroup(r.ifi, to) == nil {
		r.joined[g] = r.groups[n-1]
		return nil
	}
	conn, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	p := ipv6.NewPacketConn(conn)
	var none ipv6.ICMPFilter
	none.SetAll(true) // it only holds memberships
	if err := errors.Join(p.SetICMPFilter(&none), p.JoinGroup(r.ifi, to)); err != nil {
		_ = p.Close()
		return err
	}
	r.groups = append(r.groups, p)
	r.joined[g] = p
	return nil
}

// announce sends the gratuitous frames for address.
func (r *responder) announce(address netip.Addr) error {
	c := &r.v6
	if address.Is4() {
		c = &r.v4
	}
	if c.writer == nil {
		return nil // the interface does no ARP
	}
	frames, err := gratuitous(r.link.mac, address)
	if err != nil {
		return err
	}
	for _, f := range frames {
		if err := c.writer.write(f); err != nil {
			return fmt.Errorf("announce %s: %w", address, err)
		}
		c.counters.gratuitous.Add(1)
	}
	if address.Is6() {
		r.tellKernel(address)
	}
	return nil
}

// tellKernel announces an address to this node's own kernel, to whom what a packet
// socket sends never comes. It may remember the MAC of the node that had the address;
// what comes for the address and belongs to no connection that kube-proxy knows, it
// sends back to the LAN, and tells the client by a redirect where that went, RFC 4861
// 8.2: the client would turn back to the dead. Nothing of this leaves the node, since
// the group is the interface's own, RFC 4291 2.7.1. Where it fails, such as on an
// interface without an IPv6 address, the kernel has no neighbours either.
func (r *responder) tellKernel(address netip.Addr) {
	group, err := ndp.SolicitedNodeMulticast(address)
	conn := r.joined[group]
	if err != nil || conn == nil {
		return
	}
	message, err := ndp.MarshalMessage(here(r.link.mac, address)) // the kernel adds the checksum
	if err != nil {
		return
	}
	to := &net.IPAddr{IP: net.IPv6interfacelocalallnodes, Zone: r.ifi.Name}
	_, _ = conn.WriteTo(message, &ipv6.ControlMessage{HopLimit: 255, IfIndex: r.ifi.Index}, to)
}

func (r *responder) close() {
	for _, c := range []*channel{&r.v4, &r.v6} {
		if c.socket != nil {
			c.socket.close()
		}
	}
	for _, g := range r.groups {
		_ = g.Close()
	}
	r.done.Wait()
}
