package members

import (
	"slices"
	"testing"
	"time"
)

func (w *wires) questions(pair string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[pair]
}

// Who is not watched is asked in turn, and doubted by all when it does not answer. When it
// does again it is sent what it may have missed.
func TestTheUnwatchedAreProbed(t *testing.T) {
	w := wired(t, 4, 200*time.Millisecond)
	n1, n4 := w.members["n1"], w.members["n4"]
	eventually(t, "n3 and n4 are asked", func() bool { return w.questions("n1 n3") > 2 && w.questions("n1 n4") > 2 })
	w.set(true, "n1 n3", "n3 n1", "n2 n3", "n4 n3")
	eventually(t, "n3 is doubted by all", func() bool {
		return slices.Equal(doubts(n1), []string{"n3"}) && slices.Equal(doubts(n4), []string{"n3"})
	})
	w.set(false, "n1 n3", "n3 n1", "n2 n3", "n4 n3")
	eventually(t, "it is trusted again", func() bool { return len(doubts(n1))+len(doubts(n4)) == 0 })
	n1.mu.Lock()
	defer n1.mu.Unlock()
	if !slices.Contains(n1.returned, "n3") {
		t.Errorf("sent this node's claims: %v, want n3", n1.returned)
	}
}

// Each living member has one turn in a round, and those who are watched take theirs without
// a wake of this process.
func TestProbesHaveTurns(t *testing.T) {
	m := newFleet(t, 96, 5).make(0, "")
	for _, name := range []string{"n2", "n3", "n5"} {
		m.alive[name] = struct{}{}
	}
	w := &watching{m: m, at: map[string]*watched{"n2": {}, "n3": {}}}
	began := time.Now()
	w.nextProbe(began)
	const rounds = 30
	for range rounds {
		if p := w.probes; len(p.round) == 0 || p.round[0].Name != "n5" {
			t.Fatalf("to be asked: %+v, want n5", p.round)
		}
		w.probes.round = w.probes.round[1:]
		w.nextProbe(w.probes.at)
	}
	if took := w.probes.at.Sub(began); took < 3*rounds*m.timing.probe || took > 3*(rounds+1)*m.timing.probe {
		t.Errorf("%d rounds of three took %v, one question is due every %v", rounds, took, m.timing.probe)
	}
	w.at["n5"] = &watched{}
	if w.nextProbe(w.probes.at); !w.probes.at.IsZero() {
		t.Error("all are watched, and somebody is to be asked")
	}
}
