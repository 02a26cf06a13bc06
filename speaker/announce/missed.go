package announce

import (
	"cmp"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
)

// ViewOf is the view of a process without gossip, such as the controller's leader. A node
// is alive that has a SpeakerStatus, unless the others miss its speaker, or it says itself
// that it is not alive; while there is no SpeakerStatus at all, every node is.
func ViewOf(c *snapshot.Cluster) View {
	v := View{Alive: map[string]struct{}{}}
	missed := Missed(c)
	for k := range c.SpeakerStatuses.All() {
		if _, gone := missed[k.Name]; !gone {
			v.Alive[k.Name] = struct{}{}
		}
	}
	if c.SpeakerStatuses.Len() == 0 {
		for k := range c.Nodes.All() {
			v.Alive[k.Name] = struct{}{}
		}
	}
	return v
}

// Missed are the nodes whose speakers are not alive by what SpeakerStatuses say: what a
// speaker said last stands in its own until it is back, so that is left to those which
// count the others. A node is missed if all of them miss it that are not missed themselves,
// or if it misses itself.
//
// Where two miss each other, one of them must live. If the Node of one is not ready, that
// is the dead one; else the first by name is taken for it, since which it is cannot be read
// from what both say.
func Missed(c *snapshot.Cluster) map[string]struct{} {
	misses := countersOf(c)
	suspected, missed := suspects(c, misses), map[string]struct{}{}
	for more := true; more; {
		more = false
		for _, node := range suspected {
			if _, known := missed[node]; !known && isMissed(node, misses, missed) {
				missed[node], more = struct{}{}, true
			}
		}
	}
	return missed
}

// countersOf are the nodes whose speakers count the others, and whom each misses.
func countersOf(c *snapshot.Cluster) map[string][]string {
	misses := map[string][]string{}
	for k, s := range c.SpeakerStatuses.All() {
		if _, exists := c.Nodes.Get(k); !exists && c.Nodes.Len() > 0 {
			continue
		}
		names := []string{}
		for _, text := range s.Status.Members.NotAlive {
			name, _, _ := strings.Cut(text, ": ")
			names = append(names, name)
		}
		if s.Status.Members.Expected > 0 || slices.Contains(names, k.Name) {
			misses[k.Name] = names
		}
	}
	return misses
}

// suspects are all nodes that somebody misses, those first that are probably dead.
func suspects(c *snapshot.Cluster, misses map[string][]string) []string {
	var out []string
	for _, names := range misses {
		out = append(out, names...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(readiness(c, a), readiness(c, b)) })
	return out
}

// readiness is 1 for a Node that is ready, and 0 for any other.
func readiness(c *snapshot.Cluster, name string) int {
	if n, exists := c.Nodes.Get(nodeKey(name)); exists && judge(n).unfit&unfitNotReady == 0 {
		return 1
	}
	return 0
}

func isMissed(node string, misses map[string][]string, missed map[string]struct{}) bool {
	if slices.Contains(misses[node], node) {
		return true
	}
	counted := false
	for counter, names := range misses {
		if _, gone := missed[counter]; gone || counter == node {
			continue
		}
		if !slices.Contains(names, node) {
			return false
		}
		counted = true
	}
	return counted
}
