package session

import (
	"math"
	"testing"
	"time"
)

func cfg() Config { return Config{Transmit: 50 * ms, Receive: 60 * ms, Multiplier: 3} }

// end is a Session with a clock.
type end struct {
	*Session
	t   *testing.T
	now time.Time
}

func newEnd(t *testing.T, c Config) *end {
	return &end{New(7, c), t, time.Unix(1000, 0)}
}

// hear takes a packet of the other end, which is at 20 ms times 3 in both directions.
func (e *end) hear(s State, change ...func(*Packet)) {
	p := Packet{State: s, Multiplier: 3, MyDiscriminator: 9, YourDiscriminator: 7, DesiredMinTx: 20 * ms, RequiredMinRx: 20 * ms}
	for _, f := range change {
		f(&p)
	}
	e.Receive(&p, e.now)
}

func poller(p *Packet) { p.Poll = true }

func answer(p *Packet) { p.Final = true }

// says is all that is sent now.
func (e *end) says() []Packet {
	var all []Packet
	for {
		p, ok := e.Tick(e.now, 0)
		if !ok {
			return all
		}
		all = append(all, p)
	}
}

// says1 is the only packet that is sent now.
func (e *end) says1(what string) Packet {
	e.t.Helper()
	all := e.says()
	if len(all) != 1 {
		e.t.Fatalf("%s: %d packets, want 1: %+v", what, len(all), all)
	}
	return all[0]
}

func (e *end) silent(what string) {
	e.t.Helper()
	if all := e.says(); len(all) != 0 {
		e.t.Fatalf("%s: said %+v", what, all)
	}
}

func (e *end) pass(d time.Duration) { e.now = e.now.Add(d) }

// nextIn is how long until something is due.
func (e *end) nextIn() time.Duration {
	at, ok := e.Next()
	if !ok {
		return math.MaxInt64
	}
	return at.Sub(e.now)
}

// in brings the end to a state, its first poll sequence behind it.
func (e *end) in(s State) *end {
	e.says()
	switch s {
	case AdminDown:
		e.hear(Down)
		e.Disable()
	case Init:
		e.hear(Down)
	case Up:
		e.hear(Init)
		e.says()
		e.hear(Up, answer)
		e.pass(1)
		e.hear(Up)
	}
	e.says()
	if e.state != s {
		e.t.Fatalf("is %v, want %v", e.state, s)
	}
	return e
}
