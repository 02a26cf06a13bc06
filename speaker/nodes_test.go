package speaker

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

func labelled(name, zone string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid of " + "x", Labels: map[string]string{"zone": zone}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// says is the SpeakerStatus of a node's speaker; nil: one of the version before.
func says(name string, n *corev1.Node) *v1alpha1.SpeakerStatus {
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Status.Members.Alive = 1
	if n != nil {
		s.Status.Node = announce.NodeSummary(n)
	}
	return s
}

func zones(c *snapshot.Cluster) map[string]string {
	out := map[string]string{}
	for k, n := range c.Nodes.All() {
		out[k.Name] = n.Labels["zone"]
	}
	return out
}

// Of more than so many speakers that all tell their Nodes only this one's is watched. No
// Node is missing from what is shown meanwhile, whichever way it goes: a node that is
// missing loses its addresses.
func TestNodesAreReadWhereTheyAreTold(t *testing.T) {
	full := map[string]string{"n1": "a", "n2": "b", "n3": "c"}
	objects := func(silent string) (all []snapshot.Object) {
		for name, zone := range full {
			n := labelled(name, zone)
			all = append(all, n)
			if name == silent {
				n = nil
			}
			all = append(all, says(name, n))
		}
		return all
	}
	source := &stage{c: snapshot.Of(objects("n3")...), synced: make(chan struct{}), seenNodes: make(chan struct{})}
	close(source.synced)
	s := newClusterView(source, "n1", 2, slog.New(slog.DiscardHandler))
	shows := func(when string, nodes map[string]string, asked snapshot.Key) {
		t.Helper()
		c := s.look()
		if source.seen != nil {
			select {
			case <-source.seen:
			default:
				close(source.seen)
				c = s.look()
			}
		}
		if !maps.Equal(zones(c), nodes) || !slices.Equal(source.askedNodes, []snapshot.Key{asked}) {
			t.Fatalf("%s: it shows %v and asks for %v", when, zones(c), source.askedNodes)
		}
	}
	all, own := snapshot.Key{}, snapshot.Key{Name: "n1"}
	s.look()
	if s.complete {
		t.Fatal("it is complete before the Nodes are known")
	}
	close(source.seenNodes)
	shows("n3 is of the version before", full, all)

	source.c = source.c.With(says("n3", labelled("n3", "c")))
	shows("n3 is updated", full, own) // it asks for its own
	source.c = source.c.Without(snapshot.Node, snapshot.Key{Name: "n2"}).Without(snapshot.Node, snapshot.Key{Name: "n3"})
	shows("the others are watched no longer", full, own)
	close(source.seenNodes)
	shows("its own is known", full, own)

	source.c = source.c.With(says("n2", labelled("n2", "far")), labelled("n1", "near"))
	changed := map[string]string{"n1": "near", "n2": "far", "n3": "c"}
	shows("labels change", changed, own)

	source.c = source.c.With(says("n4", nil))
	shows("a speaker of the version before has come", changed, all)
	source.c = source.c.With(labelled("n2", "far"))
	shows("not all Nodes are known yet", changed, all)
	source.c = source.c.With(labelled("n3", "c"), labelled("n4", "d"))
	close(source.seenNodes)
	changed["n4"] = "d"
	shows("all are", changed, all)
	source.c = source.c.With(says("n4", labelled("n4", "d")))
	shows("it is updated, and may change its mind", changed, all)
	s.fellBack = s.fellBack.Add(-2 * patience)
	shows("it has not", changed, own)
}

// A speaker that has just been created tells nothing yet, and is no reason for a thousand
// others to list all Nodes.
func TestNewSpeakersAreNotOldOnes(t *testing.T) {
	var o others
	o.follow(snapshot.Of(says("n1", labelled("n1", "a")), says("n2", labelled("n2", "b"))).SpeakerStatuses)
	c := snapshot.Of(says("n1", labelled("n1", "a")), says("n2", labelled("n2", "b")), &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n3"}})
	if o.follow(c.SpeakerStatuses); !o.allPublish(1) {
		t.Error("a new speaker is taken for an old one")
	}
	// Nor is one whose Node has been deleted: the Node is gone for all.
	gone := says("n2", nil)
	gone.Status.Node = &v1alpha1.SpeakerNode{}
	if o.follow(c.With(gone).SpeakerStatuses); o.silent > 0 || o.nodes.Len() != 1 {
		t.Errorf("a speaker without a Node: %d silent, %d Nodes", o.silent, o.nodes.Len())
	}
	o.follow(c.SpeakerStatuses)
	if o.allPublish(0) || o.allPublish(2) {
		t.Error("so few are not read")
	}
}

// What is followed step by step is what is read at once, and Nodes are the same again
// only while nothing has changed.
func TestOthersAreTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, o, g := snapshot.Of(labelled("n0", "own")), others{}, overlay{me: snapshot.Key{Name: "n0"}}
		shown := o.shown(&g, c)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name, before := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node")), c
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				c = c.Without(snapshot.SpeakerStatus, snapshot.Key{Name: name})
			case 1:
				c = c.With(says(name, nil))
			case 2:
				c = c.With(says(name, labelled(name, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))))
			case 3:
				c = c.With(labelled("n0", rapid.SampledFrom([]string{"own", "other"}).Draw(t, "zone")))
			}
			was := shown
			shown = o.shown(&g, c)
			want, silent := map[string]string{}, 0
			for k, s := range c.SpeakerStatuses.All() {
				if s.Status.Node == nil {
					silent++
				} else {
					want[k.Name] = s.Status.Node.Labels["zone"]
				}
			}
			own, _ := c.Nodes.Get(g.me)
			want["n0"] = own.Labels["zone"]
			if !maps.Equal(zones(shown), want) || o.silent != silent {
				t.Fatalf("it shows %v with %d silent, want %v with %d", zones(shown), o.silent, want, silent)
			}
			if maps.Equal(zones(was), want) && c == before && shown.Changed(was, snapshot.Node) || !maps.Equal(zones(was), want) && !shown.Changed(was, snapshot.Node) {
				t.Fatalf("from %v to %v Nodes changed: %t", zones(was), want, shown.Changed(was, snapshot.Node))
			}
		}
	})
}

func (o *others) shown(g *overlay, c *snapshot.Cluster) *snapshot.Cluster {
	o.follow(c.SpeakerStatuses)
	return g.onto(c, o.nodes)
}
