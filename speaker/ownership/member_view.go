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
		announce.SameMap(h.heard.Claims, heard.Claims) && announce.SameMap(h.heard.Facts, heard.Facts) &&
		maps.Equal(h.own, m.holdings.claims) && reflect.DeepEqual(h.self, m.self) {
		if !m.made.OnlyEndpoints(m.world.Cluster) {
			m.learnMACs()
		}
		return
	}
	*h = memberView{
		heard: *heard, self: m.self, own: maps.Clone(m.holdings.claims),
		alive:  make(map[string]struct{}, len(heard.Alive)+1),
		claims: make(map[netip.Addr]announce.Claim, len(heard.Claims)+len(m.holdings.claims)),
		facts:  make(map[string]announce.Facts, len(heard.Facts)+1),
	}
	for name := range heard.Alive {
		if _, doubted := heard.Doubted[name]; !doubted {
			h.alive[name] = struct{}{}
		}
	}
	maps.Copy(h.claims, heard.Claims)
	maps.Copy(h.facts, heard.Facts)
	h.alive[m.opts.Node] = struct{}{}
	h.reporter = m.isReporter()
	h.facts[m.opts.Node] = m.self
	for a, epoch := range h.own {
		c := announce.Claim{Epoch: epoch, Node: m.opts.Node}
		if best, ok := h.claims[a]; !ok || !best.Beats(c) {
			h.claims[a] = c
		}
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
