package announce

import "slices"

// kube-proxy passes what reaches its node to endpoints there that terminate and still serve,
// if none there is ready, whatever is ready on other nodes (KEP-1669). So where a rollout
// takes the speaker beside the only ready pod, the node of the pod that it replaces can
// answer, for as long as that lasts: better than nobody. Routes do not follow it, since they
// need no gossip: no node knows there which speakers run, and a router keeps for a while the
// routes of one that is replaced.

// countEnding adds to the nodes that serve users of e those on which only terminating
// endpoints are left, where they may stand in. It depends on endpoints and inputs alone.
func (k *compiler) countEnding(e *address) {
	owned := false
	for j := range e.users {
		more := k.standIns(e, &e.users[j])
		if len(more) == 0 {
			continue
		}
		if !owned { // the holding has them, too
			e.users, owned = slices.Clone(e.users), true
		}
		e.users[j].local = distinct(slices.Concat(e.users[j].local, more))
	}
}

// standIns are the nodes with terminating endpoints of u that may serve e: none while a
// speaker beside a ready endpoint may announce it and stays. Where all of those are to stop,
// only nodes whose speakers stay.
func (k *compiler) standIns(e *address, u *user) []int {
	if len(u.ending) == 0 {
		return nil
	}
	stops := false
	for _, i := range u.local {
		switch n := &k.nodes[i]; {
		case !n.alive || n.barred != "" || !k.reaches(e, u, i):
		case !n.stops():
			return nil
		default:
			stops = true
		}
	}
	if !stops {
		return u.ending
	}
	return slices.DeleteFunc(slices.Clone(u.ending), func(i int) bool { return k.nodes[i].stops() })
}
