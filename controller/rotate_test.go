package controller

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/gossipkey"
	"quayside.io/cluster/snapshot"
)

// A change of the key leaves no gap: with each file, whoever still has the one before
// reads what is written with it, and the other way round; and in the end the old
// secret is gone.
func TestTheKeyChangesWithoutAGap(t *testing.T) {
	const every = 30 * 24 * time.Hour
	file, stage, now := NewMembersKey(), KeySettled, time.Unix(1000, 0)
	since, first := now, bytes.TrimSpace(file)
	reads := func(file, secret []byte) bool {
		for _, line := range gossipkey.Secrets(file) {
			if bytes.Equal(line, secret) {
				return true
			}
		}
		return false
	}
	var stages []KeyStage
	for range 6 { // two changes
		next, then, due, _ := RotateMembersKey(file, stage, since, now, every, nil)
		if !bytes.Equal(next, file) || then != stage {
			t.Fatalf("stage %q: changed at once", stage)
		}
		early, _, _, _ := RotateMembersKey(file, stage, since, due.Add(-time.Second), every, nil)
		if !bytes.Equal(early, file) {
			t.Fatalf("stage %q: changed too early", stage)
		}
		now = due
		if next, then, _, _ = RotateMembersKey(file, stage, since, now, every, nil); bytes.Equal(next, file) {
			t.Fatalf("stage %q: not changed in time", stage)
		}
		if !reads(file, gossipkey.Secrets(next)[0]) || !reads(next, gossipkey.Secrets(file)[0]) {
			t.Fatalf("from stage %q to %q somebody is not understood", stage, then)
		}
		if wait := due.Sub(since); then == KeyAdded && wait != every || then != KeyAdded && wait != keySettles {
			t.Errorf("stage %q lasts %v", stage, wait)
		}
		file, stage, since = next, then, now
		stages = append(stages, stage)
	}
	if stages[0] != KeyAdded || stages[1] != KeyUsed || stages[2] != KeySettled || stages[5] != KeySettled {
		t.Errorf("stages %q", stages)
	}
	if len(gossipkey.Secrets(file)) != 1 || reads(file, first) {
		t.Errorf("the old key is still there: %q", file)
	}
}

// What somebody wrote into the Secret by hand meanwhile is kept, and nothing of it is
// taken away that others may still write with.
func TestAHandWrittenKeyIsAChangeThatIsDone(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, stage := range []KeyStage{KeyAdded, KeyUsed, "nonsense"} {
		file := []byte("one secret of my own\n")
		if got, then, _, _ := RotateMembersKey(file, stage, now, now.Add(time.Hour), 24*time.Hour, nil); !bytes.Equal(got, file) || then != KeySettled {
			t.Errorf("stage %q: %q, stage %q", stage, got, then)
		}
	}
	two := []byte("\n first of two secrets\nsecond of two secrets")
	got, stage, _, _ := RotateMembersKey(two, KeySettled, now, now.Add(48*time.Hour), 24*time.Hour, nil)
	if lines := gossipkey.Secrets(got); len(lines) != 3 || stage != KeyAdded || string(lines[0]) != "first of two secrets" {
		t.Errorf("%q", got)
	}
}

// No stage of a change begins before all speakers have what it needs, however long
// that takes; a new secret may always be begun with, since nobody writes with it.
func TestTheKeyWaitsForEverySpeaker(t *testing.T) {
	const every = 30 * 24 * time.Hour
	file, stage, now := NewMembersKey(), KeySettled, time.Unix(1000, 0)
	since := now
	words := func(file []byte) (words []string) {
		for _, secret := range gossipkey.Secrets(file) {
			key, err := gossipkey.Derive(secret)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, gossipkey.Print(key))
		}
		return words
	}
	holders := KeyHolders{"a": words(file), "b": words(file), "c": nil} // c is of a version that says nothing
	for _, want := range []KeyStage{KeyAdded, KeyUsed, KeySettled} {
		now = now.Add(every)
		for _, node := range []string{"a", "b", "c"} {
			next, then, again, err := RotateMembersKey(file, stage, since, now, every, holders)
			if stage != KeySettled && (!bytes.Equal(next, file) || then != stage || err == nil || !strings.Contains(err.Error(), "node "+node)) {
				t.Fatalf("from stage %q to %q without %s: %v", stage, then, node, err)
			}
			if stage != KeySettled && again != now.Add(time.Minute) {
				t.Errorf("stage %q: looks again at %v", stage, again)
			}
			holders[node] = words(file)
		}
		next, then, _, err := RotateMembersKey(file, stage, since, now, every, holders)
		if err != nil || then != want || bytes.Equal(next, file) {
			t.Fatalf("stage %q became %q, want %q: %v", stage, then, want, err)
		}
		file, stage, since = next, then, now
	}
	if len(gossipkey.Secrets(file)) != 1 || slices.Contains(holders["a"][1:], words(file)[0]) {
		t.Errorf("%d secrets are left, the speakers write with %q", len(gossipkey.Secrets(file)), holders["a"])
	}
}

// aFleet is a cluster of n nodes, those of notReady so, whose speakers write with a key.
// The first node's counts the others, and misses those of missed.
func aFleet(n int, word string, notReady, missed []int) *snapshot.Cluster {
	var all []snapshot.Object
	for i := range n {
		ready, name := corev1.ConditionTrue, fmt.Sprintf("n%02d", i)
		if slices.Contains(notReady, i) {
			ready = corev1.ConditionUnknown
		}
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.SpeakerStatusStatus{GossipSecrets: []string{word}}}
		if i == 0 {
			s.Status.Members = v1alpha1.SpeakerMembers{Expected: int32(n)}
			for _, j := range missed {
				s.Status.Members.NotAlive = append(s.Status.Members.NotAlive, fmt.Sprintf("n%02d: it does not answer", j))
			}
		}
		all = append(all, s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}}})
	}
	return snapshot.Of(all...)
}

// Who is waited for: whoever may be speaking. A kubelet that is away leaves its speaker
// where it is; one that is gone with its node brings it the file as both come back.
func TestNodesThatAreAwayAreNotWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		name             string
		nodes            int
		notReady, missed []int
		want             int
	}{
		{"all is well", 6, nil, nil, 6},
		{"a node is dead", 3, []int{2}, []int{2}, 2},
		{"its kubelet alone is", 3, []int{2}, nil, 3},
		{"its speaker alone is", 3, nil, []int{2}, 3},
		{"a third is dead", 9, []int{6, 7, 8}, []int{6, 7, 8}, 6},
		{"more is cut off", 9, []int{5, 6, 7, 8}, []int{5, 6, 7, 8}, 9},
		{"all kubelets are away", 4, []int{0, 1, 2, 3}, nil, 4},
		{"and a node is dead", 4, []int{0, 1, 2, 3}, []int{3}, 3},
	} {
		if got := HoldersOf(aFleet(tt.nodes, "w", tt.notReady, tt.missed), nil); len(got) != tt.want || !slices.Equal(got["n00"], []string{"w"}) {
			t.Errorf("%s: %d are waited for, want %d: %v", tt.name, len(got), tt.want, got)
		}
	}
	c := snapshot.Of(
		&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "leaves"}, Status: v1alpha1.SpeakerStatusStatus{Leaving: true}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leaves"}},
		&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "without a speaker"}},
	)
	if got := HoldersOf(c, nil); len(got) > 0 {
		t.Errorf("%v", got)
	}
	// A DaemonSet that has left a node leaves its SpeakerStatus there.
	if got := HoldersOf(aFleet(3, "w", nil, nil), map[string]struct{}{"n00": {}, "n02": {}, "n07": {}}); len(got) != 2 || got["n01"] != nil {
		t.Errorf("with a node that has no pod any more: %v", got)
	}
}

// While no kubelet reaches its API server, which the controller does, nobody is brought
// the new key. It is not written with before that, and the old one stays for as long.
func TestTheKeyWaitsForKubelets(t *testing.T) {
	const every = time.Hour
	key := func(file []byte) string {
		k, err := gossipkey.Derive(gossipkey.Secrets(file)[0])
		if err != nil {
			t.Fatal(err)
		}
		return gossipkey.Print(k)
	}
	file, stage, now := NewMembersKey(), KeySettled, time.Unix(1000, 0)
	old, since, c := key(file), now, aFleet(5, key(file), []int{0, 1, 2, 3, 4}, nil)
	for range 6 * 60 { // minutes
		now = now.Add(time.Minute)
		next, then, _, _ := RotateMembersKey(file, stage, since, now, every, HoldersOf(c, nil))
		if then != stage {
			since = now
		}
		if file, stage = next, then; key(file) != old {
			t.Fatalf("after %v the speakers are to write with a key that none has, stage %q", now.Sub(time.Unix(1000, 0)), stage)
		}
	}
	if stage != KeyAdded {
		t.Errorf("stage %q, the new key waits to be read", stage)
	}
}
