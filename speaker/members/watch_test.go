package members

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestDoubtNeedsMissesInARow(t *testing.T) {
	const timeout = 10 * time.Millisecond
	type question struct {
		answered, vouched bool
		took              time.Duration
	}
	yes, miss, others, late := question{answered: true}, question{took: timeout}, question{vouched: true, took: timeout}, question{took: 2 * timeout}
	for name, c := range map[string]struct {
		asked []question
		soon  bool // after the last
		holds bool
	}{
		"all is well":                  {[]question{yes, yes}, false, false},
		"one miss":                     {[]question{yes, miss}, true, false},
		"two misses":                   {[]question{miss, miss}, true, false},
		"three misses":                 {[]question{miss, miss, miss}, false, true},
		"an answer between":            {[]question{miss, miss, yes, miss}, true, false},
		"others reach it":              {[]question{miss, others, miss, miss}, true, false},
		"who was late has missed none": {[]question{miss, late, late, miss}, true, false},
		"and knows no better":          {[]question{miss, late, miss, miss}, false, true},
		"it answers again":             {[]question{miss, miss, miss, miss, yes}, false, false},
	} {
		d, soon := doubt{timing: timing{timeout: timeout, misses: 3}}, false
		for _, q := range c.asked {
			soon = d.note(q.answered, q.vouched, q.took)
		}
		if soon != c.soon || d.holds() != c.holds {
			t.Errorf("%s: asks again at once %t, doubts %t", name, soon, d.holds())
		}
	}
}

// wires join members that run no memberlist.
type wires struct {
	mu      sync.Mutex
	members map[string]*Members
	asked   map[string]int  // "a b": how often a has asked b
	cut     map[string]bool // "a b": what a sends to b is lost
}

// end is that of one member.
type end struct {
	*wires
	of *Members
}

func (w *wires) carry(from, to string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut[from+" "+to]
}

func (w *wires) set(cut bool, pairs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pairs {
		w.cut[p] = cut
	}
}

func (e *end) Ping(node string, _ net.Addr) (time.Duration, error) {
	e.mu.Lock()
	e.asked[e.of.opts.NodeName+" "+node]++
	e.mu.Unlock()
	if e.carry(e.of.opts.NodeName, node) && e.carry(node, e.of.opts.NodeName) {
		return time.Millisecond, nil
	}
	time.Sleep(e.of.timing.timeout)
	return 0, errors.New("no answer")
}

func (e *end) send(b []byte, to netip.AddrPort) error {
	for name, m := range e.members {
		if m.want.Load().Self == to.Addr() && e.carry(e.of.opts.NodeName, name) {
			go m.hearHeartbeat(slices.Clone(b)) // the sender holds a lock meanwhile
		}
	}
	return nil
}

func (e *end) SendBestEffort(to *memberlist.Node, b []byte) error {
	if !e.carry(e.of.opts.NodeName, to.Name) {
		return nil
	}
	_, err := e.members[to.Name].take(slices.Clone(b))
	return err
}

// wired are members n1, n2 and so on, of which the first watches the second, each with its
// patience.
func wired(t *testing.T, n int, patience ...time.Duration) *wires {
	f := newFleet(t, 91, n)
	w := &wires{members: map[string]*Members{}, asked: map[string]int{}, cut: map[string]bool{}}
	for i := range n {
		m := f.make(i, f.keyFile)
		m.timing.watch, m.timing.timeout, m.timing.misses = 20*time.Millisecond, 20*time.Millisecond, 3
		if i < len(patience) {
			m.timing.watch = patience[i]
		}
		for _, p := range f.peers {
			m.alive[p.Name] = struct{}{}
		}
		w.members[f.peers[i].Name] = m
	}
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	t.Cleanup(func() { cancel(); tasks.Wait() })
	for i, p := range f.peers {
		m := w.members[p.Name]
		watching := m.begin(ctx, &end{w, m}, &end{w, m}, newTestTimer(t), &tasks)
		if i == 0 {
			want := f.want(0)
			want.Watch = []string{"n2", "a stranger"}
			m.Set(want)
			watching.follow(ctx, want)
		}
	}
	return w
}

func doubts(m *Members) []string { return slices.Sorted(maps.Keys(m.View().Doubted)) }

// Who is watched and dies is doubted, also by who has nobody else to ask; and is not any
// more when it answers.
func TestTheWatchedAreDoubted(t *testing.T) {
	for name, nodes := range map[string]int{"two nodes": 2, "four nodes": 4} {
		t.Run(name, func(t *testing.T) {
			w := wired(t, nodes)
			n1 := w.members["n1"]
			eventually(t, "it is seen", func() bool { return !n1.View().LastSeen["n2"].IsZero() })
			w.set(true, "n1 n2", "n2 n1", "n3 n2", "n4 n2")
			eventually(t, "n2 is doubted", func() bool { return slices.Equal(doubts(n1), []string{"n2"}) })
			if _, alive := n1.View().Alive["n2"]; !alive {
				t.Error("a doubt is not gossip's word")
			}
			w.set(false, "n1 n2", "n2 n1")
			eventually(t, "it is not any more", func() bool { return len(doubts(n1)) == 0 })
		})
	}
}

// Where only the way from here to there is broken, others vouch.
func TestOthersVouch(t *testing.T) {
	w := wired(t, 3)
	n1 := w.members["n1"]
	w.set(true, "n1 n2")
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		// A busy machine may let one answer be late; the next one ends the doubt.
		if len(doubts(n1)) > 0 {
			eventually(t, "the doubt ends", func() bool { return len(doubts(n1)) == 0 })
		}
	}
	w.set(true, "n3 n2")
	eventually(t, "n2 is doubted once nobody reaches it", func() bool { return len(doubts(n1)) == 1 })
	w.set(false, "n3 n2")
	eventually(t, "and trusted when somebody does", func() bool { return len(doubts(n1)) == 0 })
}

// Who sends heartbeats is not asked, and who stops is again.
func TestBeatsSpareQuestions(t *testing.T) {
	w := wired(t, 2, 200*time.Millisecond) // late heartbeats of a busy machine are none of this test
	n1 := w.members["n1"]
	asked := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.asked["n1 n2"]
	}
	heard := func() bool {
		watching := n1.watching.Load()
		watching.mu.Lock()
		defer watching.mu.Unlock()
		return !watching.at["n2"].heard.IsZero()
	}
	eventually(t, "n2 sends heartbeats", heard)
	before, seen := asked(), n1.View().LastSeen["n2"]
	time.Sleep(time.Second)
	if n := asked() - before; n > 2 {
		t.Errorf("n2 sends heartbeats, and was asked %d times in a second", n)
	}
	if !n1.View().LastSeen["n2"].After(seen) {
		t.Error("heartbeats are no signs of life")
	}
	w.set(true, "n2 n1")
	eventually(t, "it is asked, and doubted", func() bool { return asked() > before+3 && len(doubts(n1)) == 1 })
	w.set(false, "n2 n1")
	eventually(t, "it is trusted", func() bool { return len(doubts(n1)) == 0 })
}

// Those who do not watch a member look for themselves when another doubts it, for as
// long as it is silent.
func TestOthersLookForThemselves(t *testing.T) {
	w := wired(t, 3)
	n1, n3 := w.members["n1"], w.members["n3"]
	eventually(t, "it is seen", func() bool { return !n1.View().LastSeen["n2"].IsZero() })
	w.set(true, "n1 n2", "n2 n1", "n3 n2")
	eventually(t, "n2 is doubted by both", func() bool { return len(doubts(n1)) == 1 && len(doubts(n3)) == 1 })
	w.set(false, "n1 n2", "n2 n1", "n3 n2")
	looks := func() int {
		watching := n3.watching.Load()
		watching.mu.Lock()
		defer watching.mu.Unlock()
		return len(watching.at)
	}
	eventually(t, "it is trusted", func() bool { return len(doubts(n1))+len(doubts(n3)) == 0 && looks() == 0 })
	w.set(true, "n1 n2", "n2 n1", "n3 n2")
	eventually(t, "n2 is doubted again", func() bool { return len(doubts(n3)) == 1 })
	n3.update(func() { delete(n3.alive, "n2"); delete(n3.doubted, "n2") }) // gossip has found out
	eventually(t, "nobody looks after the dead", func() bool { return looks() == 0 })
}

// A real death is doubted long before memberlist knows.
func TestADeathIsDoubtedFirst(t *testing.T) {
	f := newFleet(t, 92, 3)
	slow := func(m *Members) { m.timing.probe, m.timing.timeout = 5*time.Second, 20*time.Millisecond }
	var watchers []*Members
	for i := range 2 {
		m := f.make(i, f.keyFile)
		slow(m)
		want := f.want(i)
		want.Watch = []string{"n3"}
		m.Set(want)
		f.run(m)
		watchers = append(watchers, m)
	}
	third := f.mortal(2)
	for _, m := range watchers {
		eventually(t, "all have met", func() bool { return len(m.View().Alive) == 3 && !m.View().LastSeen["n3"].IsZero() })
	}
	if err := third.Shutdown(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	for _, m := range watchers {
		eventually(t, "n3 is doubted", func() bool { return slices.Equal(doubts(m), []string{"n3"}) })
		if len(m.View().Alive) != 3 {
			t.Error("gossip knows already: this says nothing about watching")
		}
	}
	t.Logf("doubted by both after %v", time.Since(died).Round(time.Millisecond))
	// Who has taken everything over has nobody to follow, and trusts the dead no more than before.
	watchers[0].Set(f.want(0))
	time.Sleep(100 * time.Millisecond)
	if !slices.Equal(doubts(watchers[0]), []string{"n3"}) {
		t.Error("n3 is trusted again, and has not answered")
	}
}

// What a question costs him who is asked is bounded, whoever asks.
func TestQuestionsOfOthersAreBounded(t *testing.T) {
	m := newFleet(t, 93, 3).make(0, "")
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody answers
	w := m.begin(ctx, nil, nil, newTestTimer(t), &tasks)
	tasks.Wait()
	b, err := (&message{kind: kindAsk, node: "n2", about: "n3"}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := m.take(b); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.asks); n != cap(w.asks) {
		t.Errorf("%d questions wait, want %d", n, cap(w.asks))
	}
}
