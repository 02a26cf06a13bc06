package speaker

import (
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
)

// Edges are written soon; who is alive, the rarer the more speakers there are.
func TestTheMoreSpeakersTheRarerEachWrites(t *testing.T) {
	status := func(alive, expected int32, addresses ...string) *v1alpha1.SpeakerStatusStatus {
		s := &v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{Alive: alive, Expected: expected}}
		for _, a := range addresses {
			s.Announcing = append(s.Announcing, v1alpha1.Announcing{Address: a})
		}
		return s
	}
	for _, c := range []struct {
		name       string
		have, want *v1alpha1.SpeakerStatusStatus
		pause      time.Duration
	}{
		{"a member less, of three", status(3, 3), status(2, 3), 5 * time.Second},
		{"a member less, of a hundred", status(100, 100), status(99, 100), 5 * time.Second},
		{"a member less, of a thousand", status(1000, 1000), status(999, 1000), 50 * time.Second},
		{"an address more, of a thousand", status(1000, 1000), status(999, 1000, "10.0.0.1"), 500 * time.Millisecond},
	} {
		if got := pause(c.have, c.want); got != c.pause {
			t.Errorf("%s: written %v after the last write, want %v", c.name, got, c.pause)
		}
	}
}

// An end waits for what it has to say to be written, not for the count of the
// living.
func TestAnEndWaitsForItsLastWords(t *testing.T) {
	s, _ := lone(t)
	p := newPublisher(s.opts)
	for leaving, flushed := range map[bool]bool{false: true, true: false} {
		p.set(v1alpha1.SpeakerStatusStatus{Leaving: leaving, Members: v1alpha1.SpeakerMembers{Alive: 2, Expected: 3}})
		if p.flushed() != flushed {
			t.Errorf("leaving %v: flushed is %v", leaving, !flushed)
		}
	}
}
