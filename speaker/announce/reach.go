package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
)

// Reach finds the BGP peers to which each node announces an address, to explain a path.
// A SpeakerStatus does not list them, since it would list every address on every node.
type Reach struct {
	k     *compiler
	known map[string]map[string][]string // by the advertisements, family and nodes
}

// ReachOf reads a cluster as a speaker would. It is for one goroutine at a time.
func ReachOf(c *snapshot.Cluster, view View, now time.Time, opts Options) *Reach {
	r := &Reach{k: newCompiler(c, "", view, now, opts), known: map[string]map[string][]string{}}
	r.k.read()
	r.k.readPrefixes()
	r.k.peers = r.k.readPeers()
	return r
}

// Of returns the names of the BGPPeers to which each node announces a, by node. It must
// not be modified.
func (r *Reach) Of(a netip.Addr) map[string][]string {
	i, exists := r.k.holdingOf(a)
	if !exists {
		return nil
	}
	h := r.k.holdings[i]
	local := h.users[0].local
	adverts := slices.DeleteFunc(slices.Clone(h.bgp), func(a int) bool { return !h.isFor(a) })
	id := fmt.Sprint(adverts, a.Is4(), local == nil, local)
	told, known := r.known[id]
	if !known {
		told = map[string][]string{}
		for i := range r.k.nodes {
			if peers := r.from(i, h, adverts); len(peers) > 0 {
				told[r.k.nodes[i].name] = peers
			}
		}
		r.known[id] = told
	}
	return told
}

// from are the peers to which node i announces h, by adverts.
func (r *Reach) from(i int, h *holding, adverts []int) (names []string) {
	n := &r.k.nodes[i]
	if n.barredFromBGP() != "" || n.leaving() || !h.users[0].isAt(i) {
		return nil
	}
	for j := range r.k.peers {
		p := &r.k.peers[j]
		carries := h.addr.Is4() && p.IPv4 || h.addr.Is6() && p.IPv6
		if carries && p.selects(n) && slices.ContainsFunc(adverts, func(a int) bool {
			return r.k.bgp[a].reaches(p) && anyMatches(r.k.bgp[a].nodes, n.labels)
		}) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Awaits reports whether routers are told nothing of a because none of its Services has an
// endpoint.
func (r *Reach) Awaits(a netip.Addr) bool {
	i, exists := r.k.holdingOf(a)
	return exists && len(r.k.holdings[i].bgp) > 0 && !slices.ContainsFunc(r.k.holdings[i].users, func(u user) bool {
		return len(u.local) > 0 || u.local == nil && !u.idle
	})
}
