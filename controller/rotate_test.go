package controller

import (
	"bytes"
	"testing"
	"time"
)

// A change of the key leaves no gap: with each file, whoever still has the one before
// reads what is written with it, and the other way round; and in the end the old
// secret is gone.
func TestTheKeyChangesWithoutAGap(t *testing.T) {
	const every = 30 * 24 * time.Hour
	file, stage, now := NewMembersKey(), KeySettled, time.Unix(1000, 0)
	since, first := now, bytes.TrimSpace(file)
	reads := func(file, secret []byte) bool {
		for _, line := range secretsOf(file) {
			if bytes.Equal(line, secret) {
				return true
			}
		}
		return false
	}
	var stages []KeyStage
	for range 6 { // two changes
		next, then, due := RotateMembersKey(file, stage, since, now, every)
		if !bytes.Equal(next, file) || then != stage {
			t.Fatalf("stage %q: changed at once", stage)
		}
		early, _, _ := RotateMembersKey(file, stage, since, due.Add(-time.Second), every)
		if !bytes.Equal(early, file) {
			t.Fatalf("stage %q: changed too early", stage)
		}
		now = due
		if next, then, _ = RotateMembersKey(file, stage, since, now, every); bytes.Equal(next, file) {
			t.Fatalf("stage %q: not changed in time", stage)
		}
		if !reads(file, secretsOf(next)[0]) || !reads(next, secretsOf(file)[0]) {
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
	if len(secretsOf(file)) != 1 || reads(file, first) {
		t.Errorf("the old key is still there: %q", file)
	}
}

// What somebody wrote into the Secret by hand meanwhile is kept, and nothing of it is
// taken away that others may still write with.
func TestAHandWrittenKeyIsAChangeThatIsDone(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, stage := range []KeyStage{KeyAdded, KeyUsed, "nonsense"} {
		file := []byte("one secret of my own\n")
		if got, then, _ := RotateMembersKey(file, stage, now, now.Add(time.Hour), 24*time.Hour); !bytes.Equal(got, file) || then != KeySettled {
			t.Errorf("stage %q: %q, stage %q", stage, got, then)
		}
	}
	two := []byte("\n first of two secrets\nsecond of two secrets")
	got, stage, _ := RotateMembersKey(two, KeySettled, now, now.Add(48*time.Hour), 24*time.Hour)
	if lines := secretsOf(got); len(lines) != 3 || stage != KeyAdded || string(lines[0]) != "first of two secrets" {
		t.Errorf("%q", got)
	}
}
