package session

import "time"

// slowRate is the shortest interval at which an end sends while it is not up
// (RFC 5880 6.8.3).
const slowRate = time.Second

// Config is what this end wants.
type Config struct {
	// Transmit is the shortest interval at which this end sends while up, and
	// Receive the shortest at which it can hear. Both are 1 µs or longer.
	Transmit, Receive time.Duration
	// Multiplier is how many intervals of silence the other end waits for; 1 or more.
	Multiplier uint8
	// Passive is to say nothing before the other end has spoken.
	Passive bool
}

// Session is one end of a session. The names of RFC 5880 6.8.1 are beside the
// fields that hold those variables.
type Session struct {
	cfg           Config
	discriminator uint32 // LocalDiscr
	state         State  // SessionState
	diag          Diag   // LocalDiag
	remote        remote
	timers        timers
	poll          poll
	// What must go out at once: an answer to a poll; news.
	final, news bool
	// adminDowns counts the packets that still have to say AdminDown at the pace of
	// a session that is up.
	adminDowns int

	heard   time.Time     // the last packet
	excused time.Duration // since then this end did not run for so long
	sent    time.Time     // the last packet, answers to polls apart
	jitter  uint32        // of the pause after it, in 2^-32
}

// remote is what the last packet said; zero: nothing was heard for too long.
type remote struct {
	discriminator uint32        // RemoteDiscr
	state         State         // RemoteSessionState
	diag          Diag          // not in the RFC: for people
	demand        bool          // RemoteDemandMode
	multiplier    uint8         // of the detection time
	desiredTx     time.Duration // of the detection time
	requiredRx    time.Duration // RemoteMinRxInterval
}

// timers are the intervals as the other end is told, and as they are used here:
// these lag behind while a poll sequence is under way.
type timers struct {
	desiredTx  time.Duration // DesiredMinTxInterval
	requiredRx time.Duration // RequiredMinRxInterval
	usedTx     time.Duration
	usedRx     time.Duration
}

// poll is a poll sequence (RFC 5880 6.5): packets that ask, until one answers.
type poll struct {
	stage stage
	asked time.Time // the first packet that asked
	until time.Time // answers to earlier packets may come, while settling
}

type stage uint8

const (
	idle stage = iota
	polling
	// settling: it was answered, and other answers may be under way, which would
	// be taken for those of the next sequence.
	settling
)

// New returns an end that is down and has received nothing. Discriminators are
// unique on this machine, and not zero.
func New(discriminator uint32, c Config) *Session {
	s := &Session{cfg: c, discriminator: discriminator, state: Down, remote: unheard()}
	s.advertise()
	return s
}

// unheard is the other end before it has said anything.
func unheard() remote { return remote{state: Down, requiredRx: time.Microsecond} }

// Configure changes what this end wants. Nothing is reset.
func (s *Session) Configure(c Config) {
	if c == s.cfg {
		return
	}
	s.news = s.news || c.Multiplier != s.cfg.Multiplier
	s.cfg = c
	s.advertise()
}

// advertise brings what the other end is told to what is wanted, unless a poll
// sequence is under way: its answer would not say to which of the two it is.
func (s *Session) advertise() {
	tx, rx := s.cfg.Transmit, s.cfg.Receive
	if s.state != Up {
		tx = max(tx, slowRate)
	}
	if s.timers.desiredTx == tx && s.timers.requiredRx == rx {
		return
	}
	if s.state == Up && s.poll.stage != idle {
		return // until it has ended: see heardPoll
	}
	s.timers.desiredTx, s.timers.requiredRx = tx, rx
	if s.state != Up || tx < s.timers.usedTx {
		s.timers.usedTx = tx
	}
	if s.state != Up || rx > s.timers.usedRx {
		s.timers.usedRx = rx
	}
	s.news = true
	if s.remote.discriminator != 0 && s.state != AdminDown {
		s.poll = poll{stage: polling}
	}
}

// enter changes the state.
func (s *Session) enter(state State, why Diag) {
	s.state, s.diag, s.news = state, why, true
	s.advertise()
	if state != Up { // nothing has to wait for a poll sequence any more
		s.timers.usedTx, s.timers.usedRx = s.timers.desiredTx, s.timers.requiredRx
	}
}

// Disable takes the session down, which the other end will not take for a
// failure. It is told several times, since it may miss a packet; Gone says when
// that is done.
//
// RFC 5880 6.8.16 wants AdminDown said for a detection time, and 6.8.3 one packet
// a second at most. Where detection is quicker, that one packet may be lost and
// the end becomes an alarm. So the first few keep the pace that the other
// end has asked for while it was up.
func (s *Session) Disable() {
	if s.state == AdminDown {
		return
	}
	switch {
	case s.remote.discriminator == 0: // the other end is not known
	case s.state == Down:
		s.adminDowns = 1
	default:
		s.adminDowns = int(s.cfg.Multiplier)
	}
	s.poll, s.final = poll{}, false
	s.enter(AdminDown, DiagAdminDown)
}

// Gone reports that everything was done to tell the other end of Disable.
func (s *Session) Gone() bool { return s.state == AdminDown && s.adminDowns == 0 }

// Enable undoes Disable.
func (s *Session) Enable() {
	if s.state == AdminDown {
		s.adminDowns = 0
		s.enter(Down, DiagNone)
	}
}

// Excuse says that this end did not run for a while: then it could not have
// heard the other one, and its silence means nothing.
func (s *Session) Excuse(d time.Duration) { s.excused += d }

// Status is what can be seen of a session. It is comparable.
type Status struct {
	State, Remote    State
	Diag, RemoteDiag Diag
	// Transmit and Receive are the intervals in force, jitter apart.
	Transmit, Receive time.Duration
	// Detection is the silence after which the session goes down; zero: the other
	// end has not been heard.
	Detection time.Duration
}

// Status returns how the session stands.
func (s *Session) Status() Status {
	st := Status{
		State: s.state, Diag: s.diag, Remote: s.remote.state, RemoteDiag: s.remote.diag,
		Transmit: s.interval(), Receive: max(s.timers.usedRx, s.remote.desiredTx),
	}
	if s.remote.discriminator != 0 {
		st.Detection = s.detection()
	}
	return st
}

// detection is the detection time of RFC 5880 6.8.4.
func (s *Session) detection() time.Duration {
	return time.Duration(s.remote.multiplier) * max(s.timers.usedRx, s.remote.desiredTx)
}

// interval is that between packets, before jitter.
func (s *Session) interval() time.Duration {
	tx := s.timers.usedTx
	if s.adminDowns > 0 {
		tx = s.cfg.Transmit
	}
	return max(tx, s.remote.requiredRx)
}
