package members

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"quayside.io/speaker/announce"
)

// What a member hears from the first that it meets, all others know: it gossips nothing of
// that, or a speaker that restarts among 5,000 would do so for minutes. That it has a better
// claim itself it says, and, once it has settled, what is new to it may be new to others.
func TestWhoStartsPassesNothingOn(t *testing.T) {
	vip := netip.MustParseAddr("10.0.0.1")
	for name, test := range map[string]struct {
		settled bool
		claims  map[netip.Addr]int64
		want    func(queued int) bool
	}{
		"it starts":                         {want: func(queued int) bool { return queued == 0 }},
		"it starts and has a better claim":  {claims: map[netip.Addr]int64{vip: 9}, want: func(queued int) bool { return queued > 0 && queued < 10 }},
		"it has settled, and is told later": {settled: true, want: func(queued int) bool { return queued > 20 }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 96, 22)
			m, other := f.make(0, ""), f.make(1, "")
			for i := 1; i < 22; i++ {
				for _, b := range f.make(i, "").state.tell(announce.Facts{}, 1) {
					if _, err := other.take(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			other.state.tell(announce.Facts{}, 1)
			other.state.claim(map[netip.Addr]int64{vip: 3})
			m.state.claim(test.claims)
			m.settled = test.settled
			m.alive["n2"] = struct{}{}
			d := &delegate{m}
			d.MergeRemoteState((&delegate{other}).LocalState(true), true)
			m.answer() // as the next round does
			if n := m.queue.NumQueued(); !test.want(n) {
				t.Errorf("%d messages are queued", n)
			}
			if n := m.state.numTold(); n != 21 {
				t.Errorf("it has learnt what %d members say, want 21", n)
			}
		})
	}
}

// Where all start at once each hears soon what all others say of themselves, though few of
// them pass it on, and nothing is left to say then. That each passed on all that it heard
// took eight times as many bytes; that each who was told of a death told all, six times as
// many packets.
func TestAFleetThatStartsAtOnce(t *testing.T) {
	const n = 100
	attended(t, n, 2, "default", func(t *testing.T, s *simulated, all []*Members) {
		within(t, 10*time.Second, "each has heard from all", func() bool { return each(all, func(m *Members) bool { return m.state.numTold() == n }) })
		time.Sleep(10 * time.Second)
		if c := s.cost(0, nil); c.bytes > 400<<10 {
			t.Errorf("to start took %v of each, want at most 400 kB", c)
		}
		s.split(func(a, b string) bool { return a == "n5" || b == "n5" })
		c := s.cost(time.Second, nil)
		if c.packets > n*3/2 {
			t.Errorf("a death took %v of each in a second, want at most %d packets", c, n*3/2)
		}
		synctest.Wait()
		for _, m := range all {
			if m != all[4] && !m.isDoubted("n5") {
				t.Errorf("%s has not been told that n5 is dead", m.opts.NodeName)
			}
		}
		if wrong := s.wronged("n5"); wrong > 0 {
			t.Errorf("others were missed %d times", wrong)
		}
	})
}

// The larger the fleet, the more rarely those ping a dead member that were told of it: all
// together ask about as often as a few hundred would.
func TestThoseWhoWereToldPingRarely(t *testing.T) {
	m := newFleet(t, 96, 2).make(0, "")
	for i := range 5000 {
		m.alive[fmt.Sprint(i)] = struct{}{}
	}
	w := &watching{m: m, at: map[string]*watched{}}
	w.setPause()
	if pause := w.pauseOf(&watched{}); pause != m.timing.watch {
		t.Errorf("who has found out itself waits for %v, want %v", pause, m.timing.watch)
	}
	if each := w.pauseOf(&watched{told: true}); each < 5000/300*m.timing.watch || each > 5*time.Second {
		t.Errorf("who was told waits for %v", each)
	}
}
