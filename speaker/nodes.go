package speaker

import (
	corev1 "k8s.io/api/core/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// others are the Nodes of all speakers as their SpeakerStatuses tell them. A kubelet
// writes its Node every five minutes, and each of a thousand speakers that watch all Nodes
// hears of each; a speaker tells of its own only what others read, and when that changes.
type others struct {
	of     snapshot.Store[*v1alpha1.SpeakerStatus] // from which this was read
	nodes  snapshot.Store[*corev1.Node]
	silent int // speakers that tell of themselves and not of their Nodes: older ones
}

// follow reads what has changed.
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

// silence is 1 for a speaker that tells of itself and not of its Node. One that has just
// begun tells nothing yet.
func silence(s *v1alpha1.SpeakerStatus) int {
	if s != nil && s.Status.Node == nil && (s.Status.Members.Alive > 0 || len(s.Status.Interfaces) > 0) {
		return 1
	}
	return 0
}

// allPublish reports whether each speaker tells its Node, and there are more than upTo, if
// that is not zero.
func (o *others) allPublish(upTo int) bool { return upTo > 0 && o.silent == 0 && o.nodes.Len() > upTo }

// graft puts the Nodes that others tell into a cluster in which a watch shows only the
// one of this node.
type overlay struct {
	me         snapshot.Key
	told       snapshot.Store[*corev1.Node] // and own make
	own        *corev1.Node
	nodes      snapshot.Store[*corev1.Node]
	generation uint64
}

// ofGrafts sets the generations of grafted Nodes apart from those of a source.
const ofOverlays = 1 << 63

// onto returns c with the Nodes that are told, but for this node's own.
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
