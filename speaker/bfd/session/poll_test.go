package session

import (
	"testing"
	"time"
)

// TestChangesAreToldByPoll is RFC 5880 6.8.3, direction by direction.
func TestChangesAreToldByPoll(t *testing.T) {
	for _, c := range []struct {
		name               string
		tx, rx             time.Duration
		before, beforeUsed [2]time.Duration // transmit and receive until the answer; after it
	}{
		{"sends less often", 100 * ms, 60 * ms, [2]time.Duration{50 * ms, 60 * ms}, [2]time.Duration{100 * ms, 60 * ms}},
		{"sends more often", 30 * ms, 60 * ms, [2]time.Duration{30 * ms, 60 * ms}, [2]time.Duration{30 * ms, 60 * ms}},
		{"hears less often", 50 * ms, 90 * ms, [2]time.Duration{50 * ms, 90 * ms}, [2]time.Duration{50 * ms, 90 * ms}},
		{"hears more often", 50 * ms, 30 * ms, [2]time.Duration{50 * ms, 60 * ms}, [2]time.Duration{50 * ms, 30 * ms}},
	} {
		e := newEnd(t, cfg()).in(Up)
		used := func() [2]time.Duration { st := e.Status(); return [2]time.Duration{st.Transmit, st.Receive} }
		e.Configure(Config{Transmit: c.tx, Receive: c.rx, Multiplier: 3})
		if p := e.says1(c.name); !p.Poll || p.DesiredMinTx != c.tx || p.RequiredMinRx != c.rx || p.State != Up {
			t.Errorf("%s: said %+v", c.name, p)
		}
		if used() != c.before {
			t.Errorf("%s: uses %v before the answer, want %v", c.name, used(), c.before)
		}
		e.hear(Up) // no answer
		if e.pass(e.nextIn()); !e.says1(c.name).Poll {
			t.Errorf("%s: does not ask again", c.name)
		}
		e.hear(Up, answer)
		if used() != c.beforeUsed {
			t.Errorf("%s: uses %v after the answer, want %v", c.name, used(), c.beforeUsed)
		}
		if e.pass(c.tx); e.says1(c.name).Poll {
			t.Errorf("%s: asks on", c.name)
		}
		if e.state != Up {
			t.Errorf("%s: is %v", c.name, e.state)
		}
	}
}

// TestDownNeedsNoPoll: what waits for an answer holds at once when the session ends.
func TestDownNeedsNoPoll(t *testing.T) {
	c := Config{Transmit: 2 * time.Second, Receive: 60 * ms, Multiplier: 3}
	e := newEnd(t, c).in(Up)
	c.Transmit, c.Receive = 3*time.Second, 30*ms
	e.Configure(c)
	if st := e.Status(); st.Transmit != 2*time.Second || st.Receive != 60*ms {
		t.Errorf("before the answer: %+v", st)
	}
	e.hear(Down)
	if st := e.Status(); st.State != Down || st.Transmit != 3*time.Second || st.Receive != 30*ms {
		t.Errorf("down: %+v", st)
	}
}

// An answer does not say which of two questions it answers.
func TestOneChangeAtATime(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	change := func(tx time.Duration) { e.Configure(Config{Transmit: tx, Receive: 60 * ms, Multiplier: 3}) }
	told := func(want time.Duration, poll bool) {
		t.Helper()
		e.pass(e.nextIn())
		if p := e.says1("told"); p.DesiredMinTx != want || p.Poll != poll {
			t.Errorf("told %v, poll %v; want %v, %v", p.DesiredMinTx, p.Poll, want, poll)
		}
		e.hear(Up)
	}
	change(100 * ms)
	if p := e.says1("the first"); p.DesiredMinTx != 100*ms || !p.Poll {
		t.Errorf("said %+v", p)
	}
	change(200 * ms)
	change(150 * ms)
	e.silent("the first was not answered yet")
	told(100*ms, true)
	e.hear(Up, answer)
	e.silent("another answer may follow")
	e.hear(Up, answer)
	e.silent("so it did")
	e.hear(Up)
	e.silent("a round trip has not passed since the last question")
	e.pass(50*ms + 1)
	e.hear(Up)
	if p := e.says1("the last"); p.DesiredMinTx != 150*ms || !p.Poll {
		t.Errorf("said %+v", p)
	}
	e.hear(Up, answer)
	e.hear(Up)
	told(150*ms, false)
	change(150 * ms)
	e.silent("nothing is new")
}

func TestAnswersAPoll(t *testing.T) {
	for _, s := range []State{Down, Init, Up} {
		e := newEnd(t, cfg()).in(s)
		heard := map[State]State{Down: Up, Init: Down, Up: Up}[s] // changes nothing
		e.hear(heard, poller)
		if e.nextIn() > 0 {
			t.Errorf("%v: answers in %v", s, e.nextIn())
		}
		if p := e.says1("asked"); !p.Final || p.Poll || p.State != s {
			t.Errorf("%v: said %+v", s, p)
		}
	}
}

// An answer that also brings news does not bring it twice, but a question of
// our own has to follow it.
func TestAnswerAndNews(t *testing.T) {
	e := newEnd(t, cfg()).in(Init)
	e.hear(Up, poller)
	said := e.says()
	if len(said) != 2 || !said[0].Final || said[0].Poll || said[1].Final || !said[1].Poll || said[0].State != Up || said[1].State != Up {
		t.Errorf("said %+v", said)
	}
	e = newEnd(t, cfg()).in(Down)
	e.hear(Down, poller)
	if p := e.says1("now init"); !p.Final || p.State != Init {
		t.Errorf("said %+v", p)
	}
}

func TestHonoursAShorterIntervalAtOnce(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.hear(Up, func(p *Packet) { p.RequiredMinRx, p.Multiplier = time.Second, 50 })
	e.pass(e.nextIn())
	e.says1("the slow pace")
	e.pass(100 * ms)
	e.silent("the slow pace")
	e.hear(Up)
	e.says1("the quick pace, since 50 ms have passed already")
}

func TestMultiplierIsToldAtOnce(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	c := cfg()
	c.Multiplier = 5
	e.Configure(c)
	if p := e.says1("news"); p.Multiplier != 5 || p.Poll {
		t.Errorf("said %+v", p)
	}
}
