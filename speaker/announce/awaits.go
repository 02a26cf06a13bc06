package announce

import (
	"slices"

	"quayside.io/cluster/snapshot"
)

// awaits reports whether another node is about to serve as much of e as node me, and could
// take it then: its endpoints are starting. In a rollout the pods of a Service of policy
// Local are replaced beside the speakers.
//
// Only a node whose speaker is to stop asks, so what is starting is not part of what a
// plan has read: else each pod that starts would cost every speaker a step.
func (k *compiler) awaits(e *address, me int) bool {
	starting := make([][]int, len(e.users))
	for j := range e.users {
		if u := &e.users[j]; u.local != nil {
			_, _, starting[j] = endpointNodes(k.c, question{snapshot.KeyOf(u.svc), e.addr.Is6()}, k.nodeIndex)
		}
	}
	enough := k.serves(e, me)
	return slices.ContainsFunc(slices.Concat(starting...), func(i int) bool {
		n, will := &k.nodes[i], 0
		if !n.alive || n.barred != "" || n.unfit >= k.nodes[me].unfit {
			return false
		}
		for j := range e.users {
			if u := &e.users[j]; (u.isAt(i) || slices.Contains(starting[j], i)) && k.reaches(e, u, i) {
				will++
			}
		}
		return will >= enough
	})
}
