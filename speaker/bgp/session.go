package bgp

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"quayside.io/speaker/bgp/fsm"
)

const (
	firstWait = 100 * time.Millisecond
	calm      = 30 * time.Second
	// stopping bounds how long a peer that does not read delays the end.
	stopping = 300 * time.Millisecond
	// patience is how long sending may take without a hold time (RFC 9687).
	patience = 90 * time.Second
	// refreshPause is between two answers to ROUTE-REFRESH.
	refreshPause = time.Second
	// lookPause is between two looks at whether the next hops are still ours.
	lookPause = 5 * time.Second
)

// session is one peer with settings that never change; other settings are
// another session.
type session struct {
	name     string
	settings Settings
	failures uint64 // as Session.Failures; belongs to Speaker.Run
	opts     *Options
	log      *slog.Logger
	routes   atomic.Pointer[[]Route]
	state    atomic.Pointer[SessionState]
	counts   *counters
	changed  func() // tells the watcher
	wake     chan struct{}
	inbound  chan net.Conn // at most one waits
	cancel   context.CancelFunc
	// forgets says that the peer of the connection that is up speaks no graceful restart.
	forgets atomic.Bool
	final   atomic.Pointer[fsm.Notification] // with what to end; Code zero: without a word
	done    chan struct{}

	// What follows belongs to the goroutine of run.
	ctx        context.Context
	machine    *fsm.Machine
	conns      map[int]*conn
	lastID     int
	arrivals   chan arrival
	dialed     chan dialed
	attempt    int
	hangUp     context.CancelFunc // ends the attempt
	goroutines sync.WaitGroup     // readers and the attempt
	up         *conn
	link       link
	sent       []Route // what the peer of up was sent
	told       tally   // of sent
	restarting bool    // not Established yet since we began
	refreshed  time.Time
	refreshDue bool
	looked     time.Time    // at the next hops of up
	hopless    bool         // a next hop was gone then, and none had come instead
	said       map[int]bool // connections that got a NOTIFICATION
}

// dialed is the result of an attempt.
type dialed struct {
	net.Conn
	attempt int
	err     error
}

// counters outlive the settings of a session, so that they never go back.
type counters struct {
	sent, received, notified, notifications, flaps atomic.Uint64
}

func newSession(name string, settings Settings, opts *Options, counts *counters, changed func()) *session {
	s := &session{
		name: name, settings: settings, opts: opts, counts: counts, changed: changed,
		log:  opts.Log.With("peer", name),
		wake: make(chan struct{}, 1), inbound: make(chan net.Conn, 1), done: make(chan struct{}),
		conns: map[int]*conn{}, said: map[int]bool{}, arrivals: make(chan arrival), dialed: make(chan dialed),
		restarting: true,
	}
	s.routes.Store(new([]Route))
	s.state.Store(&SessionState{Name: name, Peer: settings.Peer.Addr(), State: fsm.Idle.String(), Since: time.Now()})
	s.machine = fsm.New(settings.machine(opts))
	return s
}

// machine is the configuration of the state machine.
func (s *Settings) machine(opts *Options) fsm.Config {
	id := s.RouterID.As4()
	retry := s.Connect
	if retry == 0 {
		retry = defaultRetry
	}
	return fsm.Config{
		LocalASN: s.ASN, PeerASN: s.PeerASN, Kinship: s.Kinship,
		RouterID: uint32(id[0])<<24 | uint32(id[1])<<16 | uint32(id[2])<<8 | uint32(id[3]),
		Passive:  s.Passive, Restart: s.Restart > 0, Hold: s.Hold, Keepalive: s.Keepalive,
		Open: opts.OpenTime, FirstWait: firstWait, MaxWait: retry, Calm: calm, Random: opts.Random,
	}
}

// tell changes the routes. It never blocks.
func (s *session) tell(routes []Route) {
	was := *s.routes.Swap(&routes)
	if len(was) != len(routes) || len(was) > 0 && &was[0] != &routes[0] {
		poke(s.wake)
	}
}

func (s *session) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// take hands over a connection that the peer opened; false: one waits already.
func (s *session) take(c net.Conn) bool {
	select {
	case s.inbound <- c:
		return true
	default:
		return false
	}
}

// end ends the session with a NOTIFICATION, or without a word if its code is zero.
func (s *session) end(n fsm.Notification) {
	s.final.CompareAndSwap(nil, &n)
	s.cancel()
}

// start runs the session in its own goroutine, once a predecessor is done.
func (s *session) start(predecessor *session) {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run(predecessor)
}

func (s *session) run(predecessor *session) {
	defer close(s.done)
	if predecessor != nil {
		<-predecessor.done
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.step(fsm.Event{Kind: fsm.Start})
	// Each turn one of these happened: the session is to end; other routes are
	// wanted; the peer opened a connection; our attempt is over; a connection
	// has news; a timer is due.
	for {
		s.arm(timer)
		select {
		case <-s.ctx.Done():
			s.stop()
			return
		case <-s.wake:
			s.sync()
		case c := <-s.inbound:
			s.accept(c)
		case d := <-s.dialed:
			s.dialEnded(d)
		case a := <-s.arrivals:
			s.arrived(a)
		case <-timer.C:
			s.tick()
		}
	}
}

func (s *session) stop() {
	s.step(fsm.Event{Kind: fsm.Stop, Notification: *s.final.Load()})
	select {
	case c := <-s.inbound:
		_ = c.Close()
	default:
	}
	// An attempt may have succeeded meanwhile; readers may have something to say.
	ended := make(chan struct{})
	go func() {
		s.goroutines.Wait()
		close(ended)
	}()
	for {
		select {
		case d := <-s.dialed:
			if d.Conn != nil {
				_ = d.Close()
			}
		case <-s.arrivals:
		case <-ended:
			return
		}
	}
}

// arm sets the timer for what is due next.
func (s *session) arm(timer *time.Timer) {
	next := s.machine.Deadline()
	if s.refreshDue {
		if at := s.refreshed.Add(refreshPause); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if s.up != nil {
		if at := s.looked.Add(lookPause); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if next.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(max(0, time.Until(next)))
}

func (s *session) tick() {
	if s.up != nil {
		if at := s.up.lastHeard(); !at.IsZero() {
			s.machine.Heard(s.up.id, at)
		}
	}
	s.step(fsm.Event{Kind: fsm.Tick})
	if s.refreshDue && time.Since(s.refreshed) >= refreshPause {
		s.refresh()
	}
	if s.up != nil && time.Since(s.looked) >= lookPause {
		s.look()
	}
}

func (s *session) accept(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		if err := s.settings.adopt(t); err != nil {
			_ = c.Close()
			return
		}
	}
	s.step(fsm.Event{Kind: fsm.Accepted, Conn: s.add(c)})
}

func (s *session) dialEnded(d dialed) {
	switch {
	case d.err != nil && d.attempt == s.attempt:
		s.step(fsm.Event{Kind: fsm.DialFailed, Reason: d.err.Error()})
		return
	case d.err != nil:
		return
	case d.attempt != s.attempt: // one that was given up
		_ = d.Close()
		return
	}
	s.step(fsm.Event{Kind: fsm.Dialed, Conn: s.add(d.Conn)})
}

// add begins to read a connection.
func (s *session) add(nc net.Conn) int {
	s.lastID++
	c := &conn{Conn: nc, id: s.lastID, closed: make(chan struct{}), began: time.Now(), received: &s.counts.received}
	s.conns[c.id] = c
	s.goroutines.Go(func() { c.read(s.arrivals) })
	return c.id
}

func (s *session) arrived(a arrival) {
	c := s.conns[a.Conn]
	if c == nil {
		return
	}
	switch a.Kind {
	case fsm.OpenReceived:
		c.peer = a.open
	case fsm.NotificationReceived:
		s.counts.notified.Add(1)
	}
	s.step(a.Event)
	if a.Kind == fsm.RefreshReceived && s.up == c {
		s.refreshDue = true
	}
}

// step gives the machine an event and does what it says. What fails on the way
// is another event.
func (s *session) step(e fsm.Event) {
	pending := []fsm.Event{e}
	for len(pending) > 0 {
		e, pending = pending[0], pending[1:]
		// The slice belongs to the machine, which may be asked again below.
		for _, a := range append([]fsm.Action(nil), s.machine.Step(time.Now(), e)...) {
			if err := s.do(a); err != nil {
				pending = append(pending, fsm.Event{Kind: fsm.Lost, Conn: a.Conn, Reason: words(err)})
			}
		}
	}
	s.publish()
}

func (s *session) do(a fsm.Action) error {
	c := s.conns[a.Conn]
	switch a.Kind {
	case fsm.Dial:
		s.dial()
		return nil
	case fsm.CancelDial:
		s.hangUp()
		return nil
	case fsm.Failed:
		// Its half of the handshake may have had the TTL of the machine; nothing
		// that it says after that does.
		if why := a.Reason; s.settings.TTLSecurity && strings.Contains(why, "not done with "+fsm.OpenSent.String()) {
			s.failed(why + " (" + withoutTTLSecurity + ")")
		} else {
			s.failed(why)
		}
		return nil
	case fsm.Down:
		s.wentDown(a.Reason)
		return nil
	}
	if c == nil {
		return nil
	}
	switch a.Kind {
	case fsm.SendOpen:
		return s.encoded(c)(encodeOpen(&s.settings, s.restarting))
	case fsm.SendKeepalive:
		return s.encoded(c)(encode(bgp.NewBGPKeepAliveMessage()))
	case fsm.Notify:
		s.said[c.id] = true
		s.counts.notifications.Add(1)
		return s.encoded(c)(encodeNotification(a.Notification))
	case fsm.Close:
		delete(s.conns, c.id)
		c.finish(s.said[c.id])
		delete(s.said, c.id)
	case fsm.Up:
		s.wentUp(c)
	}
	return nil
}

// dial begins an attempt, which ends in s.dialed unless the session is over.
func (s *session) dial() {
	ctx, cancel := context.WithCancel(s.ctx)
	s.attempt++
	s.hangUp = cancel
	attempt := s.attempt
	s.goroutines.Go(func() {
		defer cancel()
		c, err := dial(ctx, &s.settings)
		s.dialed <- dialed{c, attempt, err}
	})
}

// encoded writes what a call of encode returned.
func (s *session) encoded(c *conn) func([]byte, error) error {
	return func(b []byte, err error) error {
		if err != nil {
			return err
		}
		return s.write(c, b, s.late(c))
	}
}

// late is when what is sent from now on must have been taken: a peer that does
// not read is as dead as one that does not speak (RFC 9687).
func (s *session) late(c *conn) time.Time {
	atMost := s.machine.Terms(c.id).Hold
	if atMost == 0 {
		atMost = patience
	}
	return time.Now().Add(atMost)
}

func (s *session) write(c *conn, b []byte, late time.Time) error {
	_ = c.SetWriteDeadline(late)
	release := context.AfterFunc(s.ctx, func() { _ = c.SetWriteDeadline(time.Now().Add(stopping)) })
	defer release()
	_, err := c.Write(b)
	return err
}

// sync sends the peer the difference to what it was sent.
func (s *session) sync() {
	c := s.up
	if c == nil {
		return
	}
	want := *s.routes.Load()
	difference := diff(s.sent, want)
	s.sent = want
	if err := difference.send(&s.link, s.sender(c)); err != nil {
		s.check(c, err)
		return
	}
	s.told = s.link.tally(want)
	s.publish()
}

// refresh tells everything again (RFC 2918).
func (s *session) refresh() {
	s.refreshDue, s.refreshed = false, time.Now()
	if c := s.up; c != nil {
		all := diff(nil, s.sent)
		s.check(c, all.send(&s.link, s.sender(c)))
	}
}

// sender sends message after message, all of them within the time of one: who
// takes a little now and then would else hold the session for as long as it likes,
// while nothing that it says is heard.
func (s *session) sender(c *conn) func([]byte) error {
	late := s.late(c)
	return func(b []byte) error {
		if err := s.ctx.Err(); err != nil {
			return err // a peer that reads slowly must not delay the end
		}
		s.counts.sent.Add(1)
		return s.write(c, b, late)
	}
}

// check ends a connection that failed, unless the session ends anyway.
func (s *session) check(c *conn, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.step(fsm.Event{Kind: fsm.Lost, Conn: c.id, Reason: words(err)})
	}
}

func (s *session) wentDown(why string) {
	s.up, s.sent, s.refreshDue = nil, nil, false
	s.forgets.Store(false)
	if why == "" {
		s.log.Info("BGP session ended")
		return
	}
	s.counts.flaps.Add(1)
	s.log.Warn("BGP session is down", "reason", why)
	s.failed(why)
}

// failed remembers an error. A repeated one is no news.
func (s *session) failed(why string) {
	if why == "" {
		return
	}
	now := *s.state.Load()
	if now.LastError != why {
		s.log.Info("BGP session cannot go on", "reason", why)
		defer s.changed()
	}
	now.LastError, now.LastErrorAt = why, time.Now()
	s.state.Store(&now)
}

// publish makes the state known if it changed.
func (s *session) publish() {
	was := s.state.Load()
	now := *was
	now.State = s.machine.State().String()
	now.Announced, now.Hash, now.Withheld, now.PeerASN = 0, 0, nil, 0
	if s.up != nil {
		now.Announced, now.Hash, now.Withheld = s.told.announced, s.told.hash, s.told.withheld
		now.PeerASN = s.up.peer.ASN
	}
	if now.State != was.State {
		now.Since = time.Now()
	}
	if !now.equal(was) {
		s.state.Store(&now)
		s.changed()
	}
}
