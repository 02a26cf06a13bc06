package announce

import (
	"cmp"
	"maps"
	"slices"
)

// maxWatch is how many nodes one node watches at most.
const maxWatch = 8

// successors is how many nodes watch the holder of an address, its next owner first: two
// nodes may die at once, and of several addresses that are placed each one changes who is
// next.
const successors = 2

// shares is how many addresses each node holds, from which the next owners are estimated.
// Plans that differ by a few endpoints share it.
type shares struct {
	load     []int // addresses kept by each node
	capacity int   // as in loads, with one node less
	grouped  bool  // as in loads
}

// markSuccessions marks the addresses that this node would take over if their holder died.
// That is an estimate for each address by itself: the exact answer would take a placement
// of all addresses of each holder. It returns those that are marked anew, by index: the given
// ones, and all where the shares are others than those of the last plan.
func (k *compiler) markSuccessions(judged []int) []int {
	me, known := k.nodeIndex[k.me]
	if !known || len(judged) == 0 {
		return judged
	}
	if before := k.shares; before == nil || k.reshared {
		if k.shares = k.countShares(); before != nil && !before.ranksAs(k.shares) {
			judged = k.remark()
		}
	}
	for _, i := range judged {
		e := k.addresses[i]
		e.successor = e.claim.Node != "" && e.claim.Node != k.me && k.isSuccessor(e, me)
	}
	return judged
}

// countShares are the shares of now.
func (k *compiler) countShares() *shares {
	bound := newLoads(0, k.fit-1, len(k.addresses))
	return &shares{load: k.kept, capacity: bound.capacity, grouped: bound.grouped}
}

// ranksAs reports whether nodes follow each other in the same order by either.
func (s *shares) ranksAs(o *shares) bool {
	if s.capacity != o.capacity || s.grouped != o.grouped {
		return false
	}
	for i, load := range s.load {
		if load/s.capacity != o.load[i]/o.capacity {
			return false
		}
	}
	return true
}

// remark returns all addresses, which become copies where the last plan has them.
func (k *compiler) remark() []int {
	for i, e := range k.addresses {
		if e == k.before[i] {
			e := *e
			k.replace(i, &e)
		}
	}
	return indices(len(k.addresses))
}

// isSuccessor reports whether node me is among the next owners of e.
func (k *compiler) isSuccessor(e *address, me int) bool {
	score := scoreOf(e, k.shares.grouped)
	mine := k.priority(e, me, score)
	if mine.served = k.serves(e, me); mine.served == 0 {
		return false
	}
	mine.deaf = k.isDeaf(e, me)
	before := 0
	for _, i := range k.eligible(e) {
		if i == me || k.nodes[i].name == e.claim.Node {
			continue
		}
		other := k.priority(e, i, score)
		if other.served = len(e.users); !other.before(mine) {
			continue // even if it serves all; computing what it serves takes longer
		}
		other.served, other.deaf = k.serves(e, i), k.isDeaf(e, i)
		if other.before(mine) {
			if before++; before == successors {
				return false
			}
		}
	}
	return true
}

// priority orders the possible next owners of an address; see candidates and place.
type priority struct {
	served int
	deaf   bool
	unfit  unfitness
	rank
}

// priority is that of node i, without served and deaf.
func (k *compiler) priority(e *address, i int, score uint64) priority {
	return priority{
		unfit: k.nodes[i].unfit,
		rank:  rank{weight: k.weight(e, i), level: k.shares.load[i] / k.shares.capacity, score: mix(k.nodes[i].hash ^ score)},
	}
}

func (t priority) before(o priority) bool {
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

// watch returns the nodes for L2.Watch. It reuses those of the last plan unless addresses
// have been marked anew.
func (k *compiler) watch(marked []int) []string {
	if k.resumed && len(marked) == 0 {
		return k.watched
	}
	k.follows = listed(k.follows, marked, func(i int) bool { return k.addresses[i].successor })
	takesOver := map[string]int{}
	for _, i := range k.follows {
		takesOver[k.addresses[i].claim.Node]++
	}
	if k.watched = nil; len(takesOver) == 0 {
		return nil
	}
	// Among holders of equally many, each node chooses different ones.
	mine := hashString(k.me)
	out := slices.SortedFunc(maps.Keys(takesOver), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(takesOver[b], takesOver[a]),
			cmp.Compare(mix(hashString(a)^mine), mix(hashString(b)^mine)),
		)
	})
	k.watched = out[:min(len(out), maxWatch)]
	return k.watched
}
