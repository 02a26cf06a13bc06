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

// watching asks the members that this node would follow whether they live. In a round
// of memberlist chance decides who is asked when, and a death waits for that, for the
// suspicion and for word of it. Who would follow asks at a steady pace, and doubts who
// has answered neither itself nor others, whom it asks after the first miss.
type watching struct {
	m     *Members
	list  caller
	tasks *sync.WaitGroup
	pause atomic.Int64 // between questions to one member; a time.Duration
	asks  chan message // of others, see relay

	mu sync.Mutex
	at map[string]*watched
}

// watched is one of them.
type watched struct {
	Peer
	stop    context.CancelFunc
	vouched atomic.Bool // somebody has reached it since that was last asked
}

// relays is how many others are asked whether they reach a member, and how many
// questions of others a member answers at once.
const relays = 3

// begin prepares to watch, and answers others who do.
func (m *Members) begin(ctx context.Context, list caller, tasks *sync.WaitGroup) *watching {
	w := &watching{m: m, list: list, tasks: tasks, at: map[string]*watched{}, asks: make(chan message, 4*relays)}
	for range relays {
		tasks.Go(func() { w.relay(ctx) })
	}
	m.watching.Store(w)
	return w
}

// follow watches those that are wanted, until ctx ends.
func (w *watching) follow(ctx context.Context, want *Want) {
	now := map[string]Peer{}
	for _, name := range want.Watch {
		if i := slices.IndexFunc(want.Peers, func(p Peer) bool { return p.Name == name }); i >= 0 && want.Peers[i].Addr.IsValid() {
			now[name] = want.Peers[i]
		}
	}
	// Whoever watches more than two takes turns: it need not work more for it.
	w.pause.Store(int64(w.m.timing.watch) * int64(max(2, len(now))) / 2)
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.at, func(name string, one *watched) bool {
		gone := now[name] != one.Peer
		if gone {
			one.stop()
			w.m.trustAgain(name)
		}
		return gone
	})
	for name, peer := range now {
		if w.at[name] == nil {
			inner, stop := context.WithCancel(ctx)
			one := &watched{Peer: peer, stop: stop}
			w.at[name] = one
			w.tasks.Go(func() { w.watch(inner, one) })
		}
	}
}

// watch asks one member again and again until ctx ends.
func (w *watching) watch(ctx context.Context, one *watched) {
	d := doubt{timing: w.m.timing}
	wait := time.NewTimer(rand.N(d.watch))
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		began, next := time.Now(), time.Duration(w.pause.Load())
		switch {
		case !w.m.isAlive(one.Name):
			d.missed = 0
		case w.ask(ctx, one, &d):
			next = d.timeout
		}
		wait.Reset(max(0, next-time.Since(began))) // a question may fail at once
	}
}

// ask asks one member once, and reports whether to do so again at once.
func (w *watching) ask(ctx context.Context, one *watched, d *doubt) (soon bool) {
	began := time.Now()
	_, err := w.list.Ping(one.Name, udpAddr(one.Addr, w.m.port))
	soon = d.note(err == nil, one.vouched.Swap(false), time.Since(began))
	switch {
	case err == nil:
		w.m.answered(one.Name)
	case d.holds():
		w.m.doubt(ctx, one.Name)
	case d.missed == 0:
		w.m.trustAgain(one.Name)
	}
	if d.missed == 1 || d.holds() {
		w.askOthers(one)
	}
	return soon
}

// askOthers asks some of the other members whether they reach one: it may be only the
// way from here to there that is broken.
func (w *watching) askOthers(one *watched) {
	b, _ := (&message{kind: kindAsk, node: w.m.opts.NodeName, about: one.Name}).append(nil) // only facts can fail
	peers := slices.Clone(w.m.want.Load().Peers)
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	asked := 0
	for _, p := range peers {
		if p.Name != one.Name && asked < relays && w.m.isAlive(p.Name) {
			asked++
			w.send(p, b)
		}
	}
}

func (w *watching) send(to Peer, b []byte) {
	if err := w.list.SendBestEffort(&memberlist.Node{Name: to.Name, Addr: to.Addr.AsSlice(), Port: uint16(w.m.port)}, b); err != nil {
		w.m.opts.Log.Debug("a question did not reach a member", "node", to.Name, "error", err)
	}
}

// hear takes in a question of another member, or the answer to one. It does not block.
func (w *watching) hear(msg message) {
	if msg.kind == kindReached {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one := w.at[msg.about]; one != nil {
			one.vouched.Store(true)
		}
		return
	}
	select {
	case w.asks <- msg:
	default: // it asks again
	}
}

// relay asks on behalf of others until ctx ends. Of whom it does not reach it says
// nothing.
func (w *watching) relay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-w.asks:
			asker, known := w.m.peer(msg.node)
			about, exists := w.m.peer(msg.about)
			if !known || !exists {
				continue
			}
			if _, err := w.list.Ping(about.Name, udpAddr(about.Addr, w.m.port)); err == nil {
				b, _ := (&message{kind: kindReached, node: w.m.opts.NodeName, about: about.Name}).append(nil)
				w.send(asker, b)
			}
		}
	}
}

// peer is a peer by its name.
func (m *Members) peer(name string) (Peer, bool) {
	peers := m.want.Load().Peers
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
	if i < 0 || !peers[i].Addr.IsValid() {
		return Peer{}, false
	}
	return peers[i], true
}

func udpAddr(a netip.Addr, port int) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(port)))
}
