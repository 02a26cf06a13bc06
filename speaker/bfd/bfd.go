package bfd

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/bfd/session"
	"quayside.io/speaker/due"
)

// Options of a Detector.
type Options struct {
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Want is every session to hold, by a name for people and metrics. It must not
// be modified after Set.
type Want struct {
	Sessions map[string]Session
}

// Session is one that is wanted. Peer, Local, Interface, VRF and Multihop say which
// it is: no two sessions have all five in common, and a change of one of them makes
// another session.
type Session struct {
	// Peer is the other end; an IPv6 link-local address has a zone, or Interface
	// is set.
	Peer netip.Addr
	// Local is this end; the zero Addr leaves it to the kernel.
	Local netip.Addr
	// Interface is the only one to send and to be heard on; empty: any.
	Interface string
	// VRF that the session runs in, by the name of its device: packets of others are
	// not its own, and a peer's address may be another machine there; empty: none.
	VRF string
	// Multihop lets the peer be several hops away (RFC 5883).
	Multihop bool
	// MinimumTTL is the lowest TTL of a packet that is heard; zero: 254. Only with
	// Multihop; otherwise it is 255 (RFC 5881 5).
	MinimumTTL uint8
	// Transmit and Receive are the shortest intervals at which this end sends and
	// can hear: 10 ms to 1 min; zero: 300 ms.
	Transmit, Receive time.Duration
	// Multiplier is how many of its intervals this end may be silent for: 1 to
	// 255; zero: 3.
	Multiplier uint8
	// Passive waits for the peer to speak first.
	Passive bool
}

// Status is how a session stands.
type Status struct {
	// State is ours, Remote what the peer last said its is.
	State, Remote session.State
	// Since is when State became what it is.
	Since time.Time
	// Diag says why State is what it is, and RemoteDiag why Remote, as the peer
	// says; "" there is nothing to say.
	Diag, RemoteDiag string
	// Transmit and Receive are the intervals that were negotiated, and Detection
	// the silence that ends the session; zero: the peer was not heard.
	Transmit, Receive, Detection time.Duration
	// Failures counts how often the session went from Up to Down while neither end
	// was asked to take it down.
	Failures uint64
	// Starved counts how often this process did not run for longer than the
	// detection time. That is when it was last noticed.
	Starved   uint64
	StarvedAt time.Time
	// Problem says why the session cannot work; "" it can.
	Problem string
}

// Detector holds sessions.
type Detector struct {
	opts  Options
	want  atomic.Pointer[Want]
	state atomic.Pointer[map[string]Status]
	wake  chan struct{}
	watch chan struct{}

	readers sync.WaitGroup

	// mu guards what follows. Whoever takes it sends and hears packets; none of
	// that blocks.
	mu        sync.Mutex
	applied   *Want
	refused   map[string]string // by name: why a session is not held
	have      map[ends]*peer
	byID      map[uint32]*peer // by our discriminator
	receivers map[port]*receiver
	queue     due.Queue[*peer]
	armed     time.Time // when the next turn is to begin
	dirty     bool      // State is not what it should be
	removed   bool      // a session, and maybe the last one of its receiver
	dropped   map[string]uint64
}

// New returns a Detector that holds no session.
func New(o Options) *Detector {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Detector{
		opts: o, wake: make(chan struct{}, 1), watch: make(chan struct{}, 1),
		have: map[ends]*peer{}, byID: map[uint32]*peer{}, receivers: map[port]*receiver{},
		dropped: map[string]uint64{},
	}
	d.want.Store(&Want{})
	d.applied = d.want.Load()
	d.state.Store(&map[string]Status{})
	if o.Registerer != nil {
		o.Registerer.MustRegister(newMetrics(d))
	}
	return d
}

// Set declares the sessions. It never blocks, and the latest wins.
func (d *Detector) Set(w *Want) {
	d.want.Store(w)
	poke(d.wake)
}

// Watch signals that State changed.
func (d *Detector) Watch() <-chan struct{} { return d.watch }

// State returns how every session stands that is in force, by name. It must not
// be modified.
func (d *Detector) State() map[string]Status { return *d.state.Load() }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	// goodbye bounds how long a peer is told that a session ends.
	goodbye = time.Second
	// retryAfter is the pause before a socket is asked for again.
	retryAfter = time.Second
	// slack is how late a turn may be on a machine that has other things to do.
	slack = 5 * time.Millisecond
)

// Run holds the sessions until ctx ends. Then it tells the peers, for a second at
// most, and returns.
func (d *Detector) Run(ctx context.Context) error {
	defer d.readers.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	// Each turn one of these happened: we are to end; something else is wanted or
	// due earlier than it was; something is due.
	for leaving := false; ; {
		select {
		case <-ended:
			leaving, ended = true, nil
		case <-d.wake:
		case <-timer.C:
		}
		next, left := d.turn(leaving)
		d.closeUnneeded()
		if leaving && left == 0 {
			return nil
		}
		timer.Reset(time.Until(next))
	}
}

// turn does what is due, and says when to come back and how many sessions there
// still are.
func (d *Detector) turn(leaving bool) (next time.Time, left int) {
	d.mu.Lock()
	defer d.unlock()
	now := time.Now() // having the lock, for which we may have waited
	d.notice(now)
	want := d.want.Load()
	if leaving {
		want = &Want{}
	}
	if want != d.applied && (!leaving || len(d.applied.Sessions) > 0) {
		d.apply(want, now)
	}
	first := d.queue.First()
	for ; first != nil && !first.At().After(now); first = d.queue.First() {
		d.serve(first.Value, now)
	}
	d.armed = now.Add(time.Hour)
	if first != nil {
		d.armed = first.At()
	}
	return d.armed, len(d.have)
}

// notice finds out that this process did not run, and excuses the peers for as
// long.
func (d *Detector) notice(now time.Time) {
	late := now.Sub(d.armed)
	if d.armed.IsZero() || late < slack {
		return
	}
	starved := 0
	for _, p := range d.have {
		p.machine.Excuse(late)
		if p.seen.Detection > 0 && late > p.seen.Detection {
			p.starved++
			p.starvedAt = now
			starved++
		}
	}
	if starved > 0 {
		d.dirty = true
		d.opts.Log.Warn("this process was starved; silence in that time is not held against the peers", "for", late, "sessions", starved)
	}
}

// unlock shows what has changed. The next turn is late, if it is, since what is due
// now, not since what was due before: or the time would be missing in which this
// process does not run before that turn.
func (d *Detector) unlock() {
	if d.dirty {
		d.dirty = false
		d.publish()
	}
	if first := d.queue.First(); first != nil && first.At().Before(d.armed) {
		d.armed = first.At()
		poke(d.wake)
	}
	d.mu.Unlock()
}

func (d *Detector) publish() {
	all := make(map[string]Status, len(d.have)+len(d.refused))
	for name, why := range d.refused {
		all[name] = Status{State: session.AdminDown, Remote: session.Down, Problem: why}
	}
	for _, p := range d.have {
		if p.leaving.IsZero() {
			all[p.name] = p.status()
		}
	}
	d.state.Store(&all)
	poke(d.watch)
}
