package l2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"quayside.io/speaker/announce"
)

// Options of an Announcer.
type Options struct {
	// Beat is the pause between announcements of an address that is settled;
	// zero means a minute.
	Beat time.Duration
	// Log and Registerer may be nil: then nothing is logged or measured.
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Announcement is how one address is announced.
type Announcement struct {
	// Interfaces to answer on; none means every one.
	Interfaces []string
	// Round begins the burst of gratuitous frames again whenever it changes:
	// the network must hear again who won a conflict.
	Round int64
}

// Want is everything to announce. It must not be modified after Set.
type Want struct {
	Addresses map[netip.Addr]Announcement
	// Members are the MACs of other speakers. They may claim an address of ours
	// while it changes hands, and are no strangers.
	Members map[string]struct{}
	// Nearby are other speakers on the LANs of interfaces, by name, which should answer
	// there. They are asked for signs of life; see Interface.Deaf of package announce.
	Nearby map[string][]Host
}

// Host is another host on a LAN.
type Host struct {
	Address netip.Addr
	MAC     string // empty: it is asked for by broadcast
}

// Conflict is a stranger who claims an address of ours.
type Conflict struct {
	Address   netip.Addr
	Interface string
	MAC       string
}

// claimant is somebody who claims an address of ours: a Conflict, unless a member.
type claimant struct {
	place
	mac mac
}

// Announcer answers for addresses on the interfaces of this machine.
type Announcer struct {
	opts      Options
	want      atomic.Pointer[Want]
	inForce   atomic.Pointer[Want] // as far as the interfaces allow
	links     atomic.Pointer[[]announce.Interface]
	hazards   atomic.Pointer[[]string]
	failures  atomic.Pointer[[]string]
	wake      chan struct{}
	applied   chan struct{}
	watch     chan struct{}
	conflicts chan Conflict // to the component
	raw       chan claimant // from the responders
	metrics   *metrics
	closing   sync.WaitGroup // probes that let their sockets go
	ready     chan struct{}

	// What follows belongs to the goroutine of Run.
	hasRead    bool   // the interfaces, and ready is closed
	unread     string // why they could not be read the last time; empty: they could
	responders map[responderKey]*responder
	failed     map[responderKey]string // why one does not serve
	delay      time.Duration           // before they are tried again; 0: all do
	serving    map[place]int64         // with the Round
	sched      *schedule
	defended   map[place]time.Time
	monitors   map[responderKey]*linkMonitor
}

type responderKey struct {
	index int
	mac   mac
	name  string
}

// New returns an Announcer that announces nothing yet.
func New(opts Options) *Announcer {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	if opts.Beat == 0 {
		opts.Beat = time.Minute
	}
	a := &Announcer{
		opts: opts, wake: make(chan struct{}, 1), applied: make(chan struct{}, 1), watch: make(chan struct{}, 1),
		conflicts: make(chan Conflict, 64), raw: make(chan claimant, 256),
		ready:      make(chan struct{}),
		responders: map[responderKey]*responder{}, failed: map[responderKey]string{},
		serving: map[place]int64{}, sched: newSchedule(opts.Beat),
		defended: map[place]time.Time{}, monitors: map[responderKey]*linkMonitor{},
	}
	a.want.Store(&Want{})
	a.links.Store(new([]announce.Interface))
	a.hazards.Store(&[]string{})
	a.failures.Store(&[]string{})
	a.metrics = newMetrics(opts.Registerer)
	return a
}

// Set declares what to announce. It never blocks, and the latest wins.
func (a *Announcer) Set(w *Want) {
	a.want.Store(w)
	poke(a.wake)
}

// Await returns when w, declared last, is in force, or after that long: the first
// address on an interface needs a socket, and the kernel may take a while to
// give it one. Only whoever calls Set may call it.
func (a *Announcer) Await(w *Want, atMost time.Duration) {
	late := time.After(atMost)
	for a.inForce.Load() != w {
		select {
		case <-a.applied:
		case <-late:
			return
		}
	}
}

// Watch signals that Interfaces, Hazards or Failures changed.
func (a *Announcer) Watch() <-chan struct{} { return a.watch }

// Ready is closed once the interfaces have been read.
func (a *Announcer) Ready() <-chan struct{} { return a.ready }

// Conflicts delivers strangers who claim addresses of ours, at most one per
// address, interface and defence interval.
func (a *Announcer) Conflicts() <-chan Conflict { return a.conflicts }

// Interfaces are the interfaces that can carry announcements; nil before they
// have been read.
func (a *Announcer) Interfaces() []announce.Interface { return *a.links.Load() }

// Hazards are settings of this machine that spoil what we do, as sentences.
func (a *Announcer) Hazards() []string { return *a.hazards.Load() }

// Failures are interfaces that cannot answer, or not for all, as sentences.
func (a *Announcer) Failures() []string { return *a.failures.Load() }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	// scanPause holds back the next look at the interfaces: a node whose routes
	// churn must not keep us busy with them.
	scanPause = 100 * time.Millisecond
	// rescan looks again without a message, for what netlink dropped.
	rescan = 30 * time.Second
	// firstRetry and lastRetry lie between attempts to serve on an interface where that
	// failed, such as for want of a descriptor, and firstRetry between attempts to read them.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// defence is DEFEND_INTERVAL of RFC 5227 2.4: claim back at most this often.
	defence = 10 * time.Second
	// sendBatch and sendPause limit gratuitous frames to some 6,000 addresses on an
	// interface a second, a pace that small switches and the asker's own queue survive.
	sendBatch = 64
	sendPause = 10 * time.Millisecond
)

// Run answers until ctx ends. Then it falls silent; it takes nothing back,
// since nothing on a LAN could be taken back.
func (a *Announcer) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	watching := make(chan struct{})
	go a.followLinks(ctx, changed, watching)
	defer func() {
		<-watching
		a.closing.Wait()
		for _, r := range a.responders {
			r.close()
		}
	}()
	var scanned time.Time
	scan := time.NewTimer(0)
	send, sign, retry := time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	// Each turn one of these happened: something else is wanted; the interfaces
	// may have changed; it is time to try again what failed; an announcement or a sign of
	// life is due; somebody claimed an address.
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			a.apply(time.Now())
		case <-changed:
			scan.Reset(max(0, scanPause-time.Since(scanned)))
			continue
		case <-scan.C:
			scanned = time.Now()
			next := rescan
			if !a.scan() {
				next = firstRetry
			}
			a.apply(scanned)
			scan.Reset(next)
		case <-retry.C:
			a.apply(time.Now())
			a.delay = min(2*a.delay, lastRetry)
			retry.Reset(a.delay)
		case c := <-a.raw:
			a.conflict(c, time.Now())
		case <-send.C:
		case <-sign.C:
		}
		switch {
		case len(a.failed) == 0:
			a.delay = 0
			retry.Stop()
		case a.delay == 0:
			a.delay = firstRetry
			retry.Reset(a.delay)
		}
		if at := a.probeLinks(time.Now()); !at.IsZero() {
			sign.Reset(time.Until(at))
		} else {
			sign.Stop()
		}
		if wait, some := a.sendDue(time.Now()); some {
			send.Reset(wait)
		} else {
			send.Stop()
		}
	}
}

// followLinks keeps a netlink subscription up.
func (a *Announcer) followLinks(ctx context.Context, changed chan struct{}, done chan struct{}) {
	defer close(done)
	for ctx.Err() == nil {
		err := watchLinks(ctx, func() { poke(changed) })
		if ctx.Err() == nil {
			a.opts.Log.Warn("the watch on interfaces broke; watching again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// scan reads the interfaces and makes the responders match: new ones first. It reports
// whether they could be read.
func (a *Announcer) scan() bool {
	links, err := readLinks()
	if err != nil {
		if a.unread != err.Error() {
			a.unread = err.Error()
			a.opts.Log.Warn("interfaces could not be read; the last known stay in force", "error", err)
		}
		return false
	}
	a.unread = ""
	want := map[responderKey]link{}
	public := make([]announce.Interface, 0, len(links))
	for _, l := range links {
		l.Deaf = l.Up && a.isDeaf(l.Name)
		public = append(public, l.Interface)
		if l.Up {
			want[responderKey{l.index, l.mac, l.Name}] = l
		}
	}
	for key, l := range want {
		if r, ok := a.responders[key]; ok {
			r.link = l // its addresses may be others
			continue
		}
		a.responders[key] = newResponder(key, l, a.metrics.of(l.Name, "ipv4"), a.metrics.of(l.Name, "ipv6"), a.raw)
	}
	for key, r := range a.responders {
		if _, ok := want[key]; !ok {
			delete(a.responders, key)
			delete(a.failed, key)
			delete(a.monitors, key)
			r.ans.tables.Store(&tables{}) // silent at once; its sockets take longer
			a.closing.Go(r.close)
		}
	}
	a.metrics.keep(public)
	now := hazards()
	old, before := a.links.Swap(&public), a.hazards.Swap(&now)
	first := !a.hasRead
	if a.hasRead = true; first {
		close(a.ready)
	}
	if first || !slices.EqualFunc(*old, public, sameInterface) || !slices.Equal(*before, now) {
		poke(a.watch)
	}
	return true
}

func sameInterface(a, b announce.Interface) bool {
	return a.Name == b.Name && a.MAC == b.MAC && a.Up == b.Up && a.Deaf == b.Deaf &&
		slices.Equal(a.Prefixes, b.Prefixes) && slices.Equal(a.Routes, b.Routes) && slices.Equal(a.Gateways, b.Gateways)
}

// apply brings every responder to what is wanted, and begins the burst of what
// is new somewhere.
func (a *Announcer) apply(now time.Time) {
	want := a.want.Load()
	next := make(map[place]int64, len(want.Addresses))
	mended := map[responderKey]bool{} // nothing was heard of what they announced
	for key, r := range a.responders {
		t := &tables{v4: map[[4]byte]struct{}{}, v6: map[[16]byte]struct{}{}}
		for addr, ann := range want.Addresses {
			if len(ann.Interfaces) > 0 && !slices.Contains(ann.Interfaces, key.name) {
				continue
			}
			if addr.Is4() {
				t.v4[addr.As4()] = struct{}{}
			} else {
				t.v6[addr.As16()] = struct{}{}
			}
			next[place{addr, key}] = ann.Round
		}
		a.monitor(key, t, want.Nearby[key.name])
		_, failing := a.failed[key]
		err := r.set(t)
		mended[key] = failing && err == nil
		a.note(key, err)
	}
	a.inForce.Store(want)
	poke(a.applied)
	a.tellFailures()
	for p, round := range next {
		if before, served := a.serving[p]; !served || before != round || mended[p.on] {
			a.sched.arm(p, now)
		}
	}
	for p := range a.serving {
		if _, served := next[p]; !served {
			a.sched.remove(p)
			delete(a.defended, p)
		}
	}
	a.serving = next
}

// note remembers why an interface cannot serve, or not all, and logs it once.
// One that has just gone is not at fault: the next scan misses it.
func (a *Announcer) note(key responderKey, err error) {
	if err == nil || errors.Is(err, unix.ENODEV) {
		delete(a.failed, key)
	} else if a.failed[key] != err.Error() {
		a.failed[key] = err.Error()
		a.opts.Log.Error("interface cannot serve", "interface", key.name, "error", err)
	}
}

func (a *Announcer) tellFailures() {
	now := []string{}
	for key, why := range a.failed {
		now = append(now, fmt.Sprintf("interface %s cannot answer, or not for all addresses: %s", key.name, why))
	}
	slices.Sort(now)
	if before := a.failures.Swap(&now); !slices.Equal(*before, now) {
		poke(a.watch)
	}
}

// sendDue announces what is due, a batch at most, and says when to come back.
func (a *Announcer) sendDue(now time.Time) (time.Duration, bool) {
	for range sendBatch {
		p, ok := a.sched.next(now)
		if !ok {
			return a.sched.wait(now)
		}
		a.announce(p)
	}
	wait, some := a.sched.wait(now)
	return max(wait, sendPause), some
}

func (a *Announcer) announce(p place) {
	if err := a.responders[p.on].announce(p.address); err != nil {
		a.opts.Log.Debug("announcement lost", "address", p.address, "interface", p.on.name, "error", err)
	}
}

// conflict tells of a stranger and claims the address back, where it was
// claimed, once per defence interval; more often, two defenders would shout for
// ever.
func (a *Announcer) conflict(c claimant, now time.Time) {
	who := net.HardwareAddr(c.mac[:]).String()
	if _, member := a.want.Load().Members[who]; member {
		return
	}
	if _, ours := a.serving[c.place]; !ours || now.Sub(a.defended[c.place]) < defence {
		return
	}
	a.defended[c.place] = now
	a.announce(c.place)
	select {
	case a.conflicts <- Conflict{Address: c.address, Interface: c.on.name, MAC: who}:
	default:
	}
}
