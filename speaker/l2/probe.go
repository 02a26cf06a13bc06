package l2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Question asks who answers for an address on some interfaces; none named
// means every one.
type Question struct {
	Address    netip.Addr
	Interfaces []string
	// Host says that the address is a host's own, asked for only as a sign of
	// life. A probe would make a host that is just taking it up give it up
	// (RFC 4862 5.4.3, RFC 5227 2.1.1), so it is asked for as by any neighbour.
	Host bool
	// Held says that somebody is thought to have the address. In IPv6 the answer
	// to a probe goes to all nodes, and where two answer, as for a moment after a
	// cut, it turns those who talk to one to the other (RFC 4861 7.2.4, 7.2.5). So
	// it is asked for as by a neighbour, too, where this node is one.
	Held bool
}

// Found is somebody who answers for an address.
type Found struct {
	Interface string
	MAC       string
	// Answered says that it has answered this node, so that it hears the LAN. Otherwise it
	// was heard to announce the address, to ask others from it, or to answer all nodes.
	Answered bool
}

// Timing says how often and how long Probe asks.
type Timing struct {
	Times int
	Every time.Duration // how long to listen after each time
}

// Takeover is the timing that decides whether a silent member is really gone:
// five questions within 50 ms, all of which a LAN that loses a tenth of all packets
// leaves unanswered once in 4,000 times.
func Takeover() Timing { return Timing{Times: 5, Every: 10 * time.Millisecond} }

// FirstClaim is the timing before an address is announced that never was:
// three questions within 600 ms, RFC 5227 in spirit.
func FirstClaim() Timing { return Timing{Times: 3, Every: 200 * time.Millisecond} }

// Probe asks the LAN who answers for addresses, and returns who does. It ends
// early once every address is answered for. An interface that cannot ask is no
// answer; it is logged.
func (a *Announcer) Probe(ctx context.Context, questions []Question, timing Timing) (map[netip.Addr]Found, error) {
	found, _, err := a.Listen(ctx, questions, timing)
	return found, err
}

// Listen is Probe that also says whether anything at all was heard from others
// (an answer, or somebody else's question about one of the addresses) before
// it asked for the last time, and, if that were answers, again after it. Only
// then is silence an answer: a cable that is plugged in after the last question
// proves nothing, nor does one that was pulled before it.
func (a *Announcer) Listen(ctx context.Context, questions []Question, timing Timing) (found map[netip.Addr]Found, heard bool, err error) {
	links, err := readLinks()
	if err != nil {
		return nil, false, err
	}
	p := &probe{found: map[netip.Addr]Found{}, open: map[netip.Addr]int{}, all: make(chan struct{}), log: a.opts.Log}
	for _, l := range links {
		if l.Up {
			p.add(l, questions)
		}
	}
	// Closing a packet socket waits until no processor can be in it, tens of
	// milliseconds on a busy machine: the answer must not wait for that.
	defer a.closing.Go(p.close)
	p.remaining = len(p.open)
	if p.remaining == 0 {
		return nil, false, errors.New("no interface to ask on")
	}
	for _, e := range p.ears {
		p.listening.Go(e.listen)
	}
	var before bool
	var answers int64
	lively := func() bool { return before && (answers == 0 || p.answers.Load() > answers) }
	for range timing.Times {
		before, answers = p.heard.Load(), p.answers.Load()
		for _, e := range p.ears {
			e.ask()
		}
		if p.wait(ctx, timing.Every) {
			return p.result(), true, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return p.result(), lively(), ctx.Err()
}

// maxLate bounds how often wait begins anew.
const maxLate = 3

// wait listens for a while, counted from the last question, of which there may be
// thousands, and reports whether everything is answered by then. A process that got
// no processor meanwhile listens once more: the answers are there, and unread.
func (p *probe) wait(ctx context.Context, every time.Duration) (done bool) {
	for range maxLate {
		began := time.Now()
		select {
		case <-p.all:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(every):
		}
		if time.Since(began) < 2*every {
			break
		}
	}
	return false
}

// probe is one round of questions over several interfaces.
type probe struct {
	log       *slog.Logger
	ears      []*ear
	listening sync.WaitGroup
	heard     atomic.Bool
	answers   atomic.Int64
	all       chan struct{} // closed when every address is answered for

	mu        sync.Mutex
	found     map[netip.Addr]Found
	open      map[netip.Addr]int // on how many ears it is asked
	remaining int
}

// ear is one socket that asks and listens for one family on one interface.
type ear struct {
	p      *probe
	link   link
	in     *socket
	out    *writer
	ans    *answerer
	frames [][]byte
	parse  func(*answerer, []byte, []byte) reading
}

func (p *probe) add(l link, questions []Question) {
	var v4, v6 []asked
	for _, q := range questions {
		if len(q.Interfaces) > 0 && !slices.Contains(q.Interfaces, l.Name) {
			continue
		}
		one := asked{q.Address, unspecified(q.Address)}
		if q.Host || q.Held && !q.Address.Is4() {
			switch from := sourceFor(l, q.Address); {
			case from.IsValid():
				one.from = from
			case q.Host:
				continue // this interface has no address to ask from
			}
		}
		if !q.Address.Is4() {
			v6 = append(v6, one)
		} else if l.arp {
			v4 = append(v4, one)
		}
	}
	add := func(list []asked, proto int, filter filter, parse func(*answerer, []byte, []byte) reading) {
		if len(list) == 0 {
			return
		}
		e, err := newEar(p, l, list, proto, filter)
		if err != nil {
			p.log.Warn("an interface cannot be asked", "interface", l.Name, "error", err)
			return
		}
		e.parse = parse
		p.ears = append(p.ears, e)
		for _, a := range list {
			p.open[a.address]++
		}
	}
	add(v4, protoARP, arpFilter, (*answerer).arp)
	add(v6, protoIPv6, ndpFilter, (*answerer).ndp)
}

// asked is one address and who asks for it: nobody, or one of our own.
type asked struct{ address, from netip.Addr }

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// sourceFor is an address of l to ask for a from: of its subnet, or any of its
// family where a is on the link by a route, or by being link-local in IPv6.
func sourceFor(l link, a netip.Addr) netip.Addr {
	onLink := a.IsLinkLocalUnicast() && a.Is6() || slices.ContainsFunc(l.Routes, func(r netip.Prefix) bool { return r.Contains(a) })
	if slices.ContainsFunc(l.Prefixes, func(p netip.Prefix) bool { return p.Addr() == a }) {
		return netip.Addr{}
	}
	for _, p := range l.Prefixes {
		if p.Contains(a) || onLink && p.Addr().Is4() == a.Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

func newEar(p *probe, l link, list []asked, proto int, filter filter) (*ear, error) {
	e := &ear{p: p, link: l, ans: newAnswerer(l.mac)}
	t := &tables{v4: map[[4]byte]struct{}{}, v6: map[[16]byte]struct{}{}}
	addresses := make([]netip.Addr, 0, len(list))
	for _, one := range list {
		a := one.address
		addresses = append(addresses, a)
		frame, err := question(l.mac, one.from, a)
		if err != nil {
			return nil, err
		}
		e.frames = append(e.frames, frame)
		if a.Is4() {
			t.v4[a.As4()] = struct{}{}
		} else {
			t.v6[a.As16()] = struct{}{}
		}
	}
	e.ans.tables.Store(t)
	program, err := filter(l.index, spansOfAddrs(addresses, addresses[0].Is4()), nil)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	ifi := &net.Interface{Index: l.index, Name: l.Name, HardwareAddr: l.mac[:]}
	if e.in, err = openSocket(ifi, proto, program); err != nil {
		return nil, err
	}
	e.out = e.in.writer()
	return e, nil
}

// A queue that is full, as of a slow link when there are thousands of questions,
// is waited for this often and long. A question that is lost on this side would
// make its address look free.
const (
	askTries = 50
	askPause = time.Millisecond
)

// ask sends all questions.
func (e *ear) ask() {
	for _, f := range e.frames {
		err := e.out.write(f)
		for try := 0; errors.Is(err, syscall.EAGAIN) && try < askTries; try++ {
			time.Sleep(askPause)
			err = e.out.write(f)
		}
		if err != nil {
			e.p.log.Debug("question lost", "interface", e.link.Name, "error", err)
		}
	}
}

// listen collects who claims an asked address. Whoever asks for it as we do is
// not an owner; the answerer distinguishes the two.
func (e *ear) listen() {
	scratch := make([]byte, 128)
	for {
		frame, open := e.in.read()
		if !open {
			return
		}
		v := e.parse(e.ans, frame, scratch)
		if v.asked || v.claimed.IsValid() {
			e.p.heard.Store(true)
		}
		if v.claimed.IsValid() {
			e.p.answers.Add(1)
			e.p.note(v.claimed, Found{Interface: e.link.Name, MAC: net.HardwareAddr(v.claimant[:]).String(), Answered: v.answer})
		}
	}
}

func (p *probe) note(a netip.Addr, f Found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, known := p.found[a]; known {
		if f.Answered && !old.Answered {
			p.found[a] = f
		}
		return
	}
	if _, asked := p.open[a]; !asked {
		return
	}
	p.found[a] = f
	if p.remaining--; p.remaining == 0 {
		close(p.all)
	}
}

func (p *probe) result() map[netip.Addr]Found {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[netip.Addr]Found, len(p.found))
	for a, f := range p.found {
		out[a] = f
	}
	return out
}

func (p *probe) close() {
	for _, e := range p.ears {
		e.in.close()
	}
	p.listening.Wait()
}
