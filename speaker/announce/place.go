package announce

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// siblings are the addresses of one family of one Service: they avoid each
// other, since a second address on the same node survives nothing more.
type siblings struct {
	service snapshot.Key
	is6     bool
}

// burden is what the nodes hold so far.
type burden struct {
	load     []int                    // addresses per node
	capacity int                      // how many a node may be chosen for
	siblings map[siblings]map[int]int // how many each node holds; nil: there is one address only
}

// newBurden is that of nodes that hold nothing yet; fit of them share the
// addresses. A node may be chosen for 5/4 of the fair share. Bounding the load
// this way keeps what makes rendezvous hashing calm (a choice depends on little)
// and takes away its worst skew.
func newBurden(nodes, fit, addresses int) *burden {
	fit = max(1, fit)
	return &burden{
		load: make([]int, nodes), capacity: max(1, (addresses*5+fit*4-1)/(fit*4)),
		siblings: map[siblings]map[int]int{},
	}
}

// burdened is what the nodes hold: what they keep, and what they have been given.
func (k *compiler) burdened() *burden {
	if k.burden == nil {
		k.burden = newBurden(len(k.nodes), len(k.fittest(slices.Clone(k.usable))), len(k.addresses))
		for _, e := range k.addresses {
			if e.keeper >= 0 {
				k.burden.add(e, e.keeper)
			}
		}
	}
	return k.burden
}

func (b *burden) add(e *address, i int) {
	b.load[i]++
	if held := b.siblingsOf(e); held != nil {
		held[i]++
	}
}

// siblingsOf counts on which nodes the siblings of e are so far; nil: it has
// none. Whether it has is found out once for all of them: a Service may have as
// many addresses as fit an object.
func (b *burden) siblingsOf(e *address) map[int]int {
	svc := e.users[0].svc
	s := siblings{snapshot.KeyOf(svc), e.addr.Is6()}
	held, known := b.siblings[s]
	if !known {
		if hasSeveral(svc, s.is6) {
			held = map[int]int{}
		}
		b.siblings[s] = held
	}
	return held
}

func hasSeveral(svc *corev1.Service, is6 bool) bool {
	if len(svc.Status.LoadBalancer.Ingress)+len(svc.Spec.ExternalIPs) < 2 {
		return false
	}
	n := 0
	for _, a := range slices.Concat(loadbalancer.Addresses(svc), loadbalancer.Listed(svc)) {
		if a.Is6() == is6 {
			n++
		}
	}
	return n > 1
}

// place chooses among candidates: the most preferred, then those that hold no
// sibling, then those below their bound, then by rendezvous.
//
// Addresses are placed one after the other in a fixed order, each seeing the
// load of the claims and of those placed before. While a plan turns into
// claims piece by piece, every node that recomputes it from a mix of claims
// and free addresses finds the same owner for the rest: the claims of later
// addresses can only fill a node up to the bound that the plan kept.
func (k *compiler) place(e *address, candidates []int) int {
	burden := k.burdened()
	held := burden.siblingsOf(e)
	addr := hashAddr(e.addr)
	best, bestRank := -1, rank{}
	for _, i := range candidates {
		r := rank{weight: k.weight(e, i), siblings: held[i], level: burden.load[i] / burden.capacity, score: mix(k.nodes[i].hash ^ addr)}
		if best < 0 || r.before(bestRank) {
			best, bestRank = i, r
		}
	}
	return best
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

// weight sums what the advertisements of e say for node i.
func (k *compiler) weight(e *address, i int) int32 {
	var w int32
	for _, u := range e.users {
		for _, a := range u.adverts {
			w += k.adverts[a].weight[i]
		}
	}
	return w
}

// hashString is FNV-1a: every speaker must compute the same, in every version.
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
