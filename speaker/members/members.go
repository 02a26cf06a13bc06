package members

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/announce"
)

// defaultPort is the port of gossip where Options.Bind names none.
const defaultPort = 7946

// Options of Members.
type Options struct {
	NodeName string
	// Bind is HOST:PORT; the peers use the same port. Empty: every address, defaultPort.
	Bind    string
	KeyFile string
	Profile string // "default", "fast" or "wan"
	// SigningKey is what this node signs with, of ed25519; nil: a new key.
	SigningKey ed25519.PrivateKey
	// Grace is how long to wait for peers before acting alone; zero: 3 s.
	Grace time.Duration
	// Log and Registerer may be nil: then nothing is logged or measured.
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Peer is another node that should have a speaker.
type Peer struct {
	Name string
	Addr netip.Addr
}

// Want is what the component declares.
type Want struct {
	// Self is the address at which others reach this node. Nothing starts before it is valid.
	Self  netip.Addr
	Peers []Peer
	// Watch names peers that this node checks itself, more often than memberlist does,
	// since it would take over their addresses.
	Watch []string
	// Facts are what this node publishes about itself.
	Facts announce.Facts
	// Claims are the addresses that this node owns, with their epochs.
	Claims map[netip.Addr]int64
	// Known are all addresses that exist. Claims on others are forgotten in time, and so
	// are the facts of nodes that are neither peers nor alive.
	Known map[netip.Addr]struct{}
}

// View is what the members know. It is immutable.
type View struct {
	Alive map[string]struct{} // this node included
	// Doubted are those of Alive that are watched and do not answer; nil: none. memberlist
	// has not declared them dead yet.
	Doubted map[string]struct{}
	Claims  map[netip.Addr]announce.Claim
	Facts   map[string]announce.Facts
	// Rounds counts, by address, how often a claim of this node has beaten another
	// node's; after each the address must be announced to the LAN again.
	Rounds map[netip.Addr]int64
	// LastSeen is when a node last answered this one.
	LastSeen map[string]time.Time
	// Missing are the peers that are not alive, or have been doubted for half a second, each
	// with the reason.
	Missing map[string]string
	// Settled is true once the peers have been met, or waited for long enough.
	Settled bool
	// Waiting is why gossip has not started yet; "": it has.
	Waiting string
}

// Members is this node's membership in the gossip of all speakers.
type Members struct {
	opts   Options
	timing timing
	host   string
	port   int

	want   atomic.Pointer[Want]
	wake   chan struct{}
	watch  chan struct{}
	others chan struct{} // some came or went, or others are wanted
	news   chan struct{} // there is something to gossip
	state  *state
	queue  *memberlist.TransmitLimitedQueue
	gauge  *prometheus.GaugeVec

	prints   atomic.Pointer[[]string] // of the gossip keys; nil: there is none yet
	suspect  atomic.Pointer[string]   // the member that memberlist has suspected since the last round of gossip
	watching atomic.Pointer[watching] // nil: not joined yet
	trust    *trust
	rejected *prometheus.CounterVec

	mu       sync.Mutex
	alive    map[string]struct{}
	doubted  map[string]time.Time // of those that are watched, and since when
	lastSeen map[string]time.Time
	missing  map[string]string
	returned []string // alive or trusted again since remind, and may have missed messages
	waiting  string
	settled  bool
	version  uint64
	past     atomic.Uint64 // the newest version of this node that others remember
	told     announce.Facts
	dirty    bool
	view     *View

	complained time.Time // when a message was last not understood
}

// New returns Members that do not send or listen before Run.
func New(opts Options) (*Members, error) {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	t, err := timings(opts.Profile)
	if err != nil {
		return nil, err
	}
	m := &Members{
		opts: opts, timing: t, port: defaultPort, wake: make(chan struct{}, 1), watch: make(chan struct{}, 1), others: make(chan struct{}, 1), news: make(chan struct{}, 1),
		state: newState(opts.NodeName), trust: newTrust(), alive: map[string]struct{}{opts.NodeName: {}},
		doubted: map[string]time.Time{}, lastSeen: map[string]time.Time{}, missing: map[string]string{}, dirty: true, waiting: "speaker is starting",
	}
	if opts.SigningKey != nil {
		m.state.key = opts.SigningKey
	}
	if opts.Grace == 0 {
		m.opts.Grace = 3 * time.Second
	}
	if opts.Bind != "" {
		host, port, err := net.SplitHostPort(opts.Bind)
		if err != nil {
			return nil, fmt.Errorf("members address %q is not HOST:PORT: %w", opts.Bind, err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("members address %q: %q is not a port", opts.Bind, port)
		}
		m.host, m.port = host, int(n)
	}
	m.queue = &memberlist.TransmitLimitedQueue{NumNodes: m.numReckoned, RetransmitMult: retransmit}
	m.gauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quayside_members", Help: "Speakers by state, as this one sees them."}, []string{"state"})
	m.rejected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quayside_members_rejected_total",
		Help: "Gossip in the name of a node that it has not signed, by reason: unsigned, or by a signature of another key.",
	}, []string{"reason"})
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(m.gauge, m.rejected)
	}
	m.want.Store(&Want{})
	return m, nil
}

// Set declares what is wanted. It never blocks, and the latest wins.
func (m *Members) Set(w *Want) {
	m.want.Store(w)
	poke(m.wake)
}

// Watch signals that View changed.
func (m *Members) Watch() <-chan struct{} { return m.watch }

// View returns what is known now. A map with the same content as in the View before is
// the same map: a caller with thousands of members need not read it again because one of
// them has answered a ping.
func (m *Members) View() *View {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirty && m.view != nil {
		return m.view
	}
	v := &View{Missing: make(map[string]string), Settled: m.settled, Waiting: m.waiting, LastSeen: maps.Clone(m.lastSeen)}
	before := m.view
	if before == nil {
		before = &View{}
	}
	if v.Alive = before.Alive; v.Alive == nil || !maps.Equal(v.Alive, m.alive) {
		v.Alive = maps.Clone(m.alive)
	}
	if v.Doubted = before.Doubted; !isCopy(v.Doubted, m.doubted, func(struct{}, time.Time) bool { return true }) {
		v.Doubted = make(map[string]struct{}, len(m.doubted))
		for name := range m.doubted {
			v.Doubted[name] = struct{}{}
		}
	}
	for _, p := range m.want.Load().Peers {
		if why := m.lacks(p.Name); why != "" {
			v.Missing[p.Name] = why
		}
	}
	m.state.fill(v, before)
	m.view, m.dirty = v, false
	return v
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// changed marks the view stale and signals Watch.
func (m *Members) changed() {
	m.mu.Lock()
	m.dirty = true
	m.mu.Unlock()
	poke(m.watch)
}

// update changes guarded fields and signals Watch.
func (m *Members) update(f func()) {
	m.mu.Lock()
	f()
	m.dirty = true
	m.mu.Unlock()
	poke(m.watch)
}

func (m *Members) numAlive() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(1, len(m.alive))
}

func (m *Members) isAlive(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.alive[name]
	return ok
}

// Run takes part in the gossip until ctx ends, and then leaves it.
func (m *Members) Run(ctx context.Context) error {
	keys, err := awaitKeys(ctx, m.opts.KeyFile, func(err error) {
		m.wait("waiting for the members key: " + err.Error())
	})
	if err != nil {
		return nil // ctx has ended
	}
	for !m.want.Load().Self.IsValid() {
		m.wait(fmt.Sprintf("waiting for Node %s and its InternalIP", m.opts.NodeName))
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
	}
	m.know(m.want.Load()) // the state of the first member that answers is judged by that
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return fmt.Errorf("members keys: %w", err)
	}
	m.notePrints(ring)
	var following sync.WaitGroup
	defer following.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { followKeys(inner, m.opts.KeyFile, ring, m.opts.Log, func() { m.notePrints(ring) }) })
	for err == nil && ctx.Err() == nil { // once for every address of this node
		err = m.meet(ctx, ring)
	}
	return err
}

// meet takes part until ctx ends or the InternalIP of this node changes, since other
// members cannot reach a memberlist that was created with the old one.
func (m *Members) meet(ctx context.Context, ring *memberlist.Keyring) error {
	self := m.want.Load().Self
	timer, err := newTimer()
	if err != nil {
		return err
	}
	list, line, err := m.create(ring, self)
	if err != nil {
		timer.close()
		return fmt.Errorf("speakers cannot meet on %s: %w; is another program (another speaker, or MetalLB's) using the port? Choose one with --members-bind, the same on every node",
			net.JoinHostPort(orElse(m.host, "0.0.0.0"), strconv.Itoa(m.port)), err)
	}
	return m.attend(ctx, self, list, line, timer)
}

// attend does what meet is for with a list that was created, and ends it.
func (m *Members) attend(ctx context.Context, self netip.Addr, list *memberlist.Memberlist, l line, t alarm) error {
	m.update(func() { m.waiting = "" })
	var tasks, spreading sync.WaitGroup
	inner, cancel := context.WithCancel(ctx)
	lasting, endSpreading := context.WithCancel(context.WithoutCancel(ctx)) // a goodbye is gossiped, too
	defer spreading.Wait()
	defer endSpreading()
	spreading.Go(func() { m.spreadNews(lasting, list) })
	tasks.Go(func() { m.keepJoining(inner, list) })
	m.publish(inner, self, &post{m, list, &tasks}, m.begin(inner, list, l, t, &tasks))
	cancel()
	tasks.Wait()
	if ctx.Err() == nil {
		m.opts.Log.Info("this node has another InternalIP: joining the others again", "was", self, "is", m.want.Load().Self)
		err := list.Shutdown()
		m.update(func() { m.alive, m.doubted = map[string]struct{}{m.opts.NodeName: {}}, map[string]time.Time{} }) // the new list finds those that are alive
		return err
	}
	// Leaving spares the others the detection. Nothing depends on its being received.
	if err := list.Leave(time.Second); err != nil {
		m.opts.Log.Debug("goodbye was not heard", "error", err)
	}
	return list.Shutdown()
}

func (m *Members) wait(why string) {
	m.mu.Lock()
	same := m.waiting == why
	m.mu.Unlock()
	if !same {
		m.opts.Log.Warn("speaker does not announce yet", "reason", why)
		m.update(func() { m.waiting = why })
	}
}

// publish turns what is wanted into messages until ctx ends or self is no longer the
// address of this node. Only a change wakes the component: it calls Set after every step,
// so a signal for each call would wake it forever.
func (m *Members) publish(ctx context.Context, self netip.Addr, post *post, watching *watching) {
	var peers []Peer
	for {
		w := m.want.Load()
		if w.Self.IsValid() && w.Self != self {
			return
		}
		news := m.isNew(w.Facts)
		if news {
			post.spread(m.state.tell(w.Facts, m.nextVersion()))
		}
		m.know(w)
		claims := m.state.claim(w.Claims)
		m.broadcast(claims)
		post.remind()
		watching.follow(ctx, w)
		if news || len(claims) > 0 || !slices.Equal(peers, w.Peers) {
			peers = w.Peers
			poke(m.others)
			m.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
	}
}

// know tells the state which nodes and addresses exist, and drops nodes that do not exist
// and that the state has forgotten.
func (m *Members) know(w *Want) {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := maps.Clone(m.alive)
	for _, p := range w.Peers {
		nodes[p.Name] = struct{}{}
	}
	m.state.know(w.Known, nodes, time.Now())
	m.state.mixed.Store(m.trust.lacks(m.alive))
	isGone := func(name string) bool {
		_, exists := nodes[name]
		return !exists && !m.state.remembers(name)
	}
	maps.DeleteFunc(m.lastSeen, func(name string, _ time.Time) bool { return isGone(name) })
	maps.DeleteFunc(m.missing, func(name string, _ string) bool { return isGone(name) })
}

// nextVersion grows over restarts, too, as long as the clock does. Where the clock went
// back, others report the version that they remember, see recall.
func (m *Members) nextVersion() uint64 {
	m.version = max(m.version+1, m.past.Load()+1, uint64(time.Now().UnixMicro()))
	return m.version
}

// create starts to listen.
func (m *Members) create(ring *memberlist.Keyring, self netip.Addr) (*memberlist.Memberlist, line, error) {
	t, err := newTransport(orElse(m.host, "0.0.0.0"), m.port, m.hearHeartbeat)
	if err != nil {
		return nil, nil, err
	}
	c := m.config(ring, self)
	c.Transport = t
	list, err := memberlist.Create(c)
	if err != nil {
		return nil, nil, errors.Join(err, t.Shutdown())
	}
	return list, t, nil
}

// config is how this node runs memberlist.
func (m *Members) config(ring *memberlist.Keyring, self netip.Addr) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	m.timing.configure(c)
	c.Name = m.opts.NodeName
	c.BindPort, c.AdvertisePort = m.port, m.port
	c.AdvertiseAddr = self.String()
	c.Keyring = ring
	// A probe and its answer do not shrink, and each attempt to compress one allocates
	// 64 kB.
	c.EnableCompression = false
	d := &delegate{m}
	c.Delegate, c.Events, c.Ping, c.Conflict = d, d, d, d
	c.Logger = m.logger()
	return c
}
