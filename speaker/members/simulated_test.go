package members

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// simulated is a network for whole members in a bubble of made-up time: a day passes in
// what its work takes. What is sent arrives at once, or never.
type simulated struct {
	*fleet
	ring           *memberlist.Keyring
	ends           map[netip.AddrPort]*simulatedEnd
	packets, bytes atomic.Int64
	lost           atomic.Int64  // what a buffer had no room for, that of a socket or a queue of memberlist's
	stops          []func()      // end a member each
	met            time.Duration // how long it took until all had met
	began          time.Duration // the time of a core that was spent before

	mu     sync.Mutex
	apart  func(a, b string) bool // whom the network does not let reach whom
	missed map[[2]string]int      // how often one doubted another, or lost it as a member
}

func newSimulated(t testing.TB, n int, profile string) *simulated {
	t.Helper()
	s := &simulated{fleet: newFleet(t, 200, n), ends: map[netip.AddrPort]*simulatedEnd{}, missed: map[[2]string]int{}}
	s.profile = profile
	keys, err := readKeys(s.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if s.ring, err = memberlist.NewKeyring(keys, keys[0]); err != nil {
		t.Fatal(err)
	}
	return s
}

// split makes members unable to reach each other; nil: all reach all.
func (s *simulated) split(apart func(a, b string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apart = apart
}

// reach returns the other end, if packets get there.
func (s *simulated) reach(from string, to netip.AddrPort) *simulatedEnd {
	end := s.ends[to]
	s.mu.Lock()
	defer s.mu.Unlock()
	if end == nil || s.apart != nil && (s.apart(from, end.of.opts.NodeName) || s.apart(end.of.opts.NodeName, from)) {
		return nil
	}
	return end
}

// connect gives a member its end of the network, before any member attends.
func (s *simulated) connect(m *Members) *simulatedEnd {
	e := &simulatedEnd{simulated: s, of: m, packets: make(chan *memberlist.Packet, 4096), streams: make(chan net.Conn, 64), gone: make(chan struct{})}
	e.at = netip.AddrPortFrom(m.want.Load().Self, uint16(m.port))
	s.ends[e.at] = e
	return e
}

// attend runs a member until ctx ends, or the test does.
func (s *simulated) attend(ctx context.Context, e *simulatedEnd) (stop func()) {
	s.t.Helper()
	c := e.of.config(s.ring, e.at.Addr())
	c.Transport = e
	list, err := memberlist.Create(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.of.attend(ctx, e.at.Addr(), list, e, newSimulatedAlarm()); err != nil {
			s.t.Error(err)
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// simulatedEnd is that of one member.
type simulatedEnd struct {
	*simulated
	of      *Members
	at      netip.AddrPort
	packets chan *memberlist.Packet
	streams chan net.Conn
	gone    chan struct{}
	closing sync.Once
}

var _ memberlist.NodeAwareTransport = (*simulatedEnd)(nil)

// send delivers a packet as a socket does: if the buffer has room, and to whoever handles
// heartbeats first.
func (e *simulatedEnd) send(b []byte, to netip.AddrPort) error {
	e.simulated.packets.Add(1)
	e.simulated.bytes.Add(int64(len(b)))
	other := e.reach(e.of.opts.NodeName, to)
	if other == nil {
		return nil
	}
	b = bytes.Clone(b)
	if isHeartbeat(b) {
		go other.of.hearHeartbeat(b) // the sender holds a lock meanwhile
		return nil
	}
	select {
	case other.packets <- &memberlist.Packet{Buf: b, From: net.UDPAddrFromAddrPort(e.at), Timestamp: time.Now()}:
	default:
		e.lost.Add(1)
	}
	return nil
}

func (e *simulatedEnd) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return e.at.Addr().AsSlice(), int(e.at.Port()), nil
}

func (e *simulatedEnd) WriteTo(b []byte, addr string) (time.Time, error) {
	return time.Now(), e.send(b, netip.MustParseAddrPort(addr))
}

func (e *simulatedEnd) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return e.WriteTo(b, a.Addr)
}

func (e *simulatedEnd) PacketCh() <-chan *memberlist.Packet { return e.packets }

func (e *simulatedEnd) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	other := e.reach(e.of.opts.NodeName, netip.MustParseAddrPort(addr))
	if other == nil {
		time.Sleep(timeout)
		return nil, context.DeadlineExceeded
	}
	here, there := net.Pipe()
	select {
	case other.streams <- there:
		return here, nil
	case <-other.gone:
		return nil, net.ErrClosed
	}
}

func (e *simulatedEnd) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return e.DialTimeout(a.Addr, timeout)
}

func (e *simulatedEnd) StreamCh() <-chan net.Conn { return e.streams }

func (e *simulatedEnd) Shutdown() error {
	e.closing.Do(func() { close(e.gone) })
	return nil
}

// simulatedAlarm is one in made-up time.
type simulatedAlarm struct {
	timer *time.Timer
	end   chan struct{}
}

func newSimulatedAlarm() *simulatedAlarm {
	a := &simulatedAlarm{time.NewTimer(time.Hour), make(chan struct{})}
	a.timer.Stop()
	return a
}

func (a *simulatedAlarm) set(at time.Time) {
	if a.timer.Stop(); !at.IsZero() {
		a.timer.Reset(time.Until(at))
	}
}

func (a *simulatedAlarm) wait() bool {
	select {
	case <-a.timer.C:
		return true
	case <-a.end:
		return false
	}
}

func (a *simulatedAlarm) close() { close(a.end) }

// attended runs n members in made-up time until all have met, which takes s.met, and then
// does test. Each watches the next few.
func attended(t *testing.T, n, watched int, profile string, test func(t *testing.T, s *simulated, all []*Members)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, n, profile)
		s.began, _, _ = spent()
		var all []*Members
		var ends []*simulatedEnd
		for i := range n {
			m := s.make(i, s.keyFile)
			m.opts.Log = slog.New(&noting{s, m.opts.NodeName, m.opts.Log.Handler(), n <= 50}) // each logs that each lives
			w := s.want(i)
			for j := range watched {
				w.Watch = append(w.Watch, s.peers[(i+1+j)%n].Name)
			}
			m.Set(w)
			all, ends = append(all, m), append(ends, s.connect(m))
		}
		defer time.Sleep(time.Minute) // memberlist does not wait for its goroutines
		var stopping sync.WaitGroup
		defer stopping.Wait()
		for _, e := range ends {
			stop := s.attend(t.Context(), e)
			s.stops = append(s.stops, stop)
			defer func() { stopping.Go(stop) }()
		}
		s.met = within(t, time.Minute, "all have met", func() bool { return each(all, func(m *Members) bool { return m.isSettled() && m.numAlive() == n }) })
		test(t, s, all)
		s.split(func(string, string) bool { return true }) // that each tells each that it leaves tests nothing
	})
}

// each reports whether something is true for each of some members.
func each(of []*Members, is func(m *Members) bool) bool {
	return !slices.ContainsFunc(of, func(m *Members) bool { return !is(m) })
}

// numDoubted is how many members this one doubts.
func (m *Members) numDoubted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.doubted)
}

// within waits in made-up time, and returns how long it took.
func within(t *testing.T, most time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		took := time.Since(began)
		if ok() {
			return took
		}
		if took > most {
			t.Fatalf("not within %v: %s", most, what)
		}
	}
}

// noting is a log that counts what a fleet at rest never says.
type noting struct {
	of *simulated
	me string
	slog.Handler
	all bool // it is written, too
}

func (h *noting) Enabled(context.Context, slog.Level) bool { return true }

func (h *noting) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case strings.Contains(r.Message, "handler queue full"):
		h.of.lost.Add(1)
	case r.Message == "member does not answer" || r.Message == "member is gone":
		h.of.mu.Lock()
		r.Attrs(func(a slog.Attr) bool { h.of.missed[[2]string{h.me, a.Value.String()}]++; return false })
		h.of.mu.Unlock()
	}
	if !h.all || !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// wronged is how often one that lives was doubted, or lost as a member, by another that does.
func (s *simulated) wronged(dead string) (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for who, n := range s.missed {
		if !slices.Contains(who[:], dead) {
			sum += n
		}
	}
	return sum
}
