package announce

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// siblings identifies the addresses of one family of one Service. They are placed on
// different nodes, since two on the same node would fail together.
type siblings struct {
	service snapshot.Key
	is6     bool
}

// loads is how many addresses each node holds so far.
type loads struct {
	load     []int                    // addresses per node
	capacity int                      // the bound for new ones, per node
	grouped  bool                     // see scoreOf
	siblings map[siblings]map[int]int // of those asked for, how many each node has
}

// newLoads is for nodes that hold nothing yet, of which fit share the addresses. The bound
// is 5/4 of the fair share: bounded loads remove the worst skew of rendezvous hashing and
// keep its property that a choice depends on few inputs.
func newLoads(nodes, fit, addresses int) *loads {
	fit = max(1, fit)
	return &loads{
		load: make([]int, nodes), capacity: max(1, (addresses*5+fit*4-1)/(fit*4)),
		siblings: map[siblings]map[int]int{}, grouped: isGrouped(fit, addresses),
	}
}

// groups is into how many parts the addresses of a node fall when it has to part with them.
const groups = 8

// isGrouped reports whether so many nodes have more than groups addresses each.
func isGrouped(fit, addresses int) bool { return fit > groups && addresses > fit*groups }

// scoreOf is what rendezvous hashing ranks nodes by for e. Where each node has many
// addresses, those that have the same owner fall into few groups, and each group has one
// order of next owners: else a hundred nodes would take over, write and tell what one node
// had, and watch it before that. Whom a group finds full it passes by, so loads stay even.
func scoreOf(e *address, grouped bool) uint64 {
	score := hashAddr(e.addr)
	if grouped && e.claim.Node != "" {
		return mix(hashString(e.claim.Node) + score%groups)
	}
	return score
}

// countKept counts the addresses that each node keeps.
func (k *compiler) countKept() {
	switch {
	case k.before == nil:
		k.kept = make([]int, len(k.nodes))
	case len(k.changed) > 0:
		k.kept = slices.Clone(k.kept) // which plans share
	}
	for _, i := range k.changed {
		if k.before != nil && k.before[i].keeper >= 0 {
			k.kept[k.before[i].keeper]--
		}
		if keeper := k.addresses[i].keeper; keeper >= 0 {
			k.kept[keeper]++
		}
	}
}

// currentLoads counts the addresses that nodes keep and those that they have been given.
func (k *compiler) currentLoads() *loads {
	if k.loads == nil {
		k.loads = newLoads(len(k.nodes), k.fit, len(k.addresses))
		copy(k.loads.load, k.kept)
	}
	return k.loads
}

// add counts e, which node i has been given.
func (k *compiler) add(e *address, i int) {
	k.currentLoads().load[i]++
	if held := k.siblingsOf(e); held != nil {
		held[i]++
	}
}

// siblingsOf counts the siblings of e by node so far; nil: it has none. It goes through all
// of them once: a Service may have very many addresses.
func (k *compiler) siblingsOf(e *address) map[int]int {
	svc := e.users[0].svc
	if !mayHaveSeveral(svc) {
		return nil
	}
	counts, s := k.currentLoads().siblings, siblings{snapshot.KeyOf(svc), e.addr.Is6()}
	held, known := counts[s]
	if known {
		return held
	}
	if hasSeveral(svc, s.is6) {
		held = map[int]int{}
		all := slices.Concat(loadbalancer.Addresses(svc), loadbalancer.Listed(svc))
		slices.SortFunc(all, netip.Addr.Compare)
		for _, a := range slices.Compact(all) {
			at, exists := find(k.addresses, a)
			if !exists || a.Is6() != s.is6 {
				continue
			}
			if o := k.addresses[at]; o.keeper >= 0 && snapshot.KeyOf(o.users[0].svc) == s.service {
				held[o.keeper]++
			}
		}
	}
	counts[s] = held
	return held
}

func mayHaveSeveral(svc *corev1.Service) bool {
	return len(svc.Status.LoadBalancer.Ingress)+len(svc.Spec.ExternalIPs) > 1
}

func hasSeveral(svc *corev1.Service, is6 bool) bool {
	n := 0
	for _, a := range slices.Concat(loadbalancer.Addresses(svc), loadbalancer.Listed(svc)) {
		if a.Is6() == is6 {
			n++
		}
	}
	return n > 1
}

// place chooses among candidates: the most preferred, then those with the fewest siblings,
// then those below the load bound, then by rendezvous hashing.
//
// Addresses are placed in a fixed order; each placement counts the claims and the earlier
// placements. So while a plan turns into claims one by one, every node that recomputes it
// from a mix of claims and free addresses finds the same owner for the rest: the claims of
// later addresses can only fill a node up to the bound that the plan kept.
func (k *compiler) place(e *address, candidates []int) int {
	loads := k.currentLoads()
	held := k.siblingsOf(e)
	score := scoreOf(e, loads.grouped)
	best, bestRank := -1, rank{}
	for _, i := range candidates {
		r := k.rankOf(e, i, loads, held, score)
		if best < 0 || r.before(bestRank) {
			best, bestRank = i, r
		}
	}
	return best
}

// rankOf is the rank of node i for e; held are the siblings of e, score that of e.
func (k *compiler) rankOf(e *address, i int, loads *loads, held map[int]int, score uint64) rank {
	return rank{weight: k.weight(e, i), siblings: held[i], level: loads.load[i] / loads.capacity, score: mix(k.nodes[i].hash ^ score)}
}

type rank struct {
	weight   int32
	siblings int
	level    int
	score    uint64
}

func (r rank) before(o rank) bool {
	return cmp.Or(
		cmp.Compare(o.weight, r.weight),
		cmp.Compare(r.siblings, o.siblings),
		cmp.Compare(r.level, o.level),
		cmp.Compare(o.score, r.score),
	) < 0
}

// weight is the sum of the preferences of e's advertisements for node i.
func (k *compiler) weight(e *address, i int) int32 {
	var w int32
	for _, u := range e.users {
		for _, a := range u.adverts {
			w += k.adverts[a].weight[i]
		}
	}
	return w
}

// hashString is FNV-1a and mix. It must never change: every speaker, of any version, must
// compute the same.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

func hashAddr(a netip.Addr) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range a.As16() {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return mix(h)
}

// mix is the finalizer of splitmix64: FNV alone leaves the high bits of similar
// names alike.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
