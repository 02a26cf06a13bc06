package announce

import (
	"os"
	"testing"
)

// What must hold in every state of the model, and the visits to all of them.

// complete lets everything that is free happen, in rounds, until nothing does.
func (m *model) complete(t *testing.T, s modelState) modelState {
	for range 40 {
		before := s
		for i := range modelNodes {
			for j := range modelNodes {
				if i == j || !s.up[i] {
					continue
				}
				if s.connected(i, j) {
					s.meet(i, j)
				} else {
					s.sees[i][j] = false
				}
			}
		}
		for i := range modelNodes {
			if s.up[i] {
				s = m.act(t, s, i)
			}
		}
		if s == before {
			return s
		}
	}
	t.Fatalf("never comes to rest: %+v", s)
	return s
}

// owners of a quiet state: per side (seen from each node) and address.
func (m *model) checkQuiet(t *testing.T, from, s modelState) {
	for i := range modelNodes {
		if !s.up[i] {
			continue
		}
		alone := true
		for j := range modelNodes {
			alone = alone && (i == j || !s.connected(i, j))
		}
		for a := range modelAddrs {
			who := m.answering(&s, i, a)
			if len(who) > 1 || len(who) == 0 && (m.lively || !alone) {
				t.Fatalf("address %d is answered by %v on the side of %s\nquiet %+v\nfrom %+v", a, who, m.names[i], s, from)
			}
		}
	}
}

// checkReturn: a node that was cut off from everything, and so was dead to all,
// comes back and takes nothing from those who kept working.
func (m *model) checkReturn(t *testing.T, s modelState) {
	for i := range modelNodes {
		if m.lively || !s.up[i] {
			continue
		}
		s.split = i + 1
		apart := m.complete(t, s)
		together := apart
		together.split = 0
		together = m.complete(t, together)
		for a := range modelAddrs {
			for k := range modelNodes {
				if k != i && s.up[k] && !m.goes(&s, k) && m.plan(&apart, k).answers[a] != m.plan(&together, k).answers[a] && len(m.answering(&apart, k, a)) > 0 {
					t.Fatalf("address %d moved when %s returned\nfrom %+v\nto %+v", a, m.names[i], apart, together)
				}
			}
		}
	}
}

// checkCalm: in a quiet whole LAN neither a false suspicion nor the return of
// a node moves anything, nor what a node says of itself, unless it is to go.
func (m *model) checkCalm(t *testing.T, s modelState) {
	for i := range modelNodes {
		if !s.up[i] {
			n := s
			n.start(i)
			m.checkStill(t, s, n)
			continue
		}
		n := s
		n.say(i)
		m.checkStill(t, s, n)
		for j := range modelNodes {
			if i != j && s.sees[i][j] {
				n := s
				n.sees[i][j] = false
				m.checkStill(t, s, m.act(t, n, i)) // it acts on what it wrongly believes
			}
		}
	}
}

// checkStill: whoever answers in s and is not to go does so when n has come to
// rest.
func (m *model) checkStill(t *testing.T, s, n modelState) {
	n = m.complete(t, n)
	for a := range modelAddrs {
		for k := range modelNodes {
			if s.up[k] && !m.goes(&s, k) && !m.goes(&n, k) && m.plan(&s, k).answers[a] && !m.plan(&n, k).answers[a] {
				t.Fatalf("address %d moved without a cause\nfrom %+v\nto %+v", a, s, n)
			}
		}
	}
}

// checkAnswered: what is polite leaves no question unanswered. After every step
// that only such words and polite ends led to, somebody answers for every address
// as long as one node means to stay.
func (m *model) checkAnswered(t *testing.T, from, s modelState) {
	stays := false
	for i := range modelNodes {
		stays = stays || s.up[i] && !s.leaving[i][i]
	}
	for a := range modelAddrs {
		answered := !stays
		for i := range modelNodes {
			answered = answered || s.up[i] && m.plan(&s, i).answers[a]
		}
		if !answered {
			t.Fatalf("nobody answers for address %d\nfrom %+v\nto %+v", a, from, s)
		}
	}
}

// polite are the successors of s that cost a fault and cut nobody off.
func (m *model) polite(s modelState) (next []modelState) {
	if s.faults == m.faults {
		return nil
	}
	s.faults++
	for i := range modelNodes {
		n := s
		n.say(i)
		next = append(next, n)
		if n = s; n.up[i] && !n.leaving[i][i] {
			n.leaving[i][i] = true
			next = append(next, n)
		}
	}
	return next
}

func TestPolitenessExhaustively(t *testing.T) {
	faults := 3
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		faults = 4
	}
	for name, words := range words() {
		t.Run(name, func(t *testing.T) {
			m := newModel(true, words, faults)
			var begin modelState
			for i := range modelNodes {
				begin.start(i)
			}
			begin = m.complete(t, begin)
			states := explore(begin, func(s modelState) []modelState {
				next := append(m.free(t, s), m.polite(s)...)
				for _, n := range next {
					m.checkAnswered(t, s, n)
				}
				return next
			})
			t.Logf("%d states, %d decisions", states, len(m.plans))
		})
	}
}

// explore visits every state that can be reached, and says how many there are.
func explore(begin modelState, next func(modelState) []modelState) int {
	seen := map[modelState]struct{}{begin: {}}
	for queue := []modelState{begin}; len(queue) > 0; queue = queue[1:] {
		for _, n := range next(queue[0]) {
			if _, known := seen[n]; !known {
				seen[n] = struct{}{}
				queue = append(queue, n)
			}
		}
	}
	return len(seen)
}

// Two faults are explored in some seconds. With three (a million and a half
// states for each of the words, minutes) QUAYSIDE_SOAK asks for the long length.
func TestProtocolExhaustively(t *testing.T) {
	faults := 2
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		faults = 3
	}
	for name, lively := range map[string]bool{"hosts speak on every side": true, "nobody but the speakers": false} {
		for what, words := range words() {
			if len(words) > faults+1 {
				continue // they would not all be said
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				m := newModel(lively, words, faults)
				var begin modelState
				for i := range modelNodes {
					begin.start(i)
				}
				quiet := map[modelState]struct{}{}
				states := explore(begin, func(s modelState) []modelState {
					rest := m.complete(t, s)
					m.checkQuiet(t, s, rest)
					healed := rest
					healed.split = 0
					healed = m.complete(t, healed)
					m.checkQuiet(t, s, healed)
					if _, known := quiet[healed]; !known {
						quiet[healed] = struct{}{}
						m.checkCalm(t, healed)
						m.checkReturn(t, healed)
					}
					return append(m.free(t, s), m.faulty(s)...)
				})
				t.Logf("%d states, %d of them quiet, %d decisions", states, len(quiet), len(m.plans))
			})
		}
	}
}
