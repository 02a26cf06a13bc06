package announce

import (
	"slices"
	"time"
)

// Settling is how long a node leaves an address with externalTrafficPolicy Local to an
// owner that hands it over but still serves, counted from the node's own first endpoint.
// The pod that makes the node eligible becomes known to its kube-proxy at the same moment,
// which writes its rules at most once a second (minSyncPeriod), in a large cluster for half
// a second, and until then drops packets to the address. A rollout terminates the old pod
// as soon as the new one is ready, so without this every rollout would cost connections.
const Settling = 1500 * time.Millisecond

// noteSince records since when this node has had an endpoint for h.
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

// settled returns when this node may take e from the owner of claim; zero: now, since the
// owner does not serve it any more or the wait is over.
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

// lasts reports whether node i still serves e while it hands it over: it has endpoints,
// perhaps terminating, and its links are up.
func (k *compiler) lasts(e *address, i int) bool {
	u, n := &e.users[0], &k.nodes[i]
	_, ends := slices.BinarySearch(u.ending, i)
	return (ends || u.isAt(i)) && n.alive && n.barred == "" && (!n.known || len(k.links(e, i, true)) > 0)
}

// wakeAt sets NextWake to t unless it is earlier.
func (k *compiler) wakeAt(t time.Time) {
	if k.plan.NextWake.IsZero() || t.Before(k.plan.NextWake) {
		k.plan.NextWake = t
	}
}
