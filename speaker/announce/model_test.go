package announce

import (
	"fmt"
	"net/netip"
	"testing"

	"quayside.io/cluster/snapshot"
)

// The protocol as a model: three nodes, two addresses, every interleaving of
// what can happen with a bounded number of faults. The decisions are not
// modelled: they are Compile's.
//
// A fault is a crash, a start, a split of the LAN, its healing, a false
// suspicion, a polite end, or that a node says something else of itself: that it
// is drained, or that its kube-proxy is behind. Free of charge are the truths that
// get through sooner or later: a member that is really out of reach is missed,
// one within reach is met, gossip arrives, a node acts on what it knows.

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
	// heard is how many of the words of j about itself i knows of, the last one by
	// their number; see model.words.
	heard  [modelNodes][modelNodes]uint8
	said   [modelNodes]uint8 // the truth, which outlives a speaker
	split  int               // 0: none; i+1: node i is alone on its side
	faults int
}

// model holds what does not change, and remembers decisions.
type model struct {
	cluster *snapshot.Cluster
	names   [modelNodes]string
	addrs   [modelAddrs]netip.Addr
	faults  int     // how many may happen
	words   []Facts // what a node says of itself, one after the other and again
	lively  bool    // hosts on every side of the LAN speak, so that no node is deaf
	plans   map[planKey]modelPlan
}

type planKey struct {
	me      int
	sees    [modelNodes]bool
	know    [modelAddrs]Claim
	leaving [modelNodes]bool
	heard   [modelNodes]uint8
}

type modelPlan struct {
	answers  [modelAddrs]bool
	handOver [modelAddrs]bool
	take     [modelAddrs]bool
	claim    [modelAddrs]Claim
	planned  [modelAddrs]bool // the owner lets go: no question to the LAN
}

// words are what nodes may say of themselves in the course of their lives.
func words() map[string][]Facts {
	return map[string][]Facts{
		"drained":            {{}, {Drained: true}},
		"behind":             {{}, {Behind: true}},
		"behind and drained": {{}, {Behind: true}, {Behind: true, Drained: true}, {Drained: true}},
	}
}

func newModel(lively bool, words []Facts, faults int) *model {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	m := &model{lively: lively, words: words, faults: faults, plans: map[planKey]modelPlan{}}
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
	for j, count := range s.heard[i] {
		key.heard[j] = count % uint8(len(m.words))
	}
	if p, ok := m.plans[key]; ok {
		return p
	}
	v := View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}
	for j, name := range m.names {
		if s.sees[i][j] || i == j {
			v.Alive[name] = struct{}{}
		}
		said := m.words[key.heard[j]]
		said.Leaving = s.leaving[i][j]
		v.Facts[name] = said
	}
	for a, c := range s.know[i] {
		if c.Node != "" {
			v.Claims[m.addrs[a]] = c
		}
	}
	plan := Compile(m.cluster, m.names[i], v, epoch0(), Options{})
	var p modelPlan
	for a, addr := range m.addrs {
		answer, ok := plan.L2.Answers[addr]
		p.answers[a], p.handOver[a] = ok, answer.HandOver != ""
		for _, t := range plan.L2.Take {
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
		s.heard[j][k] = max(s.heard[j][k], s.heard[i][k])
	}
}

// meet lets i and j see each other and compare notes, as a join does.
func (s *modelState) meet(i, j int) {
	s.sees[i][j], s.sees[j][i] = true, true
	s.hear(i, j)
	s.hear(j, i)
}

// act carries out the plan of i as the component does.
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
	s.heard[i] = [modelNodes]uint8{}
}

// say gives i its next word.
func (s *modelState) say(i int) {
	s.said[i]++
	if s.up[i] {
		s.heard[i][i] = s.said[i]
	}
}

// goes reports whether i has a cause to hand its addresses over.
func (m *model) goes(s *modelState, i int) bool {
	return s.leaving[i][i] || m.words[int(s.said[i])%len(m.words)].Drained
}

// start boots i: it acts only after it has met whom it reaches.
func (s *modelState) start(i int) {
	s.up[i] = true
	s.heard[i][i] = s.said[i]
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
		add(func(n *modelState) { n.say(i) })
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
