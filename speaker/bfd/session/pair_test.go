package session

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair is two ends and what is under way between them, in virtual time.
type pair struct {
	t      *rapid.T
	ends   [2]*Session
	now    time.Time
	flying []flight
	// lose decides over each packet, and delay how long one takes.
	lose   func(to int) bool
	delay  func() time.Duration
	random func() uint32
	frozen [2]bool // an end that does not run; what comes waits

	downs []string     // each time one end left Up
	heard [2]time.Time // the last arrival at each end
	sent  [2]int
}

type flight struct {
	at     time.Time
	to     int
	packet Packet
}

// configs draws what ends may want, in the range that profiles allow.
func configs(t *rapid.T, name string, passive bool) Config {
	interval := rapid.OneOf(rapid.SampledFrom([]int{10, 50, 300, 1000}), rapid.IntRange(10, 3000))
	return Config{
		Transmit:   time.Duration(interval.Draw(t, name+" transmit")) * ms,
		Receive:    time.Duration(interval.Draw(t, name+" receive")) * ms,
		Multiplier: uint8(rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 255)).Draw(t, name+" multiplier")),
		Passive:    passive,
	}
}

func newPair(t *rapid.T) *pair {
	passive := rapid.IntRange(0, 2).Draw(t, "who is passive") // 2: nobody
	seed := rapid.Uint64().Draw(t, "jitter")
	p := &pair{
		t: t, now: time.Unix(1000, 0), lose: func(int) bool { return false },
		random: func() uint32 { seed = seed*6364136223846793005 + 1442695040888963407; return uint32(seed >> 32) },
	}
	for i, name := range []string{"A", "B"} {
		p.ends[i] = New(uint32(i+1), configs(t, name, i == passive))
	}
	return p
}

// constantDelay makes all packets take as long, which keeps their order.
func (p *pair) constantDelay() time.Duration {
	d := time.Duration(rapid.IntRange(0, 200).Draw(p.t, "delay")) * ms
	p.delay = func() time.Duration { return d }
	return d
}

// run lets time pass, until an instant or until done.
func (p *pair) run(d time.Duration, done func() bool) bool {
	for end := p.now.Add(d); ; {
		if done != nil && done() {
			return true
		}
		next := end
		for i, e := range p.ends {
			if at, ok := e.Next(); ok && !p.frozen[i] && at.Before(next) {
				next = at
			}
		}
		for _, f := range p.flying {
			if !p.frozen[f.to] && f.at.Before(next) {
				next = f.at
			}
		}
		if p.now = latest(p.now, next); !p.now.Before(end) {
			return false
		}
		p.deliver()
		for i := range p.ends {
			p.tick(i)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// deliver hands over what has arrived, in the order of arrival.
func (p *pair) deliver() {
	slices.SortStableFunc(p.flying, func(a, b flight) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	p.flying = slices.DeleteFunc(p.flying, func(f flight) bool {
		if f.at.After(p.now) || p.frozen[f.to] {
			return false
		}
		p.watch(f.to, func(e *Session) { e.Receive(&f.packet, p.now) })
		p.heard[f.to] = p.now
		return true
	})
}

func (p *pair) tick(i int) {
	if p.frozen[i] {
		return
	}
	for {
		var out Packet
		var send bool
		p.watch(i, func(e *Session) { out, send = e.Tick(p.now, p.random()) })
		if !send {
			return
		}
		p.sent[i]++
		wire, why := Parse(out.Append(nil))
		if why != "" {
			p.t.Fatalf("end %d sent %+v, which is refused: %s", i, out, why)
		}
		if to := 1 - i; !p.lose(to) {
			p.flying = append(p.flying, flight{p.now.Add(p.delay()), to, wire})
		}
	}
}

// watch notes when f takes an end out of Up.
func (p *pair) watch(i int, f func(*Session)) {
	before := p.ends[i].state
	f(p.ends[i])
	if now := p.ends[i]; before == Up && now.state != Up {
		p.downs = append(p.downs, fmt.Sprintf("end %d at %v: %v", i, p.now.Unix()-1000, now.diag))
	}
}

func (p *pair) bothUp() bool { return p.ends[0].state == Up && p.ends[1].state == Up }

// settled is both up, and neither with anything left to tell.
func (p *pair) settled() bool {
	return p.bothUp() && p.ends[0].poll.stage == idle && p.ends[1].poll.stage == idle && p.agreed()
}

// agreed reports that each end knows and uses what the other wants.
func (p *pair) agreed() bool {
	for i, e := range p.ends {
		other := p.ends[1-i]
		if e.timers.desiredTx != e.cfg.Transmit || e.timers.requiredRx != e.cfg.Receive ||
			e.remote.desiredTx != other.cfg.Transmit || e.remote.requiredRx != other.cfg.Receive ||
			e.remote.multiplier != other.cfg.Multiplier {
			return false
		}
	}
	a, b := p.ends[0].Status(), p.ends[1].Status()
	return a.Transmit == b.Receive && b.Transmit == a.Receive
}

func (p *pair) mustSettle(what string) {
	p.t.Helper()
	if !p.run(time.Minute, p.settled) {
		p.t.Fatalf("%s: not settled after a minute:\n%+v\n%+v", what, p.ends[0], p.ends[1])
	}
}

func (p *pair) mustHold(what string) {
	p.t.Helper()
	if len(p.downs) > 0 {
		p.t.Fatalf("%s: left Up: %v\n%+v\n%+v", what, p.downs, p.ends[0], p.ends[1])
	}
}

// burst loses up to n packets in a row in each direction, as often as it can.
func (p *pair) burst(n [2]int) {
	var lost [2]int
	p.lose = func(to int) bool {
		if lost[to] < n[to] && p.random()%4 > 0 {
			lost[to]++
			return true
		}
		lost[to] = 0
		return false
	}
}

// Both ends come up whatever they want, agree, and stay up while fewer packets
// in a row are lost than the multiplier says.
func TestPairHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		p.constantDelay()
		p.mustSettle("start")
		p.mustHold("start")
		p.burst([2]int{int(p.ends[1].cfg.Multiplier) - 1, int(p.ends[0].cfg.Multiplier) - 1})
		p.run(time.Minute, nil)
		p.mustHold("loss")
	})
}

// The same where packets overtake each other: then the last of them may come
// too late by as much as one may be slower than another.
func TestPairHoldsInDisorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for _, e := range p.ends {
			e.cfg.Multiplier = max(2, e.cfg.Multiplier)
		}
		shortest := rapid.IntRange(0, 9).Draw(t, "shortest delay")
		p.delay = func() time.Duration {
			return time.Duration(shortest)*ms + time.Duration(p.random()%(uint32(shortest)+1))*ms
		}
		p.mustSettle("start")
		p.burst([2]int{int(p.ends[1].cfg.Multiplier) - 2, int(p.ends[0].cfg.Multiplier) - 2})
		p.run(time.Minute, nil)
		p.mustHold("loss and disorder")
	})
}

// Whatever is lost, both are up again once nothing is.
func TestPairRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		p.constantDelay()
		percent := uint32(rapid.IntRange(1, 99).Draw(t, "loss"))
		p.lose = func(int) bool { return p.random()%100 < percent }
		p.run(time.Minute, nil)
		p.lose = func(int) bool { return false }
		if !p.run(20*time.Minute, p.settled) { // 255 times 3 s of silence may have to pass first
			t.Fatalf("not settled:\n%+v\n%+v", p.ends[0], p.ends[1])
		}
	})
}

// Silence is noticed after the detection time, and not before.
func TestPairDetects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		delay := p.constantDelay()
		p.mustSettle("start")
		p.run(time.Duration(rapid.IntRange(0, 5000).Draw(t, "running"))*ms, nil)
		p.mustHold("before")
		one := rapid.IntRange(0, 1).Draw(t, "deaf end")
		p.lose = func(to int) bool { return to == one }
		p.run(delay, nil) // what is under way arrives
		last, detection := p.heard[one], p.ends[one].Status().Detection
		if !p.run(2*detection, func() bool { return p.ends[one].state != Up }) {
			t.Fatalf("still up")
		}
		// A poll that was under way may excuse the other end for a round trip.
		if took := p.now.Sub(last); took < detection || took > detection+2*delay || p.ends[one].diag != DiagExpired {
			t.Fatalf("down %v after the last packet (%v), want %v", took, p.ends[one].diag, detection)
		}
		within, why := delay+ms, DiagNeighbor
		if p.ends[one].cfg.Passive { // it may not say anything to somebody unknown
			within, why = delay+ms+p.ends[1-one].Status().Detection, DiagExpired
		}
		if !p.run(within, func() bool { return p.ends[1-one].state != Up }) || p.ends[1-one].diag != why {
			t.Fatalf("the other end was not told: %+v", p.ends[1-one])
		}
	})
}

// A change of what one end wants, at any time, is agreed upon without a flap.
func TestPairChangesParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		p.constantDelay()
		p.mustSettle("start")
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			who := rapid.IntRange(0, 1).Draw(t, "who")
			p.ends[who].Configure(configs(t, "new", p.ends[who].cfg.Passive))
			p.run(time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause"))*ms, nil)
		}
		p.mustHold("changes")
		p.mustSettle("changes")
		p.mustHold("settling")
	})
}

// An end that did not run does not blame the other one, whether packets waited
// for it meanwhile or not.
func TestPairFreezes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		p.constantDelay()
		p.mustSettle("start")
		one := rapid.IntRange(0, 1).Draw(t, "frozen end")
		all := rapid.Bool().Draw(t, "its kernel is frozen, too")
		p.frozen[one] = true
		p.lose = func(to int) bool { return all && to == one }
		began := p.now
		p.run(time.Duration(rapid.IntRange(1, 10000).Draw(t, "frozen"))*ms, nil)
		p.frozen[one], p.lose = false, func(int) bool { return false }
		p.ends[one].Excuse(p.now.Sub(began))
		p.deliver()
		p.tick(one)
		if p.ends[one].diag == DiagExpired {
			t.Fatalf("blames the other end: %v", p.downs)
		}
		if !p.run(20*time.Minute, p.settled) {
			t.Fatalf("not settled:\n%+v\n%+v", p.ends[0], p.ends[1])
		}
	})
}

// Disable is told to the other end through any loss that it outnumbers, as what
// it is, and Enable brings both back.
func TestPairEndsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		p.constantDelay()
		p.mustSettle("start")
		p.ends[0].Disable()
		p.burst([2]int{0, int(p.ends[0].cfg.Multiplier) - 1})
		if !p.run(20*time.Minute, p.ends[0].Gone) {
			t.Fatal("never gone")
		}
		p.run(time.Second, nil)
		if st := p.ends[1].Status(); st.State != Down || st.Diag != DiagNeighbor {
			t.Fatalf("the other end is %+v", st)
		}
		p.lose = func(int) bool { return false }
		p.ends[0].Enable()
		if !p.run(20*time.Minute, p.settled) {
			t.Fatalf("not settled:\n%+v\n%+v", p.ends[0], p.ends[1])
		}
	})
}

// Nobody is made to send more than its configuration and two packets for each
// that it hears.
func TestNobodyIsMadeToFlood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := New(7, configs(t, "ours", false)), time.Unix(1000, 0)
		sent, began := 0, now
		n := rapid.IntRange(1, 300).Draw(t, "packets")
		for range n {
			p := Packet{
				State: State(rapid.IntRange(0, 3).Draw(t, "state")), Poll: rapid.Bool().Draw(t, "poll"), Final: rapid.Bool().Draw(t, "final"),
				Demand: rapid.Bool().Draw(t, "demand"), Multiplier: rapid.Uint8Min(1).Draw(t, "multiplier"), MyDiscriminator: 5, YourDiscriminator: 7,
				DesiredMinTx:  time.Duration(rapid.Uint32().Draw(t, "tx")) * time.Microsecond,
				RequiredMinRx: time.Duration(rapid.Uint32().Draw(t, "rx")) * time.Microsecond,
			}
			s.Receive(&p, now)
			for {
				if _, send := s.Tick(now, 0); !send {
					break
				}
				sent++
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "pause")) * ms)
		}
		if most := 2*n + 1 + int(now.Sub(began)/(s.cfg.Transmit*3/4)); sent > most {
			t.Fatalf("sent %d packets for %d in %v, at most %d are its own", sent, n, now.Sub(began), most)
		}
	})
}
