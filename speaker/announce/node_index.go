package announce

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// NodeIndex is what a plan reads from the Nodes alone. With thousands of Nodes, reading
// them is most of the work of a plan, and they change rarely, so a NodeIndex is kept from
// plan to plan. It is immutable.
type NodeIndex struct {
	*nodeData
	of snapshot.Store[*corev1.Node]
}

// nodeData is the content of a NodeIndex, which several share.
type nodeData struct {
	// Nodes are all Nodes by name, as they were when a field that a plan reads last
	// changed.
	Nodes []*corev1.Node
	// Addresses maps the addresses of Nodes to their names.
	Addresses map[netip.Addr]string

	index  map[string]int // into Nodes, by name
	judged []node         // by the same index, without what speakers publish
}

// SameAs reports whether r and o, which may be nil, have the same content.
func (r *NodeIndex) SameAs(o *NodeIndex) bool { return o != nil && r.nodeData == o.nodeData }

// Of returns the NodeIndex of c. It shares the content of r, which may be nil, unless a
// field that a plan reads has changed: kubelets update their Nodes every few minutes.
func (r *NodeIndex) Of(c *snapshot.Cluster) *NodeIndex {
	switch {
	case r == nil:
	case r.of == c.Nodes:
		return r
	case alike(r.of, c.Nodes, sameNode):
		return &NodeIndex{r.nodeData, c.Nodes}
	}
	n := &nodeData{Nodes: c.Nodes.Sorted(), Addresses: map[netip.Addr]string{}, index: make(map[string]int, c.Nodes.Len())}
	n.judged = make([]node, len(n.Nodes))
	for i, o := range n.Nodes {
		n.index[o.Name] = i
		n.judged[i] = judge(o)
		for a := range loadbalancer.NodeAddresses(o) {
			n.Addresses[a] = o.Name
		}
	}
	return &NodeIndex{n, c.Nodes}
}

// judge reads from a Node what speaks against that node.
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
