package session

import "time"

// Receive takes a packet that Parse has accepted and that is meant for this
// session (RFC 5880 6.8.6).
func (s *Session) Receive(p *Packet, now time.Time) {
	s.remote = remote{
		discriminator: p.MyDiscriminator, state: p.State, diag: p.Diag, demand: p.Demand,
		multiplier: p.Multiplier, desiredTx: p.DesiredMinTx, requiredRx: p.RequiredMinRx,
	}
	s.heard, s.excused = now, 0
	s.heardPoll(p.Final, now)
	if s.state == AdminDown {
		if p.State == Down || p.State == AdminDown {
			s.adminDowns = 0 // it has heard
		}
		return
	}
	s.final = s.final || p.Poll
	if next, why := transition(s.state, p.State); next != s.state {
		s.enter(next, why)
	}
}

// heardPoll moves a poll sequence on, and begins the next if something else has
// been wanted since.
//
// An answer does not say which packet it answers, so the next sequence must wait
// until no answer of this one can come any more. RFC 5880 6.8.3 offers to wait
// for a packet that is no answer, which is too short where a round trip takes
// several intervals, or for a round trip after the last packet that asked. Of
// these this is the longer; the round trip took no longer than the first answer.
func (s *Session) heardPoll(final bool, now time.Time) {
	switch {
	case s.poll.stage == polling && final && !s.poll.asked.IsZero():
		s.poll.stage, s.poll.until = settling, s.sent.Add(now.Sub(s.poll.asked))
		s.timers.usedTx, s.timers.usedRx = s.timers.desiredTx, s.timers.requiredRx
	case s.poll.stage == settling && !final && now.After(s.poll.until):
		s.poll = poll{}
		s.advertise()
	}
}

// transition is the machine of RFC 5880 6.8.6 for an end that is not AdminDown.
func transition(local, received State) (State, Diag) {
	switch {
	case received == AdminDown && local != Down, received == Down && local == Up:
		return Down, DiagNeighbor
	case received == Down && local == Down:
		return Init, DiagNone
	case received == Init && local == Down, (received == Init || received == Up) && local == Init:
		return Up, DiagNone
	}
	return local, DiagNone
}
