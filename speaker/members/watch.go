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

// caller is the part of a memberlist that watching uses.
type caller interface {
	Ping(node string, addr net.Addr) (time.Duration, error)
	SendBestEffort(to *memberlist.Node, msg []byte) error
}

var _ caller = (*memberlist.Memberlist)(nil)

// watching detects quickly that a member has died, most quickly one whose addresses this
// node would take over. Those are watched: they send heartbeats. One whose heartbeat is
// late is pinged, again at once after each miss; after the first miss other members are
// asked to ping it, too, and when neither has had an answer, it is doubted. The others then
// watch it themselves, see look. All other members are pinged in turn, see probes.
type watching struct {
	m     *Members
	list  caller
	tasks *sync.WaitGroup
	pause atomic.Int64 // between pings of a member that sends no heartbeats; a time.Duration
	asks  chan message // questions of other members, see relay
	timer alarm

	mu         sync.Mutex
	heartbeats *heartbeats
	at         map[string]*watched
	probes     probes
	expires    time.Time // when timer does; zero: never
}

// watched is one watched member.
type watched struct {
	Peer
	stop    context.CancelFunc
	due     chan struct{} // it is to be pinged, if it is late
	vouched atomic.Bool   // another member has reached it since this was last read

	// watching.mu guards the fields below.
	heartbeatReceiver
	dueAt   time.Time // when to send to due; zero: never
	passing bool      // it is watched only until it answers or is known to be dead
	told    bool      // it is so because another member asked, which tells all others itself
}

// begin prepares to watch, and starts to answer other members that watch.
func (m *Members) begin(ctx context.Context, list caller, l line, t alarm, tasks *sync.WaitGroup) *watching {
	w := &watching{
		m: m, list: list, timer: t, heartbeats: newHeartbeats(l, m.timing.heartbeat()), tasks: tasks, at: map[string]*watched{}, asks: make(chan message, 4*relays),
	}
	for range relays {
		tasks.Go(func() { w.relay(ctx) })
	}
	context.AfterFunc(ctx, t.close)
	tasks.Go(func() {
		for t.wait() {
			w.expired(ctx, time.Now())
		}
	})
	m.watching.Store(w)
	return w
}

// expired sends the heartbeats that are due, and has the members pinged that are.
func (w *watching) expired(ctx context.Context, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expires = time.Time{}
	w.heartbeats.sendDue(now, now)
	for _, one := range w.at {
		if !one.dueAt.IsZero() && !one.dueAt.After(now) {
			one.dueAt = time.Time{}
			poke(one.due)
		}
	}
	w.probe(ctx, now)
	w.setTimer()
}

// setTimer sets the timer to what is due next. The caller holds mu.
func (w *watching) setTimer() {
	next := earlier(w.heartbeats.next, w.probes.at)
	for _, one := range w.at {
		next = earlier(next, one.dueAt)
	}
	if !next.Equal(w.expires) {
		w.expires = next
		w.timer.set(next)
	}
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// waitFor makes one member due after a time.
func (w *watching) waitFor(one *watched, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.dueAt = time.Now().Add(d)
	w.setTimer()
}

// follow watches the members in want.Watch, and no others, until ctx ends.
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
		// A doubted member is watched to the end, also when this node would no longer
		// take over anything from it.
		_, wanted := now[name]
		one.told = one.told && !wanted
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
	if w.probes.at.IsZero() {
		w.nextProbe(time.Now())
	}
	w.setTimer()
}

// start watches one more member. The caller holds mu.
func (w *watching) start(ctx context.Context, peer Peer, passing bool) {
	inner, stop := context.WithCancel(ctx)
	one := &watched{Peer: peer, stop: stop, due: make(chan struct{}, 1), passing: passing}
	if passing {
		poke(one.due)
	} else {
		one.dueAt = time.Now().Add(rand.N(w.m.timing.watch))
	}
	w.at[peer.Name] = one
	w.tasks.Go(func() { w.watch(inner, one) })
}

// setPause makes the pings of one member rarer where more than two are watched, so that
// their number per second stays the same. The caller holds mu.
func (w *watching) setPause() {
	w.pause.Store(int64(w.m.timing.watch) * int64(max(2, len(w.at))) / 2)
}

// askers is about how many members ping a dead one at the pace of the first that doubted it:
// it may only be slow, and would have to answer all at once.
const askers = 200

// pauseOf is how long to wait between pings of a member that sends no heartbeats.
func (w *watching) pauseOf(one *watched) time.Duration {
	pause := time.Duration(w.pause.Load())
	if w.isTold(one) {
		pause *= time.Duration(max(1, w.m.numAlive()/askers))
	}
	return pause
}

// watch watches one member until ctx ends, or, if it is watched in passing, until it is
// known to be alive or dead.
func (w *watching) watch(ctx context.Context, one *watched) {
	d := doubt{timing: w.m.timing}
	for {
		select {
		case <-ctx.Done():
			return
		case <-one.due:
		}
		began, next := time.Now(), w.pauseOf(one)
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
		w.waitFor(one, next-time.Since(began)) // a question may fail at once
	}
}

// late is by how much the next heartbeat of a member is late; it is negative until then.
func (w *watching) late(one *watched, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Sub(one.heard) - w.m.timing.watch
}

// isTold reports whether another member has told this one to look at it: where all that were
// told told all others, one death among n members would take n² packets.
func (w *watching) isTold(one *watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return one.told
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

// ask pings one member once, and reports whether to do so again at once.
func (w *watching) ask(ctx context.Context, one *watched, d *doubt) (soon bool) {
	began := time.Now()
	_, err := w.list.Ping(one.Name, udpAddr(one.Addr, w.m.port))
	dropStopped()
	soon = d.note(err == nil, one.vouched.Swap(false), time.Since(began))
	switch {
	case err == nil:
		w.m.answered(one.Name)
		w.request(one)
	case d.holds():
		most := relays
		if w.m.doubt(ctx, one.Name) && !w.isTold(one) {
			most = len(w.m.want.Load().Peers) // so that each watches it itself
		}
		w.askOthers(one, most)
	case d.missed == 1:
		w.askOthers(one, relays)
	case d.missed == 0:
		w.m.trustAgain(one.Name)
	}
	return soon
}

// request asks for heartbeats from a member that answers pings and sends none: it has not
// heard yet that they are wanted, or has forgotten it.
func (w *watching) request(one *watched) {
	w.mu.Lock()
	now := time.Now()
	if one.passing || now.Sub(one.requested) < time.Second {
		w.mu.Unlock()
		return
	}
	t := one.heartbeatReceiver.request(now)
	w.mu.Unlock()
	w.sendRequest(one, t)
}

func (w *watching) sendRequest(one *watched, t token) {
	b, _ := (&message{kind: kindAsk, node: w.m.opts.NodeName, about: one.Name, token: &t}).append(nil) // only facts can fail
	w.send(one.Peer, b)
}

// hearHeartbeat handles a packet that has the form of a heartbeat, and reports whether it
// has.
func (m *Members) hearHeartbeat(b []byte) bool {
	if !isHeartbeat(b) {
		return false
	}
	if w := m.watching.Load(); w != nil {
		if one, renew := w.takes(b, time.Now()); one != nil {
			m.answered(one.Name)
			if renew != nil {
				w.sendRequest(one, *renew)
			}
		}
	}
	return true
}

// takes records a heartbeat and returns the member that sent it; nil: no watched one did.
// It returns the token, too, where the request is to be renewed.
func (w *watching) takes(packet []byte, now time.Time) (one *watched, renew *token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.at {
		if !one.heartbeatReceiver.takes(packet, now) {
			continue
		}
		one.dueAt = now.Add(w.m.timing.watch)
		if now.Sub(one.renewed) >= renewal {
			one.renewed = now
			again := one.token // a copy here alone, since it escapes
			renew = &again
		}
		// This process is awake: it need not wake again for what is due soon. Half the time
		// between heartbeats makes any two members that watch each other keep step.
		w.heartbeats.sendDue(now.Add(w.heartbeats.every/2), now)
		w.setTimer()
		return one, renew
	}
	return nil, nil
}

func (w *watching) send(to Peer, b []byte) {
	if err := w.list.SendBestEffort(&memberlist.Node{Name: to.Name, Addr: to.Addr.AsSlice(), Port: uint16(w.m.port)}, b); err != nil {
		w.m.opts.Log.Debug("a question did not reach a member", "node", to.Name, "error", err)
	}
}

func udpAddr(a netip.Addr, port int) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(port)))
}
