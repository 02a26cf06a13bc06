package speaker

import (
	corev1 "k8s.io/api/core/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// others are the Nodes of all speakers as published in their SpeakerStatuses. A kubelet
// updates its Node every five minutes, and each of a thousand speakers that watch all Nodes
// receives each update; a speaker publishes only the fields that others read, when one
// changes.
type others struct {
	of     snapshot.Store[*v1alpha1.SpeakerStatus] // from which nodes were read
	nodes  snapshot.Store[*corev1.Node]
	silent int // how many speakers, of older versions, do not publish their Nodes
}

// follow reads the SpeakerStatuses that have changed.
func (o *others) follow(statuses snapshot.Store[*v1alpha1.SpeakerStatus]) {
	for key := range snapshot.Diff(o.of, statuses) {
		was, _ := o.of.Get(key)
		is, _ := statuses.Get(key)
		o.silent += silence(is) - silence(was)
		if n := nodeOf(is); n != nil {
			o.nodes = o.nodes.With(key, n)
		} else {
			o.nodes = o.nodes.Without(key)
		}
	}
	o.of = statuses
}

func nodeOf(s *v1alpha1.SpeakerStatus) *corev1.Node {
	if s == nil {
		return nil
	}
	return announce.NodeOf(s)
}

// silence is 1 for a speaker that publishes its state without its Node, and 0 for one that
// has just started and publishes nothing yet.
func silence(s *v1alpha1.SpeakerStatus) int {
	if s != nil && s.Status.Node == nil && (s.Status.Members.Alive > 0 || len(s.Status.Interfaces) > 0) {
		return 1
	}
	return 0
}

// allPublish reports whether every speaker publishes its Node and there are more than upTo
// of them. If upTo is zero, it reports false.
func (o *others) allPublish(upTo int) bool { return upTo > 0 && o.silent == 0 && o.nodes.Len() > upTo }

// overlay adds the published Nodes to a cluster in which the watch has only this node's
// Node.
type overlay struct {
	me         snapshot.Key
	told       snapshot.Store[*corev1.Node] // nodes were made from told and own
	own        *corev1.Node
	nodes      snapshot.Store[*corev1.Node]
	generation uint64
}

// ofOverlays separates the generations of overlaid Nodes from those of a cluster.Source.
const ofOverlays = 1 << 63

// onto returns c with the published Nodes, and this node's own from c.
func (g *overlay) onto(c *snapshot.Cluster, told snapshot.Store[*corev1.Node]) *snapshot.Cluster {
	own, exists := c.Nodes.Get(g.me)
	if g.generation == 0 || g.told != told || g.own != own {
		g.told, g.own = told, own
		g.generation = max(g.generation, ofOverlays) + 1
		if g.nodes = told.Without(g.me); exists {
			g.nodes = told.With(g.me, own)
		}
	}
	return c.WithNodes(g.nodes, g.generation)
}
