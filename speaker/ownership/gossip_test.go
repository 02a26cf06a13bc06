package ownership

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/due"
)

// simGossip is what one speaker knows by gossip. As with memberlist, a member
// lives for whoever reaches it by way of others; what is said reaches whom the
// speaker can, and all who meet again compare what they know.
type simGossip struct {
	*simNode
	by      *simSpeaker
	alive   map[string]time.Time          // since when; this node not included
	stopped map[string]bool               // missed while they got no processor: they hear of that and refute it
	pending map[string]*due.Entry[func()] // by member: a change of reach that is being noticed
	watch   []string                      // whom it asks itself
	doubted map[string]struct{}           // those of watch that nobody reaches
	doubts  map[string]*due.Entry[func()] // by member: a doubt that comes or ends
	claims  map[netip.Addr]announce.Claim
	facts   map[string]saying
	rounds  map[netip.Addr]int64
	settled bool
	cached  *Members
}

// saying is what a node said of itself, and when.
type saying struct {
	facts announce.Facts
	at    time.Time
}

func newSimGossip(n *simNode) *simGossip {
	g := &simGossip{
		simNode: n, by: n.speaker, alive: map[string]time.Time{}, stopped: map[string]bool{}, pending: map[string]*due.Entry[func()]{},
		doubted: map[string]struct{}{}, doubts: map[string]*due.Entry[func()]{},
		claims: map[netip.Addr]announce.Claim{}, facts: map[string]saying{}, rounds: map[netip.Addr]int64{},
	}
	n.in(0, n.changed)
	// The grace, or all are there; see settle.
	n.in(3*time.Second, func() { g.settled = true; g.touch() })
	return g
}

// runs reports whether the speaker still does.
func (g *simGossip) runs() bool { return g.speaker == g.by }

// touch lets the machine see what is new.
func (g *simGossip) touch() {
	if g.cached = nil; g.runs() {
		g.happen()
	}
}

// view is what the machine sees.
func (g *simGossip) view() *Members {
	if g.cached != nil {
		return g.cached
	}
	v := &Members{
		Alive: map[string]struct{}{g.name: {}}, Claims: maps.Clone(g.claims), Facts: map[string]announce.Facts{}, Rounds: maps.Clone(g.rounds),
		LastSeen: maps.Clone(g.alive), Missing: map[string]string{}, Settled: g.settled,
		Doubted: maps.Clone(g.doubted),
	}
	for name := range g.alive {
		v.Alive[name] = struct{}{}
	}
	for name, s := range g.facts {
		v.Facts[name] = s.facts
	}
	for _, n := range g.nodes {
		if _, alive := v.Alive[n.name]; !alive {
			v.Missing[n.name] = "it does not answer"
		}
	}
	g.cached = v
	return v
}

// linked reports whether two speakers can exchange packets.
func linked(a, b *simNode) bool {
	return a.speaker != nil && b.speaker != nil && !a.paused && !b.paused && !a.gossipCut && !b.gossipCut && a.hears(b)
}

// reach are the members that g reaches, if need be by way of others.
func (g *simGossip) reach() map[string]bool {
	out := map[string]bool{g.name: true}
	for queue := []*simNode{g.simNode}; len(queue) > 0; queue = queue[1:] {
		for _, n := range g.nodes {
			if !out[n.name] && linked(queue[0], n) {
				out[n.name] = true
				queue = append(queue, n)
			}
		}
	}
	return out
}

// feel begins to notice who is in reach now.
func (g *simGossip) feel() {
	reach := g.reach()
	for _, other := range g.nodes {
		_, alive := g.alive[other.name]
		if other == g.simNode || alive == reach[other.name] {
			g.cancel(g.pending[other.name])
			delete(g.pending, other.name)
			continue
		}
		if g.pending[other.name] != nil {
			continue
		}
		delay := g.about(noticeDelay)
		switch {
		case !alive && g.stopped[other.name]:
			delay = g.about(gossipDelay)
		case !alive:
			delay = g.about(joinDelay)
		}
		g.pending[other.name] = g.in(delay, func() {
			if delete(g.pending, other.name); g.runs() && !g.paused {
				g.notice(other)
			}
		})
	}
	g.ask()
}

// ask begins to doubt those that are watched and that neither this member nor another
// reaches any more, and ends the doubts about others.
func (g *simGossip) ask() {
	reach := g.reach()
	for _, other := range g.nodes {
		_, doubted := g.doubted[other.name]
		_, alive := g.alive[other.name]
		doubtful := slices.Contains(g.watch, other.name) && alive && !reach[other.name]
		switch {
		case doubted == doubtful:
			g.cancel(g.doubts[other.name])
			delete(g.doubts, other.name)
		case g.doubts[other.name] == nil:
			g.doubts[other.name] = g.in(g.about(doubtDelay), func() {
				if delete(g.doubts, other.name); g.runs() && !g.paused {
					g.doubt(other.name, doubtful)
				}
			})
		}
	}
}

func (g *simGossip) doubt(name string, doubtful bool) {
	if delete(g.doubted, name); doubtful {
		g.doubted[name] = struct{}{}
		g.note("%s doubts %s", g.name, name)
	}
	g.touch()
}

// notice takes in that another is in reach, or is no more.
func (g *simGossip) notice(other *simNode) {
	if _, alive := g.alive[other.name]; alive {
		delete(g.alive, other.name)
		delete(g.doubted, other.name)
		g.stopped[other.name] = other.paused || g.paused
		g.note("%s misses %s", g.name, other.name)
	} else if g.reach()[other.name] {
		g.alive[other.name] = g.now
		g.note("%s meets %s", g.name, other.name)
		for _, pair := range [][2]*simGossip{{g, other.speaker.gossip}, {other.speaker.gossip, g}} {
			pair[0].compare(pair[1])
		}
	}
	if len(g.alive) == len(g.nodes)-1 {
		g.settled = true
	}
	g.touch()
}

// compare tells another all that g knows.
func (g *simGossip) compare(other *simGossip) {
	claims, facts := maps.Clone(g.claims), maps.Clone(g.facts)
	g.in(g.about(gossipDelay), func() { other.take(claims, facts) })
}

// declare takes in what the machine wants others to know.
func (g *simGossip) declare(d *Declaration) {
	if !slices.Equal(g.watch, d.Watch) {
		g.watch = d.Watch
		maps.DeleteFunc(g.doubted, func(name string, _ struct{}) bool { return !slices.Contains(g.watch, name) })
		g.cached = nil
		g.ask()
	}
	fresh := map[netip.Addr]announce.Claim{}
	for _, a := range sorted(d.Claims) {
		c := announce.Claim{Epoch: d.Claims[a], Node: g.name}
		if old, ok := g.claims[a]; !ok || c.Beats(old) {
			g.claims[a], fresh[a] = c, c
		}
	}
	facts := map[string]saying{}
	if old, known := g.facts[g.name]; !known || !reflect.DeepEqual(old.facts, d.Facts) {
		facts[g.name] = saying{facts: d.Facts, at: g.now}
		g.facts[g.name] = facts[g.name]
	}
	if len(fresh)+len(facts) > 0 {
		g.cached = nil
		g.spread(fresh, facts)
	}
}

// spread tells all that are in reach.
func (g *simGossip) spread(claims map[netip.Addr]announce.Claim, facts map[string]saying) {
	reach := g.reach()
	for _, n := range g.nodes {
		if n != g.simNode && reach[n.name] {
			to := n.speaker.gossip
			g.in(g.about(gossipDelay), func() { to.take(claims, facts) })
		}
	}
}

// take takes in what another knows.
func (g *simGossip) take(claims map[netip.Addr]announce.Claim, facts map[string]saying) {
	if !g.runs() || g.gossipCut || !g.onNet() {
		return
	}
	mine, news := map[netip.Addr]announce.Claim{}, false
	for _, a := range sorted(claims) {
		c := claims[a]
		old, known := g.claims[a]
		_, alive := g.alive[c.Node]
		switch {
		case !known || c.Beats(old):
			g.claims[a], news = c, true
		case old.Node == g.name && c.Node != g.name && alive && old != c:
			g.rounds[a]++
			mine[a], news = old, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if old, known := g.facts[name]; name != g.name && (!known || facts[name].at.After(old.at)) {
			g.facts[name], news = facts[name], true
		}
	}
	if len(mine) > 0 {
		g.spread(mine, nil)
	}
	if news {
		g.touch()
	}
}

// leave says goodbye: the others need not suspect anything.
func (g *simGossip) leave() {
	reach := g.reach()
	for _, n := range g.nodes {
		if n == g.simNode || !reach[n.name] {
			continue
		}
		to := n.speaker.gossip
		g.in(g.about(gossipDelay), func() {
			if _, alive := to.alive[g.name]; to.runs() && alive && g.speaker == nil {
				delete(to.alive, g.name)
				g.cancel(to.pending[g.name])
				delete(to.pending, g.name)
				to.note("%s hears that %s has left", to.name, g.name)
				to.touch()
			}
		})
	}
	g.in(0, g.changed)
}
