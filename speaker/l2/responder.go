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
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv6"
)

// counters of one interface and family.
type counters struct{ requests, replies, gratuitous, dropped atomic.Uint64 }

// responder answers on one interface, in its present incarnation: another
// index or MAC means another responder.
type responder struct {
	link link
	ifi  *net.Interface
	ans  *answerer
	v4   *socket // nil: the interface does no ARP
	v6   *socket
	out  chan<- Conflict

	groups  []*ipv6.PacketConn // where solicited-node groups are joined
	joined  map[netip.Addr]*ipv6.PacketConn
	spans4  []span
	spans6  []span
	c4, c6  *counters
	sending sync.Mutex // guards tx4 and tx6
	tx4     *socket
	tx6     *socket
	done    sync.WaitGroup
}

// newResponder opens the sockets of l. It answers nothing before set.
func newResponder(l link, c4, c6 *counters, conflicts chan<- Conflict) (*responder, error) {
	r := &responder{
		link: l, ans: newAnswerer(l.mac), out: conflicts,
		ifi:    &net.Interface{Index: l.index, Name: l.Name, HardwareAddr: l.mac[:]},
		joined: map[netip.Addr]*ipv6.PacketConn{}, c4: c4, c6: c6,
	}
	var errs []error
	open := func(to **socket, proto int, filter func([]span) ([]bpf.RawInstruction, error)) {
		program, err := filter(nil)
		if err == nil {
			*to, err = openSocket(r.ifi, proto, program)
		}
		errs = append(errs, err)
	}
	if l.arp {
		open(&r.v4, protoARP, arpFilter)
		open(&r.tx4, protoARP, arpFilter)
	}
	open(&r.v6, protoIPv6, ndpFilter)
	open(&r.tx6, protoIPv6, ndpFilter)
	if err := errors.Join(errs...); err != nil {
		r.close()
		return nil, err
	}
	if r.v4 != nil {
		r.done.Go(r.serveARP)
	}
	r.done.Go(r.serveNDP)
	return r, nil
}

// serveARP and serveNDP are two functions so that a goroutine dump names them.
func (r *responder) serveARP() { r.serve(r.v4, r.ans.arp, r.c4) }
func (r *responder) serveNDP() { r.serve(r.v6, r.ans.ndp, r.c6) }

func (r *responder) serve(s *socket, answer func(frame, out []byte) verdict, c *counters) {
	out := make([]byte, 128)
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
			if err := s.write(out[:v.reply]); err != nil {
				c.dropped.Add(1)
			} else {
				c.replies.Add(1)
			}
		}
		if v.claimed.IsValid() {
			select {
			case r.out <- Conflict{Address: v.claimed, Interface: r.link.Name, MAC: net.HardwareAddr(v.claimant[:]).String(), mac: v.claimant}:
			default: // somebody floods; the first few said it
			}
		}
	}
}

// set makes the responder answer for exactly these addresses. The filter opens
// before the table knows an address, and closes after.
func (r *responder) set(t *tables) error {
	var errs []error
	if spans := spansOf(t.v4); r.v4 != nil && !slices.Equal(spans, r.spans4) {
		errs = append(errs, setFilter(r.v4, spans, arpFilter))
		r.spans4 = spans
	}
	if spans := spansOf(t.v6); !slices.Equal(spans, r.spans6) {
		errs = append(errs, setFilter(r.v6, spans, ndpFilter))
		r.spans6 = spans
	}
	errs = append(errs, r.join(t.v6))
	r.ans.tables.Store(t)
	return errors.Join(errs...)
}

func setFilter(s *socket, spans []span, filter func([]span) ([]bpf.RawInstruction, error)) error {
	program, err := filter(spans)
	if err == nil {
		err = s.conn.SetBPF(program)
	}
	if err != nil {
		return fmt.Errorf("set the kernel's filter: %w", err)
	}
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
	for g, conn := range maps.Clone(r.joined) {
		if _, ok := want[g]; !ok {
			delete(r.joined, g)
			_ = conn.LeaveGroup(r.ifi, &net.IPAddr{IP: g.AsSlice()}) // the interface may be gone
		}
	}
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
	s, c := r.tx6, r.c6
	if address.Is4() {
		s, c = r.tx4, r.c4
	}
	if s == nil {
		return nil
	}
	frames, err := gratuitous(r.link.mac, address)
	if err != nil {
		return err
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	for _, f := range frames {
		if err := s.write(f); err != nil {
			return fmt.Errorf("announce %s: %w", address, err)
		}
		c.gratuitous.Add(1)
	}
	return nil
}

func (r *responder) close() {
	for _, s := range []*socket{r.v4, r.v6, r.tx4, r.tx6} {
		if s != nil {
			s.close()
		}
	}
	for _, g := range r.groups {
		_ = g.Close()
	}
	r.done.Wait()
}
