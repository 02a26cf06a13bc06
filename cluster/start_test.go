package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quayside.io/cluster/snapshot"
)

// crowdedSecond is how many requests of a fleet that is spread by chance come in the busiest
// second at most: some 425, and more than 500 in one run of a few hundred.
const crowdedSecond = 575

// beginning is a number of speakers that start at the same time, in a fleet.
type beginning struct {
	what            string
	fleet, starting int
	// restarted says that only their containers are new: a former life has left something.
	restarted bool
	// late is how long the status of the DaemonSet says of all that they are ready.
	late time.Duration
	// away is how long the server does not answer at first.
	away time.Duration
}

// began is what came of it.
type began struct {
	perSecond []int           // requests
	complete  []time.Duration // after which each knew everything, sorted
}

func (b *began) busiest(from int) int {
	return slices.Max(append([]int{0}, b.perSecond[min(from, len(b.perSecond)):]...))
}

func (b *began) last() time.Duration { return b.complete[len(b.complete)-1] }

// run lets them start, in made-up time.
func (b beginning) run(t *testing.T) (out began) {
	kubeconfig, dir := kubeconfigFor(t, "http://fleet"), t.TempDir()
	inMadeUpTime(t, func(t *testing.T) {
		s, start := newFleetServer(), time.Now()
		s.wanted = func() int { return b.fleet }
		s.ready = func() int {
			if time.Since(start) < b.late {
				return b.fleet
			}
			return b.fleet - b.starting + s.watches/watching
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var mu sync.Mutex
		if b.away > 0 {
			s.setAway(true)
		}
		for i := range b.starting {
			a := s.speaker(t, kubeconfig, i, b.fleet, func(o *APIOptions) {
				o.Workload = Workload{Kind: "DaemonSet", Namespace: "quayside-system", Name: "quayside-speaker"}
				if b.restarted {
					o.LastKnown = LastKnown{File: filepath.Join(dir, strconv.Itoa(i)), MaxAge: 24 * time.Hour}
				}
			})
			if b.restarted {
				if err := os.WriteFile(a.opts.LastKnown.File+fleetSuffix, []byte(strconv.Itoa(b.fleet)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			slices := a.Refer(snapshot.EndpointSlice, referred())
			running.Go(func() { _ = a.Run(ctx) })
			running.Go(func() {
				for _, c := range []<-chan struct{}{a.Synced(), slices} {
					select {
					case <-c:
					case <-ctx.Done():
						return
					}
				}
				mu.Lock()
				defer mu.Unlock()
				out.complete = append(out.complete, time.Since(start)-b.away)
			})
		}
		if b.away > 0 {
			time.Sleep(b.away)
			s.setAway(false)
		}
		s.complete(t, b.starting, b.what)
		synctest.Wait()
		s.mu.Lock()
		for at, n := range s.requests {
			for len(out.perSecond) <= at {
				out.perSecond = append(out.perSecond, 0)
			}
			out.perSecond[at] = n
		}
		s.mu.Unlock()
		stop()
		running.Wait()
	})
	slices.Sort(out.complete)
	if len(out.complete) != b.starting {
		t.Fatalf("%d of %d know everything", len(out.complete), b.starting)
	}
	t.Logf("%s: %d of %d speakers start: %d requests in the first second, %d in the busiest after that, %d in all; half know everything after %v, all after %v",
		b.what, b.starting, b.fleet, out.perSecond[0], out.busiest(1), sum(out.perSecond), out.complete[len(out.complete)/2].Round(time.Millisecond), out.last().Round(time.Millisecond))
	return out
}

func sum(of []int) (n int) {
	for _, m := range of {
		n += m
	}
	return n
}

// A fleet that starts at once asks at a rate that its API server can bear. What cannot be held
// back is the first request of each process of which no former life has left anything: it is
// what tells them that they are many. The time is made up; run it with
// QUAYSIDE_TEST_FLEET=5000 for a large fleet.
func TestAFleetStartsAtOnce(t *testing.T) {
	fleet := fleetSize(t, 200)
	const most = crowdedSecond
	for _, b := range []beginning{
		{what: "new pods", fleet: fleet, starting: fleet},
		{what: "new pods, noticed late", fleet: fleet, starting: fleet, late: 300 * time.Millisecond},
		{what: "containers that crashed", fleet: fleet, starting: fleet, restarted: true},
		{what: "containers that crashed, without a server for two minutes", fleet: fleet, starting: fleet, restarted: true, away: 2 * time.Minute},
	} {
		t.Run(b.what, func(t *testing.T) {
			got := b.run(t)
			first := most
			if !b.restarted {
				first = max(most, b.fleet+10)
			}
			if got.perSecond[0] > first || got.busiest(1) > most {
				t.Errorf("%d requests in the first second, %d in another, want %d and %d at most", got.perSecond[0], got.busiest(1), first, most)
			}
			if within := 30*time.Second + 2*window(fleet*(watching+1)); got.last() > within {
				t.Errorf("all is known after %v, want %v", got.last(), within)
			}
		})
	}
}

// Who starts alone in a large fleet, or in a small one, waits for nobody.
func TestWhoStartsAloneDoesNotWait(t *testing.T) {
	for _, tt := range []struct {
		beginning
		within time.Duration
	}{
		{beginning{what: "a new pod", fleet: 5000, starting: 1}, 10 * time.Millisecond},
		{beginning{what: "a small cluster", fleet: 3, starting: 3}, 10 * time.Millisecond},
		{beginning{what: "a small cluster of containers that crashed", fleet: 3, starting: 3, restarted: true}, 10 * time.Millisecond},
		{beginning{what: "thirty at once", fleet: 5000, starting: 30}, 500 * time.Millisecond},
		{beginning{what: "a roll-out of a twentieth", fleet: 5000, starting: 250}, 15 * time.Second},
		{beginning{what: "a container that crashed", fleet: 5000, starting: 1, restarted: true}, 15 * time.Second},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if got := tt.run(t); got.last() > tt.within || got.busiest(0) > crowdedSecond {
				t.Errorf("all is known after %v, want %v; %d requests in a second", got.last(), tt.within, got.busiest(0))
			}
		})
	}
}

// A process without a Workload, such as a controller, starts at once, but for what is more
// than a fleet may send in a second.
func TestWhoWatchesManyNamesTakesItsTime(t *testing.T) {
	for _, tt := range []struct {
		names int
		most  time.Duration
	}{{60, 50 * time.Millisecond}, {3500, 11 * time.Second}} {
		s := newStart(remembering(t, ""))
		now, took, second := time.Now(), time.Duration(0), 0
		for range tt.names {
			if took = s.next(now); took < time.Second {
				second++
			}
		}
		if took > tt.most || second > 500 {
			t.Errorf("%d names are asked for within %v, %d in the first second", tt.names, took, second)
		}
	}
}

func TestWorkloads(t *testing.T) {
	for text, want := range map[string]Workload{
		"": {}, "DaemonSet/ns/x": {"DaemonSet", "ns", "x"}, "Deployment/ns/x": {"Deployment", "ns", "x"},
	} {
		if got, err := ParseWorkload(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "DaemonSet/x", "Pod/ns/x", "DaemonSet//x", "DaemonSet/ns/", "DaemonSet/ns/x/y"} {
		if w, err := ParseWorkload(text); err == nil {
			t.Errorf("%q is %v", text, w)
		}
	}
}

// fleetSize is how many processes a simulated fleet has: as the environment says, or so many.
func fleetSize(t *testing.T, otherwise int) int {
	text := os.Getenv(fleetEnv)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// referred are the Services whose endpoints a speaker of the fleet watches.
func referred() (services []snapshot.Key) {
	for j := range 2 * fewGroups {
		services = append(services, snapshot.Key{Namespace: fmt.Sprintf("team-%d", j), Name: "web"})
	}
	return services
}
