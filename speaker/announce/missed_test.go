package announce

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// counting is a SpeakerStatus that counts so many members and misses some.
func counting(node string, expected int32, missing ...string) *v1alpha1.SpeakerStatus {
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Status.Members = v1alpha1.SpeakerMembers{Alive: max(1, expected-int32(len(missing))), Expected: expected}
	for _, name := range missing {
		s.Status.Members.NotAlive = append(s.Status.Members.NotAlive, name+": it does not answer")
	}
	return s
}

// The leader hears no gossip: who has a SpeakerStatus lives, unless the others say that it
// does not, or it says so itself; and before anybody has one, everybody does.
func TestTheLeaderSeesByStatuses(t *testing.T) {
	mute := counting("n2", 3)
	mute.Status.Members = v1alpha1.SpeakerMembers{Expected: 3, NotAlive: []string{"n2: it may not open packet sockets"}}
	for _, row := range []struct {
		name     string
		notReady string
		statuses []snapshot.Object
		want     string // who lives
	}{
		{"nobody has said anything", "", nil, "n1 n2 n3"},
		{"one has", "", []snapshot.Object{counting("n2", 0)}, "n2"},
		{"it misses one of a similar name", "", []snapshot.Object{counting("n2", 3, "n22")}, "n2"},
		{"one says that its own speaker does not live", "", []snapshot.Object{mute, counting("n1", 0)}, "n1"},
		{"one is missed by all others", "", []snapshot.Object{counting("n1", 3, "n3"), counting("n2", 3, "n3"), counting("n3", 3)}, "n1 n2"},
		{"one is missed by some", "", []snapshot.Object{counting("n1", 3, "n3"), counting("n2", 3), counting("n3", 3)}, "n1 n2 n3"},
		{"who does not count has no say", "", []snapshot.Object{counting("n1", 3, "n3"), counting("n2", 0), counting("n3", 0)}, "n1 n2"},
		{"a node that is deleted has no say", "", []snapshot.Object{counting("n1", 3, "n3"), counting("n4", 3), counting("n3", 3)}, "n1 n4"},
		{"two died, the first of them before the other", "", []snapshot.Object{counting("n1", 3, "n2", "n3"), counting("n2", 3, "n3"), counting("n3", 3)}, "n1"},
		{"two died, the last of them before the other", "", []snapshot.Object{counting("n1", 3), counting("n2", 3, "n1"), counting("n3", 3, "n1", "n2")}, "n3"},
		{"two miss each other, and one Node is not ready", "n2", []snapshot.Object{counting("n1", 2, "n2"), counting("n2", 2, "n1")}, "n1"},
		{"two miss each other, and one Node is not ready", "n1", []snapshot.Object{counting("n1", 2, "n2"), counting("n2", 2, "n1")}, "n2"},
	} {
		objects := slices.Clone(row.statuses)
		for _, name := range []string{"n1", "n2", "n3"} {
			n := readyNode(name, "")
			if name == row.notReady {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			}
			objects = append(objects, n)
		}
		v := ViewOf(snapshot.Of(objects...))
		if got := strings.Join(slices.Sorted(maps.Keys(v.Alive)), " "); got != row.want {
			t.Errorf("%s: %q live, want %q", row.name, got, row.want)
		}
	}
}
