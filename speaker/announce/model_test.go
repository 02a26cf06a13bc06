package announce

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"quayside.io/controller/snapshot"
)

// The protocol as a model: three nodes, two addresses, every interleaving of
// what can happen with a bounded number of faults. The decisions are not
// modelled: they are Compile's.
//
// A fault is a crash, a start, a split of the LAN, its healing, a false
// suspicion, a polite end, or the beginning or end of a drain. Free of charge are the truths that get through
// sooner or later: a member that is really out of reach is missed, one within
// reach is met, gossip arrives, a node acts on what it knows.

const (
	modelNodes = 3
	modelAddrs = 2
)

// modelState is one state of the world. It is comparable.
type modelState struct {
	up      [modelNodes]bool
	sees    [modelNodes][modelNodes]bool
	know    [modelNodes][modelAddrs]Claim
	leaving [modelNodes][modelNodes]bool // [i][j]: i knows that j leaves
	// drained is what i knows of the drain of j: how often it began or ended. The
	// speaker of j says so, and what it has said last is known by the count.
	drained [modelNodes][modelNodes]uint8
	drains  [modelNodes]uint8 // the truth, which outlives a speaker
	split   int               // 0: none; i+1: node i is alone on its side
	faults  int
}

// model holds what does not change, and remembers decisions.
type model struct {
	cluster *snapshot.Cluster
	names   [modelNodes]string
	addrs   [modelAddrs]netip.Addr
	faults  int  // how many may happen
	drains  bool // some of them are drains
	lively  bool // hosts on every side of the LAN speak, so that no node is deaf
	plans   map[planKey]modelPlan
}

type planKey struct {
	me      int
	sees    [modelNodes]bool
	know    [modelAddrs]Claim
	leaving [modelNodes]bool
	drained [modelNodes]bool
}

type modelPlan struct {
	answers  [modelAddrs]bool
	handOver [modelAddrs]bool
	take     [modelAddrs]bool
	claim    [modelAddrs]Claim
	planned  [modelAddrs]bool // the owner lets go: no question to the LAN
}

func newModel(lively bool, faults int) *model {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	m := &model{lively: lively, faults: faults, plans: map[planKey]modelPlan{}}
	for i := range modelNodes {
		m.names[i] = fmt.Sprintf("n%d", i+1)
		w.addNode(twinNode{name: m.names[i], alive: true, ready: true, subnet: true}, false)
	}
	w.objects = append(w.objects, lanPool("10.0.0.100-10.0.0.199"))
	for a := range modelAddrs {
		m.addrs[a] = netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + a)})
		w.addService(fmt.Sprintf("s%d", a), twinAddr{addr: m.addrs[a]}, a)
	}
	m.cluster = snapshot.Of(w.objects...)
	return m
}

func (m *model) plan(s *modelState, i int) modelPlan {
	key := planKey{me: i, sees: s.sees[i], know: s.know[i], leaving: s.leaving[i]}
	for j, count := range s.drained[i] {
		key.drained[j] = count%2 == 1
	}
	if p, ok := m.plans[key]; ok {
		return p
	}
	v := View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}
	for j, name := range m.names {
		if s.sees[i][j] || i == j {
			v.Alive[name] = struct{}{}
		}
		v.Facts[name] = Facts{Leaving: s.leaving[i][j], Drained: key.drained[j]}
	}
	for a, c := range s.know[i] {
		if c.Node != "" {
			v.Claims[m.addrs[a]] = c
		}
	}
	plan := Compile(m.cluster, m.names[i], v, epoch0(), Options{})
	var p modelPlan
	for a, addr := range m.addrs {
		answer, ok := plan.Answers[addr]
		p.answers[a], p.handOver[a] = ok, answer.HandOver != ""
		for _, t := range plan.Take {
			if t.Address == addr {
				p.take[a], p.claim[a] = true, Claim{t.Epoch, m.names[i]}
				p.planned[a] = t.Cause == Leaving || t.Cause == Ineligible
			}
		}
	}
	m.plans[key] = p
	return p
}

func (s *modelState) connected(i, j int) bool {
	return s.up[i] && s.up[j] && (s.split == 0 || (s.split-1 == i) == (s.split-1 == j))
}

// answering returns who answers for a among those that i reaches, i included.
func (m *model) answering(s *modelState, i, a int) (who []int) {
	for j := range modelNodes {
		if s.connected(i, j) && m.plan(s, j).answers[a] {
			who = append(who, j)
		}
	}
	return who
}

// hear makes j know what i knows.
func (s *modelState) hear(j, i int) {
	for a, c := range s.know[i] {
		if c.Node != "" && (s.know[j][a].Node == "" || c.Beats(s.know[j][a])) {
			s.know[j][a] = c
		}
	}
	for k, leaves := range s.leaving[i] {
		s.leaving[j][k] = s.leaving[j][k] || leaves
		s.drained[j][k] = max(s.drained[j][k], s.drained[i][k])
	}
}

// meet lets i and j see each other and compare notes, as a join does.
func (s *modelState) meet(i, j int) {
	s.sees[i][j], s.sees[j][i] = true, true
	s.hear(i, j)
	s.hear(j, i)
}

// act carries out the plan of i as the hall does.
func (m *model) act(t *testing.T, s modelState, i int) modelState {
	p := m.plan(&s, i)
	if s.leaving[i][i] {
		left := false
		for a := range modelAddrs {
			left = left || p.handOver[a]
		}
		if !left {
			s.crash(i) // everything is handed over: it ends
		}
		return s
	}
	deaf := !m.lively
	for j := range modelNodes {
		deaf = deaf && (i == j || !s.connected(i, j))
	}
	next := s
	for a := range modelAddrs {
		if !p.take[a] {
			continue
		}
		others := m.answering(&s, i, a)
		first := s.know[i][a].Node == ""
		if !p.planned[a] && (len(others) > 0 || deaf && !first) {
			continue // the LAN refuses
		}
		next.know[i][a] = p.claim[a]
		if now := m.answering(&next, i, a); !p.planned[a] && len(now) > 1 {
			t.Fatalf("%s took address %d while %v answer\nbefore %+v\nafter %+v", m.names[i], a, now, s, next)
		}
	}
	return next
}

func (s *modelState) crash(i int) {
	s.up[i] = false
	s.sees[i] = [modelNodes]bool{}
	s.know[i] = [modelAddrs]Claim{}
	s.leaving[i] = [modelNodes]bool{}
	s.drained[i] = [modelNodes]uint8{}
}

// drain begins or ends the drain of i.
func (s *modelState) drain(i int) {
	s.drains[i]++
	if s.up[i] {
		s.drained[i][i] = s.drains[i]
	}
}

// goes reports whether i has a cause to hand its addresses over.
func (s *modelState) goes(i int) bool { return s.leaving[i][i] || s.drains[i]%2 == 1 }

// start boots i: it acts only after it has met whom it reaches.
func (s *modelState) start(i int) {
	s.up[i] = true
	s.drained[i][i] = s.drains[i]
	for j := range modelNodes {
		s.leaving[j][i] = false // its new life says so itself
		if i != j && s.connected(i, j) {
			s.meet(i, j)
		}
	}
	s.leaving[i][i] = false
}

// free are the successors of s that cost no fault.
func (m *model) free(t *testing.T, s modelState) (next []modelState) {
	add := func(n modelState) {
		if n != s {
			next = append(next, n)
		}
	}
	for i := range modelNodes {
		if !s.up[i] {
			continue
		}
		add(m.act(t, s, i))
		for j := range modelNodes {
			if i == j {
				continue
			}
			n := s
			switch {
			case s.sees[i][j] && !s.connected(i, j):
				n.sees[i][j] = false
			case !s.sees[i][j] && s.connected(i, j):
				n.meet(i, j)
			case s.connected(i, j):
				n.hear(i, j)
			}
			add(n)
		}
	}
	return next
}

// faulty are the successors of s that cost one.
func (m *model) faulty(s modelState) (next []modelState) {
	if s.faults == m.faults {
		return nil
	}
	s.faults++
	add := func(change func(*modelState)) {
		n := s
		change(&n)
		next = append(next, n)
	}
	if s.split != 0 {
		add(func(n *modelState) { n.split = 0 })
	}
	for i := range modelNodes {
		if m.drains {
			add(func(n *modelState) { n.drain(i) })
		}
		if s.split == 0 {
			add(func(n *modelState) { n.split = i + 1 })
		}
		if !s.up[i] {
			add(func(n *modelState) { n.start(i) })
			continue
		}
		add(func(n *modelState) { n.crash(i) })
		if !s.leaving[i][i] {
			add(func(n *modelState) { n.leaving[i][i] = true })
		}
		for j := range modelNodes {
			if i != j && s.sees[i][j] {
				add(func(n *modelState) { n.sees[i][j] = false })
			}
		}
	}
	return next
}

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
				if k != i && s.up[k] && !s.goes(k) && m.plan(&apart, k).answers[a] != m.plan(&together, k).answers[a] && len(m.answering(&apart, k, a)) > 0 {
					t.Fatalf("address %d moved when %s returned\nfrom %+v\nto %+v", a, m.names[i], apart, together)
				}
			}
		}
	}
}

// checkCalm: in a quiet whole LAN neither a false suspicion nor the return of
// a node moves anything.
func (m *model) checkCalm(t *testing.T, s modelState) {
	for i := range modelNodes {
		for j := range modelNodes {
			n := s
			switch {
			case i == j && !s.up[i]:
				n.start(i)
			case i != j && s.up[i] && s.sees[i][j]:
				n.sees[i][j] = false
				n = m.act(t, n, i) // it acts on what it wrongly believes
			default:
				continue
			}
			n = m.complete(t, n)
			for a := range modelAddrs {
				for k := range modelNodes {
					if s.up[k] && !s.goes(k) && m.plan(&s, k).answers[a] && !m.plan(&n, k).answers[a] {
						t.Fatalf("address %d moved without a cause (%d, %d)\nfrom %+v\nto %+v", a, i, j, s, n)
					}
				}
			}
		}
	}
}

// checkAnswered: what is polite leaves no question unanswered. After every step
// that only drains and polite ends led to, somebody answers for every address
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
		n.drain(i)
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
	m := newModel(true, faults)
	m.drains = true
	var begin modelState
	for i := range modelNodes {
		begin.start(i)
	}
	begin = m.complete(t, begin)
	seen := map[modelState]struct{}{begin: {}}
	for queue := []modelState{begin}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		for _, n := range append(m.free(t, s), m.polite(s)...) {
			if _, known := seen[n]; !known {
				m.checkAnswered(t, s, n)
				seen[n] = struct{}{}
				queue = append(queue, n)
			}
		}
	}
	t.Logf("%d states, %d decisions", len(seen), len(m.plans))
}

// Two faults are explored in a second. With three (half a million states, some
// five seconds more) QUAYSIDE_SOAK asks for the long length.
func TestProtocolExhaustively(t *testing.T) {
	faults := 2
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		faults = 3
	}
	for name, lively := range map[string]bool{"hosts speak on every side": true, "nobody but the speakers": false} {
		t.Run(name, func(t *testing.T) {
			m := newModel(lively, faults)
			m.drains = true
			var begin modelState
			for i := range modelNodes {
				begin.start(i)
			}
			seen := map[modelState]struct{}{begin: {}}
			quiet := map[modelState]struct{}{}
			for queue := []modelState{begin}; len(queue) > 0; queue = queue[1:] {
				s := queue[0]
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
				for _, n := range append(m.free(t, s), m.faulty(s)...) {
					if _, known := seen[n]; !known {
						seen[n] = struct{}{}
						queue = append(queue, n)
					}
				}
			}
			t.Logf("%d states, %d of them quiet, %d decisions", len(seen), len(quiet), len(m.plans))
		})
	}
}
