package l2

import "time"

const (
	pulseRest  = 400 * time.Millisecond // between questions while all is well
	pulseHurry = 100 * time.Millisecond // once one had no answer
	pulseSlow  = time.Second            // at most, while deaf
	// unanswered is how many questions in a row make an interface deaf, and answered
	// how many answers make it hear again.
	unanswered = 8
	answered   = 3
	// starved is how late a step may come that still judges. The answer of a later
	// one may be there, and nobody has read it.
	starved = 150 * time.Millisecond
)

// deafWithin is how long an interface may hear nobody until that is known: the time to
// the next question, that until its answer is missed, and the rest of the questions.
const deafWithin = 2*pulseRest + (unanswered-1)*pulseHurry

// whom says whom to ask.
type whom int

const (
	nobody   whom = iota
	one           // the one that answered last
	everyone      // whoever may be there
)

// pulse judges whether one interface still hears its LAN, from questions to other
// hosts on it and their answers. It knows no clock. The zero value has asked nobody.
type pulse struct {
	due    time.Time // of the next step; zero: nothing has been asked
	heard  bool      // an answer to the last question
	missed int       // questions in a row without an answer
	back   int       // answers in a row while deaf
	pause  time.Duration
	deaf   bool // the interface hears nobody
}

// step takes in whether an answer has come since the last, and says whom to ask and
// when to step again. One that comes early asks nobody.
func (p *pulse) step(now time.Time, heard bool) (ask whom, again time.Time) {
	p.heard = p.heard || heard
	late := now.Sub(p.due)
	switch {
	case p.due.IsZero():
	case late < 0:
		return nobody, p.due
	case p.heard:
		p.hear()
	case late < starved:
		p.miss()
	}
	p.heard = false
	ask, pause := one, pulseRest
	switch {
	case p.deaf && p.back > 0:
		ask, pause = everyone, pulseHurry
	case p.deaf:
		p.pause = min(2*p.pause, pulseSlow)
		ask, pause = everyone, p.pause
	case p.missed > 0:
		ask, pause = everyone, pulseHurry
	}
	p.due = now.Add(pause)
	return ask, p.due
}

func (p *pulse) hear() {
	p.missed = 0
	if !p.deaf {
		return
	}
	if p.back++; p.back >= answered {
		p.deaf, p.back = false, 0
	}
}

func (p *pulse) miss() {
	p.back = 0
	if p.missed++; p.missed >= unanswered && !p.deaf {
		p.deaf, p.pause = true, pulseHurry
	}
}
