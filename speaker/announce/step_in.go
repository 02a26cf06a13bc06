package announce

import (
	"net/netip"
	"slices"
	"time"
)

// StepIn is how long a node leaves an address that nobody has to the one that should take it,
// while the API server cannot be reached; so much again for each node that comes before it.
const StepIn = 2 * time.Second

// maxBefore bounds how many nodes come before one.
const maxBefore = 4

// stepIn makes this node the owner of e, which is free, if the one that should take it has
// not for a while. Without the API server each node decides by what it heard last, and where
// these differ, each of two may find that the other should: a Service more, and a node holds
// its share. With it they know the same within moments, and then nobody waits for nobody.
// Several may step in at the same time; the best claim wins, and stays.
func (k *compiler) stepIn(e *address, candidates []int) {
	me, known := k.nodeIndex[k.me]
	if !known || e.owner == me || !k.c.IsStale() || !slices.Contains(candidates, me) {
		return
	}
	since, waits := k.view.Orphaned[e.addr]
	if !waits {
		since = k.now
	}
	if k.plan.L2.Orphaned == nil {
		k.plan.L2.Orphaned = map[netip.Addr]time.Time{}
	}
	k.plan.L2.Orphaned[e.addr] = since
	if at := since.Add(StepIn * time.Duration(k.ahead(e, candidates, me))); at.After(k.now) {
		k.wakeAt(at)
	} else if _, refused := k.view.Refused[e.addr]; !refused {
		e.owner = me
	}
}

// ahead is how many nodes should take e before node me, its owner first.
func (k *compiler) ahead(e *address, candidates []int, me int) int {
	loads, held := k.currentLoads(), k.siblingsOf(e)
	score := scoreOf(e, loads.grouped)
	mine, before := k.rankOf(e, me, loads, held, score), 1
	for _, i := range candidates {
		if i != e.owner && i != me && k.rankOf(e, i, loads, held, score).before(mine) {
			if before++; before == maxBefore {
				break
			}
		}
	}
	return before
}
