package speaker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
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

// A death is told the later after another the more speakers watch, and not by those that
// have told of it.
func TestDeathsAreToldAtAPace(t *testing.T) {
	for nodes, want := range map[int]time.Duration{3: edgePause, 40: 2 * time.Second, 5000: quietPause} {
		if got := deathPause(nodes); got != want {
			t.Errorf("of %d nodes: %v after another, want %v", nodes, got, want)
		}
	}
	status := func(missed ...string) *v1alpha1.SpeakerStatusStatus {
		return &v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{NotAlive: missed}}
	}
	for name, c := range map[string]struct {
		have, want *v1alpha1.SpeakerStatusStatus
		tells      bool
	}{
		"a death":    {status(), status("n2: it does not answer"), true},
		"another":    {status("n2: it does not answer"), status("n2: it does not answer", "n3: it does not answer"), true},
		"the same":   {status("n2: it does not answer"), status("n2: it does not answer"), false},
		"it is back": {status("n2: it does not answer"), status(), false},
		"a goodbye":  {status(), status("n2: it has left"), false},
	} {
		if got := tellsOfDeath(c.have, c.want); got != c.tells {
			t.Errorf("%s: tells of a death: %t", name, got)
		}
	}
}

// refusing is a writer whose server refuses everything, and how often it did.
type refusing struct {
	cluster.Writer
	at []time.Time
}

func (w *refusing) UpdateStatus(context.Context, snapshot.Object) error {
	w.at = append(w.at, time.Now())
	return cluster.ErrRefused
}

// A write that failed is tried again after a while, however often something else is wanted
// meanwhile: the longer the more nodes there are, and not by all at the same time.
func TestFailedWritesAreTriedApart(t *testing.T) {
	for nodes, most := range map[int]float64{3: 1.5, 200: 100, 1000: 100, 5000: 100} {
		const tries = 1000
		var sum time.Duration
		for range tries {
			sum += failurePause(nodes)
		}
		if rate := float64(nodes) / (sum / tries).Seconds(); rate > 1.1*most {
			t.Errorf("%d nodes try %.0f times a second, want %v at most", nodes, rate, most)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		w := &refusing{}
		p := newPublisher(Options{Source: files.Source, Writer: w, NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
		running.Go(func() { _ = p.run(ctx) })
		for i := range 600 {
			p.set(v1alpha1.SpeakerStatusStatus{Interfaces: []v1alpha1.SpeakerInterface{{Name: "eth0", Up: i%2 == 0}}})
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		running.Wait()
		if n := len(w.at); n < 20 || n > 50 {
			t.Errorf("tried %d times in a minute, want about 30", n)
		}
		pauses := map[time.Duration]bool{}
		for i := range w.at[1:] {
			pauses[w.at[i+1].Sub(w.at[i])] = true
		}
		if len(pauses) < 10 {
			t.Errorf("all are in step: pauses of %v", slices.Sorted(maps.Keys(pauses)))
		}
	})
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

// counted keeps what is written.
type counted struct {
	cluster.Writer
	mu    sync.Mutex
	wrote []*v1alpha1.SpeakerStatus
}

func (w *counted) UpdateStatus(ctx context.Context, o snapshot.Object) error {
	w.mu.Lock()
	w.wrote = append(w.wrote, o.(*v1alpha1.SpeakerStatus).DeepCopy())
	w.mu.Unlock()
	return w.Writer.UpdateStatus(ctx, o)
}

func (w *counted) taken() []*v1alpha1.SpeakerStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.wrote
	w.wrote = nil
	return out
}

// Addresses that come one after the other are written once, also if some more come every
// moment; a member that has left and is back soon is not missed in public; and an interface
// is told at once, as is a death.
func TestWhatSettlesIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = files.Run(ctx) })
		<-files.Synced()
		w := &counted{Writer: files}
		p := newPublisher(Options{Source: files.Source, Writer: w, NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
		running.Go(func() { _ = p.run(ctx) })
		status := v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{Alive: 3, Expected: 3}}
		status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", Up: true}}
		wrote := func(what string, wait time.Duration, want int) []*v1alpha1.SpeakerStatus {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			got := w.taken()
			if len(got) != want {
				t.Errorf("%s: %d writes, want %d", what, len(got), want)
			}
			return got
		}
		take := func(n int) {
			for i := range n {
				status.Announcing = append(slices.Clone(status.Announcing), v1alpha1.Announcing{Address: fmt.Sprintf("10.0.0.%d", i)})
				status.AnnouncingCount++
				p.set(status)
				time.Sleep(edgeSettles / 5)
			}
		}
		p.set(status)
		wrote("the first", time.Millisecond, 1)
		time.Sleep(time.Minute)
		take(10)
		if got := wrote("ten addresses", time.Minute, 1); len(got) == 1 && got[0].Status.AnnouncingCount != 10 {
			t.Errorf("ten addresses: %d are written", got[0].Status.AnnouncingCount)
		}
		take(30)
		wrote("addresses without end", 0, 1)
		wrote("and the last of them", time.Minute, 1)
		status.Members = v1alpha1.SpeakerMembers{Alive: 2, Expected: 3, NotAlive: []string{"n2: it has left"}}
		p.set(status)
		time.Sleep(3 * time.Second)
		status.Members = v1alpha1.SpeakerMembers{Alive: 3, Expected: 3}
		p.set(status)
		wrote("a member that is back soon", time.Minute, 0)
		status.Members = v1alpha1.SpeakerMembers{Alive: 2, Expected: 3, NotAlive: []string{"n2: it does not answer"}}
		p.set(status)
		wrote("a member that has died", time.Millisecond, 1)
		for i := range 10 { // a rack
			status.Members.NotAlive = append(slices.Clone(status.Members.NotAlive), fmt.Sprintf("n%d: it does not answer", i+3))
			p.set(status)
			time.Sleep(edgePause / 5)
		}
		if got := wrote("ten more", time.Minute, 2); len(got) == 2 && len(got[1].Status.Members.NotAlive) != 11 {
			t.Errorf("eleven are missing: %q are written", got[1].Status.Members.NotAlive)
		}
		status.Members.NotAlive = status.Members.NotAlive[:1]
		p.set(status)
		wrote("one is back", 4*time.Second, 0)
		wrote("and stays", 2*time.Second, 1)
		status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0"}}
		p.set(status)
		wrote("an interface that is down", time.Millisecond, 1)
		stop()
		running.Wait()
	})
}
