package session

import (
	"math/bits"
	"time"
)

// Tick lets it be now and returns the packet to send, if one is due. The caller
// sends it and calls again, until there is none. random is uniform.
func (s *Session) Tick(now time.Time, random uint32) (Packet, bool) {
	if s.Expired(now) {
		s.expire()
	}
	if s.final {
		// It tells the news as well, but cannot ask.
		s.final, s.news = false, s.news && s.poll.stage == polling
		return s.packet(true), true
	}
	at, due := s.nextSend()
	if !due || now.Before(at) {
		return Packet{}, false
	}
	s.news, s.sent, s.jitter = false, now, random
	p := s.packet(false)
	if p.Poll && s.poll.asked.IsZero() {
		s.poll.asked = now
	}
	s.adminDowns = max(0, s.adminDowns-1)
	return p, true
}

// Next is when Tick must be called at the latest; false: only after something
// else has happened. A time in the past is now.
func (s *Session) Next() (time.Time, bool) {
	if s.final {
		return time.Time{}, true
	}
	at, due := s.nextSend()
	if end, counting := s.deadline(); counting && (!due || end.Before(at)) {
		return end, true
	}
	return at, due
}

// nextSend is when a packet is due that is no answer; false: none will be.
func (s *Session) nextSend() (time.Time, bool) {
	switch {
	case s.cfg.Passive && s.remote.discriminator == 0:
		return time.Time{}, false
	case s.news:
		return time.Time{}, true
	case s.remote.requiredRx == 0:
		return time.Time{}, false
	case s.remote.demand && s.state == Up && s.remote.state == Up && s.poll.stage != polling:
		return time.Time{}, false
	}
	return s.sent.Add(s.pause()), true
}

// pause is the interval less its jitter (RFC 5880 6.8.7): up to a quarter, and a
// tenth at least where the loss of one packet is a failure.
func (s *Session) pause() time.Duration {
	full := s.interval()
	low, high := full*3/4, full
	if s.cfg.Multiplier == 1 {
		high = full * 9 / 10
	}
	more, less := bits.Mul64(uint64(high-low), uint64(s.jitter))
	return high - time.Duration(more<<32|less>>32)
}

func (s *Session) packet(final bool) Packet {
	return Packet{
		Diag: s.diag, State: s.state, Final: final, Poll: !final && s.poll.stage == polling,
		Multiplier:      s.cfg.Multiplier,
		MyDiscriminator: s.discriminator, YourDiscriminator: s.remote.discriminator,
		DesiredMinTx: s.timers.desiredTx, RequiredMinRx: s.timers.requiredRx,
	}
}

// deadline is when silence has lasted for too long; false: nobody is listened to.
func (s *Session) deadline() (time.Time, bool) {
	return s.heard.Add(s.excused + s.detection()), s.remote.discriminator != 0
}

// Expired reports that the next Tick will find that the other end is silent.
func (s *Session) Expired(now time.Time) bool {
	end, counting := s.deadline()
	return counting && !now.Before(end)
}

// expire gives up the other end (RFC 5880 6.8.1 of RemoteDiscr, and 6.8.4).
func (s *Session) expire() {
	last := s.remote
	s.remote, s.poll, s.adminDowns = unheard(), poll{}, 0
	if last.state == AdminDown { // it has said that it will be silent
		s.remote.state, s.remote.diag = last.state, last.diag
	}
	if s.state == Init || s.state == Up {
		s.enter(Down, DiagExpired)
	}
}
