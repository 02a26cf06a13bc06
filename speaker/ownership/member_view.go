package ownership

import (
	"maps"
	"net/netip"
	"reflect"

	"quayside.io/speaker/announce"
)

// memberView is what is known of all speakers: the content of gossip, and this node's own
// facts and claims. In a large fleet that is much, so it is rebuilt only when some of it
// has changed, and a plan that gets the same maps as the last one does not read them again.
// Where this node has nothing to add, a map is that of the members. None is modified.
type memberView struct {
	heard Members // the maps that it was built from
	self  announce.Facts
	own   map[netip.Addr]int64

	alive    map[string]struct{}
	claims   map[netip.Addr]announce.Claim
	facts    map[string]announce.Facts
	macs     map[string]string   // the node of each MAC of a speaker, this one's included
	speakers map[string]struct{} // the same MACs
	reporter bool                // see isWitness
}

// refreshView updates m.memberView.
func (m *Machine) refreshView() {
	h, heard := &m.memberView, m.world.Members
	if h.alive != nil && announce.SameMap(h.heard.Alive, heard.Alive) && announce.SameMap(h.heard.Doubted, heard.Doubted) &&
		maps.Equal(h.heard.Missing, heard.Missing) && announce.SameMap(h.heard.Claims, heard.Claims) && announce.SameMap(h.heard.Facts, heard.Facts) &&
		maps.Equal(h.own, m.holdings.claims) && reflect.DeepEqual(h.self, m.self) {
		if !m.made.OnlyEndpoints(m.world.Cluster) {
			m.learnMACs()
		}
		return
	}
	*h = memberView{
		heard: *heard, self: m.self, own: maps.Clone(m.holdings.claims),
		alive: livingIn(heard, m.opts.Node), claims: heard.Claims, facts: heard.Facts,
	}
	h.reporter = m.isReporter()
	if known, heard := h.facts[m.opts.Node]; !heard || !reflect.DeepEqual(known, m.self) {
		h.facts = copyOf(h.facts)
		h.facts[m.opts.Node] = m.self
	}
	copied := false
	for a, epoch := range h.own {
		c := announce.Claim{Epoch: epoch, Node: m.opts.Node}
		if best, ok := h.claims[a]; ok && (best == c || best.Beats(c)) {
			continue
		}
		if !copied {
			h.claims, copied = copyOf(h.claims), true
		}
		h.claims[a] = c
	}
	m.learnMACs()
}

// learnMACs updates macs and speakers.
func (m *Machine) learnMACs() {
	h := &m.memberView
	h.macs = announce.MACs(m.world.Cluster, announce.View{Facts: h.facts})
	h.speakers = make(map[string]struct{}, len(h.macs))
	for mac := range h.macs {
		h.speakers[mac] = struct{}{}
	}
}

// livingIn are the members that are alive and not doubted, including this one.
func livingIn(heard *Members, me string) map[string]struct{} {
	if _, lives := heard.Alive[me]; lives && len(heard.Doubted) == 0 {
		return heard.Alive
	}
	alive := make(map[string]struct{}, len(heard.Alive)+1)
	for name := range heard.Alive {
		if _, doubted := heard.Doubted[name]; !doubted {
			alive[name] = struct{}{}
		}
	}
	alive[me] = struct{}{}
	return alive
}

// copyOf is a copy with room for one more.
func copyOf[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	return out
}
