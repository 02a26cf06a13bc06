package announce

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/snapshot"
)

// Roll is what a plan reads of the Nodes alone. Among thousands reading them is most of
// the work of a plan, and they change rarely: who keeps a Roll need not read them again.
// It is immutable.
type Roll struct {
	*calling
	of snapshot.Store[*corev1.Node]
}

// calling is what a Roll says.
type calling struct {
	// Nodes are all, in order of their names, as they were when something of them last
	// changed that a plan reads.
	Nodes []*corev1.Node
	// Addresses are those of nodes, by the name of the node.
	Addresses map[netip.Addr]string

	index  map[string]int // into Nodes
	judged []node         // the same, as far as no speaker is asked
}

// Says reports whether r and o, which may be nil, say the same.
func (r *Roll) Says(o *Roll) bool { return o != nil && r.calling == o.calling }

// Of returns the Roll of c. It makes r, which may be nil, anew only if a Node has changed
// in something that a plan reads: kubelets write theirs every few minutes.
func (r *Roll) Of(c *snapshot.Cluster) *Roll {
	switch {
	case r == nil:
	case r.of == c.Nodes:
		return r
	case alike(r.of, c.Nodes, sameNode):
		return &Roll{r.calling, c.Nodes}
	}
	n := &calling{Nodes: c.Nodes.Sorted(), Addresses: map[netip.Addr]string{}, index: make(map[string]int, c.Nodes.Len())}
	n.judged = make([]node, len(n.Nodes))
	for i, o := range n.Nodes {
		n.index[o.Name] = i
		n.judged[i] = judge(o)
		for _, a := range o.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				n.Addresses[ip.Unmap()] = o.Name
			}
		}
	}
	return &Roll{n, c.Nodes}
}

// judge says what there is against a node in its Node.
func judge(o *corev1.Node) node {
	n := node{name: o.Name, labels: labels.Set(o.Labels), hash: hashString(o.Name)}
	for _, cond := range o.Status.Conditions {
		switch {
		case cond.Type == corev1.NodeNetworkUnavailable && cond.Status == corev1.ConditionTrue:
			n.barred = "its network is unavailable"
		case cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue:
			n.unfit |= unfitNotReady
		}
	}
	_, n.excluded = o.Labels[corev1.LabelNodeExcludeBalancers]
	return n
}
