package announce

import (
	"slices"
	"time"
)

// Settling is how long a node leaves an address of policy Local to an owner who
// lets go but still serves, counted from the node's own first endpoint. What
// makes the node eligible, a pod that got ready, is told to its kube-proxy at
// the same moment, and that writes its rules once a second at most
// (minSyncPeriod), in a large cluster for half a second. Until then it drops
// what is sent there. A rollout ends the old pod as soon as the new one is
// ready, so without this every one of them would cost new connections.
const Settling = 1500 * time.Millisecond

// noteSince notes since when this node has an endpoint for h.
func (k *compiler) noteSince(h *holding, me int) {
	if u := &h.users[0]; u.local == nil || !u.isAt(me) {
		return
	}
	since, known := k.view.Since[h.addr]
	if !known && k.view.Since != nil {
		since = k.now
	}
	k.plan.L2.Since[h.addr] = since
}

// settled returns when this node may take e from the owner of claim: zero for
// now, as there is nobody who serves meanwhile, or nothing to wait for.
func (k *compiler) settled(e *address, claim Claim) (at time.Time) {
	since, local := k.plan.L2.Since[e.addr]
	owner, exists := k.nodeIndex[claim.Node]
	if !local || !exists || !k.lasts(e, owner) {
		return time.Time{}
	}
	if at = since.Add(Settling); !at.After(k.now) {
		return time.Time{}
	}
	return at
}

// lasts reports whether node i goes on serving e while it lets go: its endpoints
// end but have not ended, and its links are up.
func (k *compiler) lasts(e *address, i int) bool {
	u, n := &e.users[0], &k.nodes[i]
	_, ends := slices.BinarySearch(u.ending, i)
	return (ends || u.isAt(i)) && n.alive && n.barred == "" && (!n.known || len(k.links(e, i, true)) > 0)
}

// wakeAt makes the plan end at t, if it does not end before.
func (k *compiler) wakeAt(t time.Time) {
	if k.plan.NextWake.IsZero() || t.Before(k.plan.NextWake) {
		k.plan.NextWake = t
	}
}
