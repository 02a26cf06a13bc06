package announce

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// node is one node with what is known of it independently of any address.
type node struct {
	name   string
	labels labels.Set
	hash   uint64
	// barred is why this node may own no address; "": it may.
	barred   string
	excluded bool // by a label, which Options may ignore
	alive    bool
	unfit    unfitness
	known    bool // interfaces are known
	deaf     bool // one of the interfaces is
	ifaces   []Interface
}

// unfitness is a bit set of what speaks against new claims of a node that may own. The
// worst reason is the highest bit, so of two nodes the one with the lower number is the
// better choice; where all nodes are unfit, one is chosen nevertheless. (Without an API
// server every node becomes NotReady, and after a power cut no node has its rules.) A
// speaker that stops takes its addresses down with it, so that is the worst; a node that
// is being drained still serves, so it is better than one that may not be able to.
type unfitness uint8

const (
	unfitDrained  unfitness = 1 << iota // Facts.Drained
	unfitBehind                         // Facts.Behind
	unfitNotReady                       // the condition Ready of the Node is not True
	unfitStopping                       // Facts.Leaving
)

// leaving reports whether the node should hand its addresses over.
func (n *node) leaving() bool { return n.unfit&(unfitStopping|unfitDrained) != 0 }

// stops reports whether it does so because its speaker is to stop.
func (n *node) stops() bool { return n.unfit&unfitStopping != 0 }

// unfit is the part of unfitness that the node publishes itself.
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

// deletionTaint marks a node that the cluster autoscaler drains and deletes. On the same
// taint kube-proxy fails the health checks of load balancers (KEP-3836).
const deletionTaint = "ToBeDeletedByClusterAutoscaler"

// Drained reports whether a node is about to be removed, so that its addresses should move
// first; onCordon says whether a cordon counts as that, too.
//
// Only the node's own speaker calls it, and publishes the result in Facts: if each speaker
// used its own watch, two of which one lags could take an address from each other
// repeatedly.
func Drained(c *snapshot.Cluster, name string, onCordon bool) bool {
	n, exists := c.Nodes.Get(nodeKey(name))
	return exists && (n.DeletionTimestamp != nil || onCordon && n.Spec.Unschedulable ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == deletionTaint }))
}

func (k *compiler) readNodes() {
	k.allNodes = k.view.NodeIndex.Of(k.c)
	k.nodeIndex, k.nodes = k.allNodes.index, slices.Clone(k.allNodes.judged)
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

// noteOwnAddresses collects the addresses of a node and of its gateways, which must never
// be announced.
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

// ownerOf names the node, interface or gateway that has an address, which must then never
// be announced; "": none has it.
func (k *compiler) ownerOf(a netip.Addr) string {
	if who, owned := k.owned[a]; owned {
		return who
	}
	if name, owned := k.allNodes.Addresses[a]; owned {
		return "node " + name
	}
	return ""
}

// factsOf returns the facts of a node, and whether its interfaces are known. Gossip comes
// first, since a SpeakerStatus lags; it may lack the interfaces if they are many.
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
	// A speaker that counts live members knows its interfaces; so an empty list means
	// none.
	return said, len(said.Interfaces) > 0 || s.Status.Members.Alive > 0
}

// MACs maps the MAC addresses that speakers have published to their nodes. Of two nodes
// with the same MAC, such as one that was renamed, it names the one that exists, or else
// the first by name.
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
		for p, own := range loadbalancer.OnLink(&i) {
			if own {
				v.Prefixes = append(v.Prefixes, p)
			} else {
				v.Routes = append(v.Routes, p)
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
