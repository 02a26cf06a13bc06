package members

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// caller is what watching needs of a memberlist.
type caller interface {
	Ping(node string, addr net.Addr) (time.Duration, error)
	SendBestEffort(to *memberlist.Node, msg []byte) error
}

var _ caller = (*memberlist.Memberlist)(nil)

// watching notices at once when a member dies that this node would follow. In a round of
// memberlist chance decides who is asked when, and a death waits for that, for the
// suspicion and for word of it. Whom one would follow says by beats that it lives. When
// one is late it is asked, again at once after each miss, and doubted when it has
// answered neither this node nor others, which are asked after the first miss. The
// others then look for themselves, see look.
type watching struct {
	m     *Members
	list  caller
	beats *beats
	tasks *sync.WaitGroup
	pause atomic.Int64 // between questions to one that sends no beats; a time.Duration
	asks  chan message // of others, see relay

	mu sync.Mutex
	at map[string]*watched
}

// watched is one of them.
type watched struct {
	Peer
	stop    context.CancelFunc
	wait    *time.Timer // until it is late
	vouched atomic.Bool // somebody has reached it since that was last asked

	// Of these, mu guards.
	pulse
	passing bool // it is watched only until it answers, or is known to be dead
}

// begin prepares to watch, and answers others who do.
func (m *Members) begin(ctx context.Context, list caller, l line, tasks *sync.WaitGroup) *watching {
	w := &watching{
		m: m, list: list, beats: newBeats(l, m.timing.beat()), tasks: tasks, at: map[string]*watched{}, asks: make(chan message, 4*relays),
	}
	for range relays {
		tasks.Go(func() { w.relay(ctx) })
	}
	tasks.Go(func() { w.beats.run(ctx) })
	tasks.Go(func() { w.renew(ctx) })
	m.watching.Store(w)
	return w
}

// follow watches those that are wanted, until ctx ends.
func (w *watching) follow(ctx context.Context, want *Want) {
	now, exist := map[string]Peer{}, map[string]Peer{}
	for _, p := range want.Peers {
		exist[p.Name] = p
		if p.Addr.IsValid() && slices.Contains(want.Watch, p.Name) {
			now[p.Name] = p
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.at, func(name string, one *watched) bool {
		// Who is silent is looked after to the end, also when it has nothing to follow it in.
		_, wanted := now[name]
		one.passing = !wanted && (one.passing || w.m.isDoubted(name))
		gone := exist[name] != one.Peer || !wanted && !one.passing
		if gone {
			one.stop()
			w.m.trustAgain(name)
		}
		return gone
	})
	for name, peer := range now {
		if w.at[name] == nil {
			w.start(ctx, peer, false)
		}
	}
	w.setPause()
}

// start watches one more, with mu.
func (w *watching) start(ctx context.Context, peer Peer, passing bool) {
	inner, stop := context.WithCancel(ctx)
	one := &watched{Peer: peer, stop: stop, wait: time.NewTimer(rand.N(w.m.timing.watch)), passing: passing}
	if passing {
		one.wait.Reset(0)
	}
	w.at[peer.Name] = one
	w.tasks.Go(func() { w.watch(inner, one) })
}

// setPause has those who watch more than two ask by turns, with mu: they need not work
// more for it.
func (w *watching) setPause() {
	w.pause.Store(int64(w.m.timing.watch) * int64(max(2, len(w.at))) / 2)
}

// watch watches one member until ctx ends, or one in passing until all is clear.
func (w *watching) watch(ctx context.Context, one *watched) {
	d := doubt{timing: w.m.timing}
	defer one.wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-one.wait.C:
		}
		began, next := time.Now(), time.Duration(w.pause.Load())
		alive, late, soon := w.m.isAlive(one.Name), w.late(one, began), false
		switch {
		case !alive:
			d.missed = 0
		case late < 0:
			d.missed, next = 0, -late
		default:
			if soon = w.ask(ctx, one, &d); soon {
				next = d.timeout
			}
		}
		if d.missed == 0 && !soon && w.passed(one) {
			return
		}
		one.wait.Reset(max(0, next-time.Since(began))) // a question may fail at once
	}
}

// late is by how much the next beat of a member is late; less than zero: it is not.
func (w *watching) late(one *watched, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Sub(one.heard) - w.m.timing.watch
}

// passed ends a watch in passing, and reports whether it was one.
func (w *watching) passed(one *watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.passing && w.at[one.Name] == one {
		delete(w.at, one.Name)
		w.setPause()
		one.stop()
	}
	return one.passing
}

// ask asks one member once, and reports whether to do so again at once.
func (w *watching) ask(ctx context.Context, one *watched, d *doubt) (soon bool) {
	began := time.Now()
	_, err := w.list.Ping(one.Name, udpAddr(one.Addr, w.m.port))
	soon = d.note(err == nil, one.vouched.Swap(false), time.Since(began))
	switch {
	case err == nil:
		w.m.answered(one.Name)
		w.request(one)
	case d.holds():
		if w.m.doubt(ctx, one.Name) {
			w.askOthers(one, len(w.m.want.Load().Peers)) // that they look for themselves
		} else {
			w.askOthers(one, relays)
		}
	case d.missed == 1:
		w.askOthers(one, relays)
	case d.missed == 0:
		w.m.trustAgain(one.Name)
	}
	return soon
}

// request asks a member for beats that has answered and sent none: it does not know yet
// that they are wanted, or any more.
func (w *watching) request(one *watched) {
	w.mu.Lock()
	now := time.Now()
	if one.passing || now.Sub(one.requested) < time.Second {
		w.mu.Unlock()
		return
	}
	t := one.pulse.request(now)
	w.mu.Unlock()
	w.sendRequest(one, t)
}

func (w *watching) sendRequest(one *watched, t token) {
	b, _ := (&message{kind: kindAsk, node: w.m.opts.NodeName, about: one.Name, token: &t}).append(nil) // only facts can fail
	w.send(one.Peer, b)
}

// renew renews the requests for beats of all who send them, until ctx ends.
func (w *watching) renew(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due := map[*watched]token{}
		w.mu.Lock()
		for _, one := range w.at {
			if !one.heard.IsZero() {
				due[one] = one.token
			}
		}
		w.mu.Unlock()
		for one, t := range due {
			w.sendRequest(one, t)
		}
	}
}

// hearBeat takes in a packet, and reports whether it was meant for a beat.
func (m *Members) hearBeat(b []byte) bool {
	if !isBeat(b) {
		return false
	}
	if w := m.watching.Load(); w != nil {
		if one := w.takes(b, time.Now()); one != nil {
			one.wait.Reset(m.timing.watch)
			m.answered(one.Name)
		}
	}
	return true
}

// takes takes in a beat, and returns whose it is; nil: of nobody who is watched.
func (w *watching) takes(beat []byte, now time.Time) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.at {
		if one.pulse.takes(beat, now) {
			return one
		}
	}
	return nil
}

func (w *watching) send(to Peer, b []byte) {
	if err := w.list.SendBestEffort(&memberlist.Node{Name: to.Name, Addr: to.Addr.AsSlice(), Port: uint16(w.m.port)}, b); err != nil {
		w.m.opts.Log.Debug("a question did not reach a member", "node", to.Name, "error", err)
	}
}

func udpAddr(a netip.Addr, port int) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(port)))
}
