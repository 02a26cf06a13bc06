package announce

import (
	"fmt"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
)

// Settling is how long a node leaves an address with externalTrafficPolicy Local to an
// owner that hands it over but still serves, counted from the node's own first endpoint.
// The pod that makes the node eligible becomes known to its kube-proxy at the same moment,
// which writes its rules at most once a second (minSyncPeriod), in a large cluster for half
// a second, and until then drops packets to the address. A rollout terminates the old pod
// as soon as the new one is ready, so without this every rollout would cost connections.
// A kube-proxy that takes longer, because its cluster is larger or its node is busy, says
// so at the healthCheckNodePort of the Service, and is waited for.
const Settling = 1500 * time.Millisecond

// slow is how long a kube-proxy that is waited for has at least had when somebody is told.
const slow = 4 * Settling

// noteSince records since when this node has had an endpoint for h.
func (k *compiler) noteSince(h *holding, me int) {
	if u := &h.users[0]; u.local == nil || !u.isAt(me) {
		return
	}
	since, known := k.view.Since[h.addr]
	if !known && k.view.Since != nil {
		since = k.now
	}
	if k.now.Before(since.Add(2 * Settling)) { // so that there is an answer by the time it counts
		k.hasNone(h.users[0].svc, h.addr)
	}
	k.plan.L2.Since[h.addr] = since
}

// settled returns when this node may take e from the owner of claim, or is to look again;
// zero: now, since the owner does not serve it any more or the wait is over.
func (k *compiler) settled(e *address, claim Claim) (at time.Time) {
	since, local := k.plan.L2.Since[e.addr]
	owner, exists := k.nodeIndex[claim.Node]
	if !local || !exists || !k.lasts(e, owner) {
		return time.Time{}
	}
	if at = since.Add(Settling); at.After(k.now) {
		return at
	}
	svc := e.users[0].svc
	if _, says := k.hasNone(svc, e.addr); !says {
		return time.Time{}
	}
	if k.now.After(since.Add(slow)) {
		k.problem(snapshot.RefOf(svc), unknownToKubeProxy, fmt.Sprintf("node %s has a ready endpoint, and its kube-proxy says that it has none: %s stays with node %s until it does", k.me, e.addr, claim.Node))
	}
	return k.now.Add(Settling) // and as soon as it says otherwise
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
