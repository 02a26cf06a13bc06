package announce

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// node is one node, judged as far as no address is needed for it.
type node struct {
	name   string
	labels labels.Set
	hash   uint64
	// barred says why this node may own nothing; "" it may.
	barred   string
	excluded bool // by a label, which may not count
	alive    bool
	unfit    unfitness
	known    bool // interfaces are known
	deaf     bool // one of them is
	ifaces   []Interface
}

// unfitness is how much speaks against new claims of a node that may own. The
// worst comes first, so of two nodes the lower number is the better choice; where
// all are unfit, some one is chosen nevertheless. (An API server that is gone
// makes every node NotReady, and a power cut leaves every node without rules.) A
// speaker that stops takes its addresses down with it, whoever else is there; one
// on a node that is drained serves better than one that may not be able to.
type unfitness uint8

const (
	unfitDrained  unfitness = 1 << iota // its speaker says that the node is to go
	unfitBehind                         // and that its kube-proxy has no rules yet
	unfitNotReady                       // the API server says so
	unfitStopping                       // its speaker says that it leaves
)

// leaving reports whether the node should hand over what others can take.
func (n *node) leaving() bool { return n.unfit&(unfitStopping|unfitDrained) != 0 }

// unfit is what the node says against itself.
func (f Facts) unfit() (u unfitness) {
	if f.Leaving {
		u |= unfitStopping
	}
	if f.Drained {
		u |= unfitDrained
	}
	if f.Behind {
		u |= unfitBehind
	}
	return u
}

// deletionTaint is how the cluster autoscaler marks a node that it drains and
// deletes. By the same taint kube-proxy fails the health checks of load balancers
// (KEP-3836).
const deletionTaint = "ToBeDeletedByClusterAutoscaler"

// Drained reports whether a node is about to go, so that its addresses should
// move before it does; onCordon says whether a cordon means that, too.
//
// Only the node's own speaker asks, and passes it on to the others: if each judged
// by its own watch, two of which one lags could go on taking an address from each
// other.
func Drained(c *snapshot.Cluster, name string, onCordon bool) bool {
	n, exists := c.Nodes.Get(nodeKey(name))
	return exists && (n.DeletionTimestamp != nil || onCordon && n.Spec.Unschedulable ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == deletionTaint }))
}

func (k *compiler) readNodes() {
	k.roll = k.view.Roll.Of(k.c)
	k.nodeIndex, k.nodes = k.roll.index, slices.Clone(k.roll.judged)
	k.owned = map[netip.Addr]string{}
	for i := range k.nodes {
		n := &k.nodes[i]
		facts, known := k.factsOf(n.name)
		_, n.alive = k.view.Alive[n.name]
		n.unfit |= facts.unfit()
		n.known, n.ifaces = known, facts.Interfaces
		n.deaf = slices.ContainsFunc(facts.Interfaces, func(i Interface) bool { return i.Up && i.Deaf })
		if n.excluded && !k.opts.IgnoreExcludeLabel {
			n.barred = "it is labelled " + corev1.LabelNodeExcludeBalancers
		}
		if n.alive && n.barred == "" {
			k.usable = append(k.usable, i)
		}
		k.someDeaf = k.someDeaf || n.deaf
		k.noteOwnAddresses(n)
	}
}

// noteOwnAddresses collects what a node says that it has, and must never be announced.
func (k *compiler) noteOwnAddresses(n *node) {
	for _, i := range n.ifaces {
		for _, p := range i.Prefixes {
			k.owned[p.Addr()] = "interface " + i.Name + " of node " + n.name
		}
		for _, g := range i.Gateways {
			k.owned[g] = "a gateway of node " + n.name
		}
	}
}

// ownerOf says whose an address is that must never be announced; "" nobody's.
func (k *compiler) ownerOf(a netip.Addr) string {
	if who, owned := k.owned[a]; owned {
		return who
	}
	if name, owned := k.roll.Addresses[a]; owned {
		return "node " + name
	}
	return ""
}

// factsOf prefers what gossip says, since a SpeakerStatus lags, and reports whether
// the node's interfaces are known. Gossip may be silent about them, if they are
// many.
func (k *compiler) factsOf(name string) (Facts, bool) {
	f, heard := k.view.Facts[name]
	if f.Interfaces != nil {
		return f, true
	}
	s, ok := k.c.SpeakerStatuses.Get(nodeKey(name))
	if !ok {
		return f, false
	}
	said := factsFromStatus(s.Status)
	if heard {
		said.Leaving, said.Drained, said.Behind = f.Leaving, f.Drained, f.Behind
	}
	// Who counts the living knows its interfaces, and so has none if it lists none.
	return said, len(said.Interfaces) > 0 || s.Status.Members.Alive > 0
}

// MACs maps the link-layer addresses that speakers have published to their
// nodes: whoever answers with one of them is no stranger. Of nodes that have the
// same, as one that was renamed, it is the first that exists.
func MACs(c *snapshot.Cluster, view View) map[string]string {
	note := func(in map[string]string, mac, node string) {
		if mac == "" {
			return
		}
		if other, taken := in[mac]; taken {
			_, exists := c.Nodes.Get(nodeKey(node))
			_, otherExists := c.Nodes.Get(nodeKey(other))
			if otherExists && !exists || exists == otherExists && other <= node {
				return
			}
		}
		in[mac] = node
	}
	out, heard := map[string]string{}, map[string]string{}
	for key, s := range c.SpeakerStatuses.All() {
		for _, i := range s.Status.Interfaces {
			note(out, i.MAC, key.Name)
		}
	}
	for name, f := range view.Facts {
		for _, i := range f.Interfaces {
			note(heard, i.MAC, name)
		}
	}
	maps.Copy(out, heard) // a SpeakerStatus lags
	return out
}

func factsFromStatus(s v1alpha1.SpeakerStatusStatus) Facts {
	f := Facts{Leaving: s.Leaving}
	for _, i := range s.Interfaces {
		v := Interface{Name: i.Name, MAC: i.MAC, Up: i.Up}
		for _, text := range i.Prefixes {
			// Own addresses have host bits; a masked prefix is a route.
			if p, err := netip.ParsePrefix(text); err != nil {
				continue
			} else if p.Masked() == p && !p.IsSingleIP() {
				v.Routes = append(v.Routes, p)
			} else {
				v.Prefixes = append(v.Prefixes, p)
			}
		}
		for _, text := range i.Gateways {
			if g, err := netip.ParseAddr(text); err == nil {
				v.Gateways = append(v.Gateways, g)
			}
		}
		f.Interfaces = append(f.Interfaces, v)
	}
	return f
}
