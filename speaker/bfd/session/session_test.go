package session

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

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
