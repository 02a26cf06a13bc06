package session

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

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

// TestEveryStateHearsEveryState is RFC 5880 6.8.6, row by row.
func TestEveryStateHearsEveryState(t *testing.T) {
	type outcome struct {
		state State
		diag  Diag
	}
	const none, neighbor, admin = DiagNone, DiagNeighbor, DiagAdminDown
	table := map[State][4]outcome{ // by what is heard: AdminDown, Down, Init, Up
		AdminDown: {{AdminDown, admin}, {AdminDown, admin}, {AdminDown, admin}, {AdminDown, admin}},
		Down:      {{Down, none}, {Init, none}, {Up, none}, {Down, none}},
		Init:      {{Down, neighbor}, {Init, none}, {Up, none}, {Up, none}},
		Up:        {{Down, neighbor}, {Down, neighbor}, {Up, none}, {Up, none}},
	}
	for local, row := range table {
		for heard, want := range row {
			for _, poll := range []bool{false, true} {
				e := newEnd(t, cfg()).in(local)
				e.hear(State(heard), func(p *Packet) { p.Poll, p.Diag = poll, DiagPath })
				st := e.Status()
				if st.State != want.state || st.Diag != want.diag {
					t.Errorf("%v hears %v: is %v (%v), want %v (%v)", local, State(heard), st.State, st.Diag, want.state, want.diag)
				}
				if st.Remote != State(heard) || st.RemoteDiag != DiagPath {
					t.Errorf("%v hears %v: believes %v (%v)", local, State(heard), st.Remote, st.RemoteDiag)
				}
				said := e.says()
				final := len(said) > 0 && said[0].Final
				if final != (poll && local != AdminDown) {
					t.Errorf("%v hears %v, poll %v: answered %v", local, State(heard), poll, final)
				}
				if changed := want.state != local; changed && (len(said) == 0 || said[0].State != want.state) {
					t.Errorf("%v hears %v: did not tell at once that it is %v: %+v", local, State(heard), want.state, said)
				} else if !changed && !final && len(said) > 0 {
					t.Errorf("%v hears %v: nothing happened, and it said %+v", local, State(heard), said)
				}
			}
		}
	}
}

func TestSilence(t *testing.T) {
	for _, c := range []struct {
		in, then State
		diag     Diag
		after    time.Duration // 3 times the longer of 20 ms and our receive interval
	}{
		{Init, Down, DiagExpired, 180 * ms},
		{Up, Down, DiagExpired, 180 * ms},
		{AdminDown, AdminDown, DiagAdminDown, 180 * ms},
	} {
		e := newEnd(t, cfg()).in(c.in)
		for until := e.now.Add(c.after); e.now.Before(until.Add(-ms)); e.pass(ms) {
			e.says()
			if e.state != c.in || e.remote.discriminator == 0 {
				t.Fatalf("%v gave up %v early", c.in, until.Sub(e.now))
			}
		}
		e.pass(ms)
		said := e.says()
		if st := e.Status(); st.State != c.then || st.Diag != c.diag || st.Remote != Down || st.Detection != 0 {
			t.Errorf("%v after %v: %+v", c.in, c.after, st)
		}
		if c.in != c.then && (len(said) != 1 || said[0].State != Down || said[0].Diag != DiagExpired || said[0].YourDiscriminator != 0 || said[0].Poll) {
			t.Errorf("%v gave up and said %+v", c.in, said)
		}
	}
}

// Some fall silent after they have said AdminDown. That is what they are, then.
func TestSilenceAfterAdminDown(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.hear(AdminDown, func(p *Packet) { p.Diag = DiagAdminDown })
	e.says()
	e.pass(time.Hour)
	e.says()
	if st := e.Status(); st.State != Down || st.Diag != DiagNeighbor || st.Remote != AdminDown || st.RemoteDiag != DiagAdminDown || st.Detection != 0 {
		t.Errorf("%+v", st)
	}
}

func TestPaceAndJitter(t *testing.T) {
	const slowest = math.MaxUint32 * time.Microsecond
	for _, c := range []struct {
		name      string
		cfg       Config
		in        State
		change    func(*Packet)
		low, high time.Duration
	}{
		{"down is slow", cfg(), Down, nil, 750 * ms, 1000 * ms},
		{"init is slow", cfg(), Init, nil, 750 * ms, 1000 * ms},
		{"down with a longer interval", Config{Transmit: 4 * time.Second, Receive: ms, Multiplier: 3}, Down, nil, 3000 * ms, 4000 * ms},
		{"up", cfg(), Up, nil, 37500 * time.Microsecond, 50 * ms},
		{"the other end is slower", cfg(), Up, func(p *Packet) { p.RequiredMinRx = 200 * ms }, 150 * ms, 200 * ms},
		{"no packet may be lost", Config{Transmit: 100 * ms, Receive: ms, Multiplier: 1}, Up, nil, 75 * ms, 90 * ms},
		{"as slow as can be", cfg(), Up, func(p *Packet) { p.RequiredMinRx = slowest }, slowest * 3 / 4, slowest},
	} {
		e := newEnd(t, c.cfg).in(c.in)
		if c.change != nil {
			e.hear(Up, c.change)
		}
		for random, want := range map[uint32]time.Duration{0: c.high, math.MaxUint32: c.low, 1 << 31: (c.low + c.high) / 2} {
			e.jitter = random
			if got := e.pause(); (got - want).Abs() > time.Microsecond {
				t.Errorf("%s, random %#x: pause of %v, want %v", c.name, random, got, want)
			}
		}
	}
}

func TestDetectionTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Packet)
		want   time.Duration
	}{
		{"ours is longer", func(*Packet) {}, 180 * ms},
		{"theirs is longer", func(p *Packet) { p.DesiredMinTx = 100 * ms }, 300 * ms},
		{"their multiplier counts", func(p *Packet) { p.Multiplier = 10 }, 600 * ms},
		{"none is wanted", func(p *Packet) { p.DesiredMinTx = 0 }, 180 * ms},
	} {
		e := newEnd(t, cfg()).in(Up)
		e.hear(Up, c.change)
		if got := e.Status().Detection; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if e.Expired(e.now.Add(c.want-1)) || !e.Expired(e.now.Add(c.want)) {
			t.Errorf("%s: does not give up after %v", c.name, c.want)
		}
	}
}

func TestPassiveWaits(t *testing.T) {
	c := cfg()
	c.Passive = true
	e := newEnd(t, c)
	if e.pass(time.Hour); e.nextIn() != math.MaxInt64 {
		t.Error("wants to do something")
	}
	e.silent("passive, and nobody has spoken")
	e.hear(Down)
	if p := e.says1("spoken to"); p.State != Init || p.YourDiscriminator != 9 {
		t.Errorf("said %+v", p)
	}
	e.pass(time.Hour)
	e.silent("the other end is gone")
	if e.state != Down || e.Status().Diag != DiagExpired {
		t.Errorf("is %+v", e.Status())
	}
}

func TestTheOtherEndWantsNoPackets(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.hear(Up, func(p *Packet) { p.RequiredMinRx = 0 })
	if e.nextIn() != 180*ms {
		t.Errorf("next in %v, want the end of its detection time", e.nextIn())
	}
	e.hear(Up, poller, func(p *Packet) { p.RequiredMinRx = 0 })
	if p := e.says1("asked"); !p.Final {
		t.Errorf("said %+v", p)
	}
}

func TestDemandModeOfTheOtherEnd(t *testing.T) {
	demand := func(p *Packet) { p.Demand = true }
	e := newEnd(t, cfg()).in(Up)
	e.hear(Up, demand)
	if e.nextIn() != 180*ms {
		t.Errorf("next in %v, want only the end of its detection time", e.nextIn())
	}
	c := cfg()
	c.Transmit = 100 * ms
	e.Configure(c)
	if p := e.says1("something to tell"); !p.Poll || p.DesiredMinTx != 100*ms || p.Demand {
		t.Errorf("said %+v", p)
	}
	if e.pass(50 * ms); !e.says1("no answer yet").Poll { // the old pace: the poll has not ended
		t.Error("does not ask again")
	}
	e.hear(Up, demand, answer)
	e.pass(170 * ms)
	e.silent("answered")
	e.hear(Init, demand) // only where both are up
	e.says1("the other end is not up")
}

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

func TestDisable(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.Disable()
	for n := range 3 {
		if e.Gone() {
			t.Fatalf("gone after %d packets", n)
		}
		p := e.says1("the last word")
		if p.State != AdminDown || p.Diag != DiagAdminDown || p.DesiredMinTx != SlowRate || p.Poll {
			t.Errorf("said %+v", p)
		}
		e.pass(50 * ms)
	}
	if !e.Gone() {
		t.Error("not gone")
	}
	e.silent("the slow rate now")
	e.hear(Down)
	if e.pass(e.nextIn()); e.state != AdminDown {
		t.Errorf("is %v", e.state)
	}
	e.Enable()
	if p := e.says1("enabled"); p.State != Down || p.Diag != DiagNone {
		t.Errorf("said %+v", p)
	}
	e.Enable()
	e.silent("enabled twice")
}

func TestFarewellsEnd(t *testing.T) {
	e := newEnd(t, cfg())
	if e.Disable(); !e.Gone() {
		t.Error("nobody was there, and somebody is told")
	}
	for name, hears := range map[string]func(*end){
		"it says that it is down": func(e *end) { e.hear(Down) },
		"it is not there":         func(e *end) { e.pass(time.Hour); e.says() },
	} {
		e := newEnd(t, cfg()).in(Up)
		e.Disable()
		e.says1("the first")
		e.hear(Up) // it may have crossed ours
		if e.Gone() {
			t.Errorf("%s: gone before", name)
		}
		if hears(e); !e.Gone() {
			t.Errorf("%s: not gone", name)
		}
	}
	e = newEnd(t, cfg()).in(Down)
	e.hear(Up) // is known, and there is nothing to lose
	e.Disable()
	if e.says1("once"); !e.Gone() {
		t.Error("not gone")
	}
}

func TestExcuse(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.pass(time.Minute)
	e.Excuse(time.Minute - 179*ms)
	e.says()
	if e.state != Up {
		t.Error("went down though it was not running")
	}
	if e.pass(ms); !e.Expired(e.now) {
		t.Error("does not go down for the silence since")
	}
	e.hear(Up)
	if e.pass(180 * ms); !e.Expired(e.now) {
		t.Error("an excuse outlives a packet")
	}
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

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for i := range 32 {
		for _, s := range []string{State(i).String(), Diag(i).String()} {
			if seen[s] {
				t.Errorf("%d: %q is the name of another", i, s)
			}
			seen[s] = true
		}
	}
	if DiagNone.String() != "" {
		t.Error("no diagnostic has words")
	}
}

func TestTickAllocatesNothing(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	if n := testing.AllocsPerRun(1000, func() {
		p := Packet{State: Up, Poll: true, Multiplier: 3, MyDiscriminator: 9, YourDiscriminator: 7, DesiredMinTx: 20 * ms, RequiredMinRx: 20 * ms}
		e.Receive(&p, e.now)
		for {
			if _, ok := e.Tick(e.now, 5); !ok {
				break
			}
		}
		e.now = e.now.Add(50 * ms)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
