package controller

import (
	"bytes"
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

// Who is waited for: speakers of nodes that are there. The others get the file as they
// come back.
func TestNodesThatAreAwayAreNotWaitedFor(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}}}
	}
	speaks := func(name string, words ...string) *v1alpha1.SpeakerStatus {
		return &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.SpeakerStatusStatus{GossipSecrets: words}}
	}
	c := snapshot.Of(
		node("here", corev1.ConditionTrue), speaks("here", "w1", "w2"), node("old", corev1.ConditionTrue), speaks("old"),
		node("leaves", corev1.ConditionTrue), &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "leaves"}, Status: v1alpha1.SpeakerStatusStatus{Leaving: true}},
		node("dead", corev1.ConditionUnknown), speaks("dead", "w1"), speaks("deleted", "w1"), node("mute", corev1.ConditionTrue),
	)
	got := HoldersOf(c, nil)
	if len(got) != 2 || !slices.Equal(got["here"], []string{"w1", "w2"}) || got["old"] != nil {
		t.Errorf("%v", got)
	}
	// A DaemonSet that has left a node leaves its SpeakerStatus there.
	got = HoldersOf(c, map[string]struct{}{"here": {}, "leaves": {}, "dead": {}, "mute": {}})
	if _, left := got["old"]; left || len(got) != 1 {
		t.Errorf("with a node that has no pod any more: %v", got)
	}
}
