package l2

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func epoch0() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// live steps a linkProbe for d, where asked says whether an answer comes, and
// returns the time at which the interface was first found deaf, zero if never.
func (p *linkProbe) live(now time.Time, d time.Duration, asked func(probeTarget, time.Time) bool) (deaf, end time.Time) {
	heard := false
	for until := now.Add(d); now.Before(until); {
		ask, again := p.step(now, heard)
		if p.deaf && deaf.IsZero() {
			deaf = now
		}
		heard = ask != noHost && asked(ask, now)
		now = again
	}
	return deaf, now
}

func always(probeTarget, time.Time) bool { return true }

func never(probeTarget, time.Time) bool { return false }

func TestDeafInTime(t *testing.T) {
	for offset := time.Duration(0); offset < 2*probeInterval; offset += 7 * time.Millisecond {
		var p linkProbe
		cut := epoch0().Add(10*time.Second + offset)
		deaf, _ := p.live(epoch0(), 20*time.Second, func(_ probeTarget, at time.Time) bool { return at.Before(cut) })
		if took := deaf.Sub(cut); deaf.IsZero() || took > deafWithin {
			t.Fatalf("cut %v after a question: deaf after %v, want at most %v", offset, took, deafWithin)
		}
	}
}

// A question or its answer is lost with one in ten packets; each of everyone's has
// its own luck. In a week there is no mistake with three hosts to ask, nor in a
// minute, as long as such a storm lasts, with one.
func TestNotDeafByLoss(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 0))
	for hosts, lasting := range map[int]time.Duration{1: time.Minute, 3: 7 * 24 * time.Hour} {
		var p linkProbe
		deaf, _ := p.live(epoch0(), lasting, func(ask probeTarget, _ time.Time) bool {
			tries := 1
			if ask == allHosts {
				tries = hosts
			}
			answers := 0
			for range tries {
				if there, back := chance.IntN(10), chance.IntN(10); there > 0 && back > 0 {
					answers++
				}
			}
			return answers > 0
		})
		if !deaf.IsZero() {
			t.Errorf("%d hosts to ask: deaf after %v", hosts, deaf.Sub(epoch0()))
		}
	}
}

func TestHearsAgain(t *testing.T) {
	var p linkProbe
	_, now := p.live(epoch0(), 10*time.Second, never)
	if !p.deaf {
		t.Fatal("not deaf")
	}
	if _, now = p.live(now, deafInterval+(answersToHear+1)*retryInterval, always); p.deaf {
		t.Fatal("still deaf, and everybody answers")
	}
	// One answer in three is not enough.
	_, now = p.live(now, 10*time.Second, never)
	n := 0
	p.live(now, time.Minute, func(probeTarget, time.Time) bool {
		if !p.deaf {
			t.Fatal("one answer in three, and it is not deaf any more")
		}
		n++
		return n%3 == 0
	})
}

// A process without a processor makes no mistake, however long it has none: what was
// answered meanwhile may not have been read.
func TestStarvedIsNotDeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p linkProbe
		now := epoch0()
		for range 100 {
			_, again := p.step(now, false)
			now = again.Add(lateStep + time.Duration(rapid.IntRange(0, 5000).Draw(t, "late"))*time.Millisecond)
		}
		if p.deaf {
			t.Fatal("deaf")
		}
	})
}

func TestCheapAtRestAndWhileDeaf(t *testing.T) {
	for name, answer := range map[string]func(probeTarget, time.Time) bool{"at rest": always, "deaf": never} {
		var p linkProbe
		_, now := p.live(epoch0(), 10*time.Second, answer)
		n := 0
		p.live(now, 10*time.Second, func(who probeTarget, at time.Time) bool { n++; return answer(who, at) })
		if n > 26 {
			t.Errorf("%s: %d questions in 10 s", name, n)
		}
	}
}

func TestEarlyStepsAskNobody(t *testing.T) {
	var p linkProbe
	_, again := p.step(epoch0(), false)
	for _, heard := range []bool{false, true, false} {
		if ask, next := p.step(epoch0().Add(probeInterval/2), heard); ask != noHost || next != again {
			t.Errorf("an early step asks %v and comes again at %v", ask, next)
		}
	}
}
