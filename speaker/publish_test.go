package speaker

import (
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
)

// Edges are written soon; sessions with routers, the rarer the more speakers there
// are, and who is alive at a steady pace, since few write it.
func TestTheMoreSpeakersTheRarerEachWrites(t *testing.T) {
	status := func(alive int32, session string, addresses ...string) *v1alpha1.SpeakerStatusStatus {
		s := &v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{Alive: alive}}
		s.BGPSessions = []v1alpha1.BGPSession{{Peer: "router", State: session}}
		for _, a := range addresses {
			s.Announcing = append(s.Announcing, v1alpha1.Announcing{Address: a})
		}
		return s
	}
	for _, c := range []struct {
		name  string
		want  *v1alpha1.SpeakerStatusStatus
		nodes int
		pause time.Duration
	}{
		{"a member less, of three", status(2, "up"), 3, 5 * time.Second},
		{"a member less, of a thousand", status(2, "up"), 1000, 5 * time.Second},
		{"a session less, of a hundred", status(3, "down"), 100, 5 * time.Second},
		{"a session less, of a thousand", status(3, "down"), 1000, 50 * time.Second},
		{"a member less and a session, of a thousand", status(2, "down"), 1000, 50 * time.Second},
		{"an address more, of a thousand", status(2, "down", "10.0.0.1"), 1000, 500 * time.Millisecond},
	} {
		if got := pause(status(3, "up"), c.want, c.nodes); got != c.pause {
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
