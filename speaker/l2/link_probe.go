package l2

import "time"

const (
	probeInterval = 400 * time.Millisecond // while every question is answered
	retryInterval = 100 * time.Millisecond // after a question without an answer
	deafInterval  = time.Second            // the longest, while deaf
	// missesToDeaf unanswered questions in a row make an interface deaf;
	// answersToHear answers in a row end that.
	missesToDeaf  = 8
	answersToHear = 3
	// lateStep is how late a step may run and still count a miss: after a longer
	// delay the answer may have arrived without having been read.
	lateStep = 150 * time.Millisecond
)

// deafWithin is the longest time from losing the LAN to calling the interface deaf: up to
// the next question, then until that one counts as missed, then the remaining questions.
const deafWithin = 2*probeInterval + (missesToDeaf-1)*retryInterval

// probeTarget is which hosts a step asks.
type probeTarget int

const (
	noHost   probeTarget = iota
	oneHost              // the one that answered last
	allHosts             // every known host of the LAN
)

// linkProbe decides from questions to other hosts of a LAN, and their answers, whether
// an interface is deaf, that is, receives no answers. It reads no clock. The zero value
// has asked nothing yet.
type linkProbe struct {
	due    time.Time // of the next step; zero: nothing has been asked
	heard  bool      // an answer to the last question
	missed int       // questions in a row without an answer
	back   int       // answers in a row while deaf
	pause  time.Duration
	deaf   bool
}

// step records whether an answer has arrived since the last step, and returns which hosts
// to ask now and when to step again. A step before its time asks no host.
func (p *linkProbe) step(now time.Time, heard bool) (ask probeTarget, again time.Time) {
	p.heard = p.heard || heard
	late := now.Sub(p.due)
	switch {
	case p.due.IsZero():
	case late < 0:
		return noHost, p.due
	case p.heard:
		p.hear()
	case late < lateStep:
		p.miss()
	}
	p.heard = false
	ask, pause := oneHost, probeInterval
	switch {
	case p.deaf && p.back > 0:
		ask, pause = allHosts, retryInterval
	case p.deaf:
		p.pause = min(2*p.pause, deafInterval)
		ask, pause = allHosts, p.pause
	case p.missed > 0:
		ask, pause = allHosts, retryInterval
	}
	p.due = now.Add(pause)
	return ask, p.due
}

func (p *linkProbe) hear() {
	p.missed = 0
	if !p.deaf {
		return
	}
	if p.back++; p.back >= answersToHear {
		p.deaf, p.back = false, 0
	}
}

func (p *linkProbe) miss() {
	p.back = 0
	if p.missed++; p.missed >= missesToDeaf && !p.deaf {
		p.deaf, p.pause = true, retryInterval
	}
}
