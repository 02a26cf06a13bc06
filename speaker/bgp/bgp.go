package bgp

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/bgp/fsm"
)

const established = "Established"

// Options of a Speaker.
type Options struct {
	// Log and Registerer may be nil: then nothing is logged or measured.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Listen is the address for connections that peers open, such as ":179"; "":
	// we only dial.
	Listen string
	// Drain is how long routes carry GRACEFUL_SHUTDOWN before they are withdrawn;
	// zero means 2 s.
	Drain time.Duration
	// OpenTime is how long a connection may take until it is Established; zero
	// means 30 s.
	OpenTime time.Duration
	// Random returns numbers in [0, 1) for the jitter, on any goroutine; nil
	// means the usual ones.
	Random func() float64
}

// Speaker announces routes to peers.
type Speaker struct {
	opts     Options
	want     atomic.Pointer[Want]
	sessions atomic.Pointer[map[string]*session]
	refused  atomic.Pointer[map[string]string] // sessions that cannot be, with the reason
	wake     chan struct{}
	watch    chan struct{}
	leave    chan departure
	left     chan struct{}

	unexpected atomic.Uint64

	// What follows belongs to the goroutine of Run.
	listeners []*listener
	deaf      string // why nothing listens, though something should
	counts    map[string]*counters
	ending    map[string]*session // the last of that name, while it says why it ends
	tagging   bool                // a drain has begun
	drained   bool                // the routes were tagged long enough
	draining  *time.Timer
	leaving   *departure // nil: we stay
}

// departure is how to leave.
type departure struct {
	words    string
	restarts bool
}

// New returns a Speaker without sessions.
func New(opts Options) *Speaker {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	if opts.Drain == 0 {
		opts.Drain = 2 * time.Second
	}
	if opts.OpenTime == 0 {
		opts.OpenTime = 30 * time.Second
	}
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	s := &Speaker{
		opts: opts, wake: make(chan struct{}, 1), watch: make(chan struct{}, 1),
		leave: make(chan departure), left: make(chan struct{}), counts: map[string]*counters{}, ending: map[string]*session{},
	}
	s.want.Store(&Want{})
	s.sessions.Store(&map[string]*session{})
	s.refused.Store(&map[string]string{})
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(newMetrics(s))
	}
	return s
}

// Set declares the sessions and their routes. It never blocks, and the latest wins.
func (s *Speaker) Set(w *Want) {
	s.want.Store(w)
	poke(s.wake)
}

// Watch signals that State changed.
func (s *Speaker) Watch() <-chan struct{} { return s.watch }

// State is how the sessions stand, by name. A session that cannot be is Idle,
// and its LastError says why.
func (s *Speaker) State() []SessionState {
	var list []SessionState
	for _, session := range *s.sessions.Load() {
		list = append(list, *session.state.Load())
	}
	for name, why := range *s.refused.Load() {
		list = append(list, SessionState{Name: name, State: fsm.Idle.String(), LastError: why})
	}
	slices.SortFunc(list, func(a, b SessionState) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Leave tags the routes with GRACEFUL_SHUTDOWN, withdraws them after
// Options.Drain, and ends all sessions with words (RFC 9003, at most 255 bytes).
// restarts says that another speaker soon speaks for this node: then sessions
// with graceful restart end without a word, and their peers keep the routes.
// It returns when that is done, or when ctx ends. What is Set later comes to
// nothing. It needs Run.
func (s *Speaker) Leave(ctx context.Context, words string, restarts bool) error {
	select {
	case s.leave <- departure{words, restarts}:
	case <-s.left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps the sessions until ctx ends. Then sessions with graceful restart
// end without a word, so that the peers keep the routes for who comes after
// us; the others are told. Where it cannot listen, it dials all the same, and
// passive sessions tell why.
func (s *Speaker) Run(ctx context.Context) error {
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	if s.opts.Listen != "" {
		var err error
		if s.listeners, err = listen(s.opts.Listen); err != nil {
			s.deaf = err.Error()
			s.opts.Log.Error("no router can open a BGP session", "error", err)
		}
	}
	for _, l := range s.listeners {
		l.serve(&goroutines, s.take)
		defer l.Close()
	}
	s.draining = time.NewTimer(0)
	if !s.draining.Stop() {
		<-s.draining.C
	}
	defer s.draining.Stop()
	// Each turn one of these happened: something else is wanted; we are to leave;
	// the routes were tagged long enough.
	for {
		select {
		case <-ctx.Done():
			s.quit("the speaker stops")
			return nil
		case <-s.wake:
			s.apply(s.want.Load())
		case f := <-s.leave:
			s.leaving = &f
			s.apply(s.want.Load())
		case <-s.draining.C:
			s.drained = true
			s.apply(s.want.Load())
		}
	}
}

// apply makes the sessions what is wanted.
func (s *Speaker) apply(w *Want) {
	select {
	case <-s.left:
		return
	default:
	}
	s.drain(w.Draining || s.leaving != nil)
	have := *s.sessions.Load()
	next, refused := map[string]*session{}, map[string]string{}
	var fresh []func()
	for i := range w.Sessions {
		want := &w.Sessions[i]
		switch why := s.check(want, have[want.Name] == nil); {
		case why != "":
			refused[want.Name] = why
			continue
		case next[want.Name] != nil:
			continue
		}
		now := s.kept(have[want.Name], want)
		if now == nil {
			was, begun := s.ending[want.Name], s.session(want)
			now = begun
			fresh = append(fresh, func() { begun.start(was) })
			if old := have[want.Name]; old != nil && old.cut(want) {
				now.failed("BFD found that the peer cannot be reached")
			}
		}
		now.failures = want.Failures
		next[want.Name] = now
	}
	for name, session := range have {
		if next[name] == nil {
			s.finish(session, fsm.Deconfigured)
		}
	}
	s.sessions.Store(&next)
	s.refused.Store(&refused)
	s.setKeys(next)
	s.tellRoutes(w, next)
	for _, start := range fresh {
		start()
	}
	maps.DeleteFunc(s.counts, func(name string, _ *counters) bool { return next[name] == nil })
	poke(s.watch)
	if s.leaving != nil && (s.drained || !s.anyDrains()) {
		s.quit(s.leaving.words)
		close(s.left)
	}
}

// kept returns the session that is there if it can stay, and ends it if not.
func (s *Speaker) kept(now *session, want *Session) *session {
	switch {
	case now == nil:
		return nil
	case now.settings != want.Settings:
		s.finish(now, fsm.ConfigChanged)
		return nil
	case now.cut(want):
		now.counts.flaps.Add(1)
		s.finish(now, fsm.BFDDown)
		return nil
	}
	return now
}

// cut says that the path has failed since the session was last looked at.
func (s *session) cut(want *Session) bool {
	return want.Failures != s.failures && want.Failures != 0
}

// finish ends one session. Its successor of that name waits for it.
func (s *Speaker) finish(old *session, subcode uint8) {
	maps.DeleteFunc(s.ending, func(_ string, e *session) bool { return e.isDone() })
	old.end(fsm.Notification{Code: fsm.Cease, Subcode: subcode})
	s.ending[old.name] = old
}

// check says why a session cannot be. One that is fresh has no connection yet.
func (s *Speaker) check(want *Session, fresh bool) string {
	switch {
	case want.Settings.Passive && s.opts.Listen == "":
		return "the session is passive, and nothing listens for BGP here (--bgp-listen)"
	case want.Settings.Passive && s.deaf != "":
		return "the session is passive, and we " + s.deaf
	case want.Settings.Passive && want.Settings.Device != "" && fresh && !listensInVRFs():
		return "the session is passive, and connections that come in by VRF " + want.Settings.Device +
			" do not reach this process: set " + acceptInVRFs + " = 1 on this node, or let us dial"
	}
	return want.check()
}

func (s *Speaker) session(want *Session) *session {
	if s.counts[want.Name] == nil {
		s.counts[want.Name] = &counters{}
	}
	return newSession(want.Name, want.Settings, &s.opts, s.counts[want.Name], func() { poke(s.watch) })
}

// drain begins or ends the time in which routes are tagged.
func (s *Speaker) drain(on bool) {
	switch {
	case !on:
		s.drained = false
		s.draining.Stop()
		s.tagging = false
	case !s.tagging:
		s.tagging = true
		s.draining.Reset(s.opts.Drain)
	}
}

// tellRoutes hands each session its routes, as the drain has it. Sessions that
// share a list go on sharing it.
func (s *Speaker) tellRoutes(w *Want, sessions map[string]*session) {
	type list struct {
		first  *Route
		n      int
		tagged bool
	}
	known := map[list][]Route{}
	for i := range w.Sessions {
		session, routes := sessions[w.Sessions[i].Name], w.Sessions[i].Routes
		if session == nil {
			continue
		}
		tagging := s.tagging && !s.keeps(session)
		if len(routes) == 0 || tagging && s.drained {
			session.tell(nil)
			continue
		}
		id := list{&routes[0], len(routes), tagging}
		shaped, ok := known[id]
		if !ok {
			if shaped = sorted(routes); tagging {
				shaped = tagged(shaped)
			}
			known[id] = shaped
		}
		session.tell(shaped)
	}
}

// setKeys gives the listeners the passwords.
func (s *Speaker) setKeys(sessions map[string]*session) {
	for _, l := range s.listeners {
		if err := l.setKeys(sessions); err != nil {
			s.opts.Log.Error("peers with a password cannot connect", "error", err)
		}
	}
}

// take gives a connection to its session.
func (s *Speaker) take(c *net.TCPConn) {
	from, to := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if session := route(*s.sessions.Load(), from, to.WithZone("")); session == nil || !session.take(c) {
		s.unexpected.Add(1)
		_ = c.Close()
	}
}

// keeps says that the peer of a session keeps its routes when we are gone. One that is
// not up may keep those of our predecessor.
func (s *Speaker) keeps(session *session) bool {
	restarts := s.leaving == nil || s.leaving.restarts
	return restarts && session.settings.Restart > 0 && !session.forgets.Load() && !s.want.Load().Draining
}

// anyDrains reports whether a peer has routes that it is not to keep.
func (s *Speaker) anyDrains() bool {
	for _, session := range *s.sessions.Load() {
		if session.state.Load().Announced > 0 && !s.keeps(session) {
			return true
		}
	}
	return false
}

// quit ends all sessions and waits for them. A peer that keeps the routes is not
// told why: a NOTIFICATION would make it drop them.
func (s *Speaker) quit(words string) {
	all := *s.sessions.Load()
	for _, session := range all {
		var n fsm.Notification
		if !s.keeps(session) {
			n = fsm.Ceasing(fsm.AdminShutdown, words)
		}
		session.end(n)
	}
	s.sessions.Store(&map[string]*session{})
	for _, session := range all {
		<-session.done
	}
	for _, session := range s.ending {
		<-session.done
	}
}
