package fsm

import (
	"fmt"
	"time"
)

// State is one of RFC 4271 8.2.2.
type State uint8

// The states, in order of progress.
const (
	Idle        State = iota // stopped
	Active                   // waits for the peer to dial, or for the next attempt
	Connect                  // dials
	OpenSent                 // connected; waits for the peer's OPEN
	OpenConfirm              // waits for the peer's KEEPALIVE
	Established
)

// String returns the name of the state (RFC 4271 section 8.2.2).
func (s State) String() string {
	return [...]string{"Idle", "Active", "Connect", "OpenSent", "OpenConfirm", "Established"}[s]
}

// Kinship is which AS numbers a peer may have.
type Kinship uint8

// The values of Kinship.
const (
	Exactly  Kinship = iota // Config.PeerASN
	Internal                // our own
	External                // any but our own
)

// Config of a Machine. It does not change during its life.
type Config struct {
	LocalASN uint32
	PeerASN  uint32 // with Exactly
	Kinship  Kinship
	RouterID uint32
	// Passive never dials.
	Passive bool
	// Restart says that we speak graceful restart (RFC 4724).
	Restart bool
	// Hold is the hold time we propose: zero (no timer) or 3 s to 65535 s.
	Hold time.Duration
	// Keepalive is the longest pause between KEEPALIVEs; zero means a third of
	// the hold time agreed on, which is the most in any case.
	Keepalive time.Duration
	// Open is how long a connection may take until it is Established.
	Open time.Duration
	// FirstWait and MaxWait bound the pause before the next attempt to dial: it
	// doubles with each, and begins anew after a session that lasted Calm.
	FirstWait, MaxWait, Calm time.Duration
	// Random returns a number in [0, 1).
	Random func() float64
}

// Open is what an OPEN message of the peer says.
type Open struct {
	Version uint8
	ASN     uint32 // that of the capability (RFC 6793), if there
	Hold    uint16 // seconds
	ID      uint32
	Restart bool // it speaks graceful restart
}

// conn is one connection. The zero id is no connection's.
type conn struct {
	id      int
	inbound bool
	state   State
	open    Open
	hold    time.Duration // agreed on; zero: none
	beat    time.Duration // between KEEPALIVEs
	// expires is when the hold timer, or before it the open timer, ends the
	// connection; zero: never.
	expires time.Time
	beatAt  time.Time
}

// Machine is the state of one peer. It belongs to one goroutine.
type Machine struct {
	cfg     Config
	running bool
	conns   [2]conn // those with an id
	dialing bool
	dialAt  time.Time // zero: no attempt is planned
	wait    time.Duration
	upSince time.Time
	out     []Action
}

// New returns a machine that is Idle.
func New(cfg Config) *Machine { return &Machine{cfg: cfg, wait: cfg.FirstWait} }

// State is that of the connection that has come furthest.
func (m *Machine) State() State {
	best := Idle
	for _, c := range m.conns {
		best = max(best, c.state)
	}
	switch {
	case best != Idle || !m.running:
		return best
	case m.dialing:
		return Connect
	}
	return Active
}

// Deadline is when the machine wants a Tick; zero: never.
func (m *Machine) Deadline() time.Time {
	next := m.dialAt
	for _, c := range m.conns {
		next = earlier(earlier(next, c.expires), c.beatAt)
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Step takes one event and says what to do, in order. The slice is valid until
// the next Step.
func (m *Machine) Step(now time.Time, e Event) []Action {
	m.out = m.out[:0]
	switch e.Kind {
	case Start:
		m.start()
	case Stop:
		m.stop(e)
	case Dialed:
		m.dialed(now, e)
	case DialFailed:
		m.dialFailed(now, e)
	case Accepted:
		m.accepted(now, e)
	case Tick:
		m.tick(now)
	default:
		if c := m.find(e.Conn); c != nil && e.Conn != 0 {
			m.received(now, c, e)
		}
	}
	return m.out
}

func (m *Machine) start() {
	if m.running {
		return
	}
	m.running = true
	m.wait = m.cfg.FirstWait
	m.dial()
}

func (m *Machine) stop(e Event) {
	for i := range m.conns {
		if c := &m.conns[i]; c.id != 0 {
			m.end(c, e.Notification, "")
		}
	}
	m.cancelDial()
	m.running = false
}

func (m *Machine) dialed(now time.Time, e Event) {
	free := m.find(0)
	if !m.running || !m.dialing || free == nil {
		m.act(Action{Kind: Close, Conn: e.Conn})
		return
	}
	m.dialing = false
	m.opened(now, free, e.Conn, false)
}

func (m *Machine) dialFailed(now time.Time, e Event) {
	if !m.dialing {
		return
	}
	m.dialing = false
	m.act(Action{Kind: Failed, Reason: e.Reason})
	m.planDial(now)
}

// accepted takes a connection that the peer opened. A second one replaces one
// that has not come far: the peer knows that the first is dead.
func (m *Machine) accepted(now time.Time, e Event) {
	if !m.running {
		m.act(Action{Kind: Close, Conn: e.Conn})
		return
	}
	for i := range m.conns {
		switch c := &m.conns[i]; {
		case c.state == Established && !m.restartAgreed(c):
			m.act(Action{Kind: Notify, Conn: e.Conn, Notification: collision()})
			m.act(Action{Kind: Close, Conn: e.Conn})
			return
		case c.id != 0 && c.inbound && c.state < Established:
			m.end(c, collision(), "")
		}
	}
	if free := m.find(0); free != nil {
		m.opened(now, free, e.Conn, true)
		return
	}
	m.act(Action{Kind: Close, Conn: e.Conn})
}

// opened begins the exchange on a new connection.
func (m *Machine) opened(now time.Time, c *conn, id int, inbound bool) {
	*c = conn{id: id, inbound: inbound, state: OpenSent, expires: now.Add(m.cfg.Open)}
	m.act(Action{Kind: SendOpen, Conn: id})
}

// received takes whatever happened on a connection that exists.
func (m *Machine) received(now time.Time, c *conn, e Event) {
	switch e.Kind {
	case Lost:
		m.fail(now, c, Notification{}, e.Reason)
	case Malformed:
		m.fail(now, c, e.Notification, "we refused a message: "+e.Notification.String()+because(e.Reason))
	case NotificationReceived:
		m.fail(now, c, Notification{}, "the peer sent a NOTIFICATION: "+e.Notification.String())
	case OpenReceived:
		m.openReceived(now, c, e.Open)
	case KeepaliveReceived:
		m.keepaliveReceived(now, c)
	case UpdateReceived, RefreshReceived:
		if c.state != Established {
			m.unexpected(now, c, e.Kind)
			return
		}
		m.heard(c, now)
	}
}

func (m *Machine) openReceived(now time.Time, c *conn, open Open) {
	if c.state != OpenSent {
		m.unexpected(now, c, OpenReceived)
		return
	}
	if n, why := m.refuse(open); n.Code != 0 {
		m.fail(now, c, n, "we refused its OPEN: "+n.String()+because(why))
		return
	}
	c.open = open
	if !m.survives(now, c) {
		return
	}
	c.state = OpenConfirm
	c.hold = min(m.cfg.Hold, time.Duration(open.Hold)*time.Second)
	m.act(Action{Kind: SendKeepalive, Conn: c.id})
	if c.hold == 0 {
		return // the open timer goes on: nothing else ends a stall
	}
	c.beat = c.hold / 3
	if m.cfg.Keepalive > 0 {
		c.beat = min(c.beat, m.cfg.Keepalive)
	}
	c.beatAt = now.Add(m.jitter(c.beat))
	m.heard(c, now)
}

func (m *Machine) keepaliveReceived(now time.Time, c *conn) {
	switch c.state {
	case OpenConfirm:
		m.establish(now, c)
	case Established:
		m.heard(c, now)
	default:
		m.unexpected(now, c, KeepaliveReceived)
	}
}

func (m *Machine) establish(now time.Time, c *conn) {
	if o := m.other(c); o.id != 0 {
		m.end(o, collision(), "")
	}
	m.cancelDial()
	c.state = Established
	c.expires = time.Time{}
	m.heard(c, now)
	m.upSince = now
	m.act(Action{Kind: Up, Conn: c.id})
}

// heard restarts the hold timer.
func (m *Machine) heard(c *conn, at time.Time) {
	if c.hold > 0 {
		c.expires = at.Add(c.hold)
	}
}

// Heard restarts the hold timer of a connection that was last heard at a time
// gone by. It spares a driver an event for each message of an Established peer.
func (m *Machine) Heard(id int, at time.Time) {
	if c := m.find(id); c != nil && id != 0 && c.state == Established && at.Add(c.hold).After(c.expires) {
		m.heard(c, at)
	}
}

func (m *Machine) tick(now time.Time) {
	for i := range m.conns {
		c := &m.conns[i]
		if c.id != 0 && due(c.expires, now) {
			m.expire(now, c)
		}
		if c.id != 0 && due(c.beatAt, now) {
			c.beatAt = now.Add(m.jitter(c.beat))
			m.act(Action{Kind: SendKeepalive, Conn: c.id})
		}
	}
	if due(m.dialAt, now) {
		m.dialAt = time.Time{}
		// One that is about to be Established makes another needless.
		if m.State() < OpenConfirm {
			m.dial()
		}
	}
}

func due(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func (m *Machine) expire(now time.Time, c *conn) {
	n, why := Notification{Code: HoldTimerExpired}, fmt.Sprintf("hold timer expired: nothing heard for %v", c.hold)
	if c.hold == 0 || c.state == OpenSent {
		why = fmt.Sprintf("the peer was not done with %v in %v", c.state, m.cfg.Open)
	}
	m.fail(now, c, n, why)
}

// unexpected is a message that the state does not allow (RFC 6608).
func (m *Machine) unexpected(now time.Time, c *conn, what Kind) {
	sub := map[State]uint8{OpenSent: 1, OpenConfirm: 2, Established: 3}[c.state]
	n := Notification{Code: StateMachineError, Subcode: sub}
	m.fail(now, c, n, fmt.Sprintf("%v in state %v", what, c.state))
}

// fail ends a connection and plans the next.
func (m *Machine) fail(now time.Time, c *conn, n Notification, why string) {
	if c.state == Established && now.Sub(m.upSince) >= m.cfg.Calm {
		m.wait = m.cfg.FirstWait
	}
	m.end(c, n, why)
	m.planDial(now)
}

// end ends a connection. A why becomes the Reason of its last action.
func (m *Machine) end(c *conn, n Notification, why string) {
	if n.Code != 0 {
		m.act(Action{Kind: Notify, Conn: c.id, Notification: n})
	}
	m.act(Action{Kind: Close, Conn: c.id})
	switch {
	case c.state == Established:
		m.act(Action{Kind: Down, Conn: c.id, Reason: why})
	case why != "":
		m.act(Action{Kind: Failed, Conn: c.id, Reason: why})
	}
	*c = conn{}
}

func (m *Machine) dial() {
	if m.cfg.Passive || m.dialing {
		return
	}
	m.dialing = true
	m.act(Action{Kind: Dial})
}

func (m *Machine) cancelDial() {
	m.dialAt = time.Time{}
	if m.dialing {
		m.dialing = false
		m.act(Action{Kind: CancelDial})
	}
}

// planDial plans an attempt unless one goes on or a session is up.
func (m *Machine) planDial(now time.Time) {
	if m.cfg.Passive || m.dialing || !m.dialAt.IsZero() || m.State() >= OpenConfirm || m.outbound() {
		return
	}
	m.dialAt = now.Add(m.jitter(m.wait))
	m.wait = min(2*m.wait, m.cfg.MaxWait)
}

// outbound reports whether a connection that we opened exists.
func (m *Machine) outbound() bool {
	for _, c := range m.conns {
		if c.id != 0 && !c.inbound {
			return true
		}
	}
	return false
}

// jitter shortens a pause by up to a quarter (RFC 4271 section 10).
func (m *Machine) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + 0.25*m.cfg.Random()))
}

func (m *Machine) find(id int) *conn {
	for i := range m.conns {
		if m.conns[i].id == id {
			return &m.conns[i]
		}
	}
	return nil
}

func (m *Machine) other(c *conn) *conn {
	if c == &m.conns[0] {
		return &m.conns[1]
	}
	return &m.conns[0]
}

func (m *Machine) act(a Action) { m.out = append(m.out, a) }

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}
