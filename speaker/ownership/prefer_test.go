package ownership

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/test/objects"
)

// label gives each Node its name as a label.
func (s *sim) label() {
	for i, n := range s.nodes {
		labelled := objects.Node(i + 1)
		labelled.Labels = map[string]string{"name": n.name}
		s.put(labelled)
	}
}

// prefer edits the advertisement.
func (s *sim) prefer(name string) {
	s.note("--- preferred is %q", name)
	ad := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	ad.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 10, Preference: metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}}}
	s.put(ad)
}

// has reports whether a node answers for everything that it can serve.
func (s *sim) has(n *simNode) bool {
	for a, owner := range s.owners() {
		if owner != n.name && (a != objects.VIPLocal || n.index < 2) {
			return false
		}
	}
	return true
}

// Preferences are edited at any time, also while what was edited before still moves
// addresses and is not yet written to any SpeakerStatus: in the end the last edit counts,
// and nobody asks in vain meanwhile.
func TestTheLastEditOfPreferencesCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleetOf(t)
		f.label()
		f.prefer("nobody")
		f.run(3 * time.Second)
		f.watch.reset()
		some := func(what string) *simNode {
			return f.nodes[rapid.IntRange(0, len(f.nodes)-1).Draw(t, what)]
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "edits") {
			f.prefer(some(fmt.Sprint("preferred ", i)).name)
			f.run(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
		}
		last := some("preferred at last")
		f.prefer(last.name)
		f.run(time.Second) // a node may learn of the edit before this one late
		f.until(last.name+" answers for everything", 5*time.Second, func() bool { return f.has(last) })
		if f.watch.longest.silent > 0 {
			f.fatalf("an address was silent for %v", f.watch.longest.silent)
		}
		f.still(3 * time.Second)
	})
}
