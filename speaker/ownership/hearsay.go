package ownership

import (
	"maps"
	"net/netip"
	"reflect"

	"quayside.io/speaker/announce"
)

// hearsay is what is known of all speakers: what the members know, and what this node
// knows of itself. In a large fleet that is much, so it is put together again only when
// something of it has changed, and a plan that is made of the same maps as the one before
// reads none of it again.
type hearsay struct {
	heard Members // the maps that it was made of
	self  announce.Facts
	own   map[netip.Addr]int64

	alive    map[string]struct{}
	claims   map[netip.Addr]announce.Claim
	facts    map[string]announce.Facts
	macs     map[string]string   // of all speakers, this one's included: whose they are
	speakers map[string]struct{} // the same MACs
	witness  bool                // see isWitness
}

// hear sees to it that m.hearsay is of this moment.
func (m *Machine) hear() {
	h, heard := &m.hearsay, m.world.Members
	if h.alive != nil && announce.SameMap(h.heard.Alive, heard.Alive) && announce.SameMap(h.heard.Doubted, heard.Doubted) &&
		announce.SameMap(h.heard.Claims, heard.Claims) && announce.SameMap(h.heard.Facts, heard.Facts) &&
		maps.Equal(h.own, m.holdings.claims) && reflect.DeepEqual(h.self, m.self) {
		if !m.made.OnlyEndpoints(m.world.Cluster) {
			m.learnMACs()
		}
		return
	}
	*h = hearsay{
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
	h.witness = m.isWitness()
	h.facts[m.opts.Node] = m.self
	for a, epoch := range h.own {
		c := announce.Claim{Epoch: epoch, Node: m.opts.Node}
		if best, ok := h.claims[a]; !ok || !best.Beats(c) {
			h.claims[a] = c
		}
	}
	m.learnMACs()
}

// learnMACs reads whose MACs are whose.
func (m *Machine) learnMACs() {
	h := &m.hearsay
	h.macs = announce.MACs(m.world.Cluster, announce.View{Facts: h.facts})
	h.speakers = make(map[string]struct{}, len(h.macs))
	for mac := range h.macs {
		h.speakers[mac] = struct{}{}
	}
}
