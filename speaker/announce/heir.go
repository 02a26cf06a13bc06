package announce

import (
	"cmp"
	"maps"
	"slices"
)

// MaxWatch is how many holders one node watches at most.
const MaxWatch = 8

// heirs is how many nodes watch the holder of an address, its next owner first: two may
// die at once, and of several addresses that are placed each changes who is next.
const heirs = 2

// shares are what each node holds, by which places are given to whoever follows. Plans
// that differ by a few endpoints share them.
type shares struct {
	load     []int // addresses kept by each node
	capacity int   // as a burden's, with one node less
}

// inherit notes of what this node is among the next to have, should the holder die. Place
// would know exactly, having placed all that dies with a holder; seen one by one, few
// nodes need be looked at for each address. Those given are judged, all others are noted.
func (k *compiler) inherit(judged []*address) {
	me, known := k.nodeIndex[k.me]
	if !known || len(judged) == 0 {
		return
	}
	if k.shares == nil {
		fit := len(k.fittest(slices.Clone(k.usable))) - 1
		k.shares = &shares{load: make([]int, len(k.nodes)), capacity: newBurden(0, fit, len(k.addresses)).capacity}
		for _, e := range k.addresses {
			if e.keeper >= 0 {
				k.shares.load[e.keeper]++
			}
		}
	}
	for _, e := range judged {
		e.heir = e.claim.Node != "" && e.claim.Node != k.me && k.isHeir(e, me)
	}
}

// isHeir reports whether node me is among the next for e.
func (k *compiler) isHeir(e *address, me int) bool {
	addr := hashAddr(e.addr)
	mine := k.turn(e, me, addr)
	if mine.served = k.serves(e, me); mine.served == 0 {
		return false
	}
	mine.deaf = k.isDeaf(e, me)
	before := 0
	for _, i := range k.eligible(e) {
		if i == me || k.nodes[i].name == e.claim.Node {
			continue
		}
		other := k.turn(e, i, addr)
		if other.served = len(e.users); !other.before(mine) {
			continue // at best: what it serves takes longer to find out
		}
		other.served, other.deaf = k.serves(e, i), k.isDeaf(e, i)
		if other.before(mine) {
			if before++; before == heirs {
				return false
			}
		}
	}
	return true
}

// turn is what decides when it is a node's turn to have an address; see candidates and
// place.
type turn struct {
	served int
	deaf   bool
	unfit  unfitness
	rank
}

// turn is that of node i, but for what it serves and whether it is heard.
func (k *compiler) turn(e *address, i int, addr uint64) turn {
	return turn{
		unfit: k.nodes[i].unfit,
		rank:  rank{weight: k.weight(e, i), level: k.shares.load[i] / k.shares.capacity, score: mix(k.nodes[i].hash ^ addr)},
	}
}

func (t turn) before(o turn) bool {
	switch {
	case t.served != o.served:
		return t.served > o.served
	case t.deaf != o.deaf:
		return o.deaf
	case t.unfit != o.unfit:
		return t.unfit < o.unfit
	}
	return t.rank.before(o.rank)
}

// watch are the holders of what this node is an heir to, of which the plan before says
// all unless something has been judged since.
func (k *compiler) watch(judged []*address) []string {
	if k.resumed && len(judged) == 0 {
		return k.watched
	}
	inherits := map[string]int{}
	for _, e := range k.addresses {
		if e.heir {
			inherits[e.claim.Node]++
		}
	}
	if k.watched = nil; len(inherits) == 0 {
		return nil
	}
	// Of holders of the same, each node watches others.
	mine := hashString(k.me)
	out := slices.SortedFunc(maps.Keys(inherits), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(inherits[b], inherits[a]),
			cmp.Compare(mix(hashString(a)^mine), mix(hashString(b)^mine)),
		)
	})
	k.watched = out[:min(len(out), MaxWatch)]
	return k.watched
}
