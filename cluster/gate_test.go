package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/snapshot"
)

// outage is an API server that fails for a fleet, all watches of which break at once.
type outage struct {
	start    time.Time
	lasts    time.Duration
	mu       sync.Mutex
	requests []time.Duration // when each came
}

var errRefused = errors.New("connection refused")

func (o *outage) ask() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := time.Since(o.start)
	o.requests = append(o.requests, at)
	if at < o.lasts {
		return errRefused
	}
	return nil
}

// watch is what a reflector does about one kind whose watch has broken.
func (o *outage) watch(ctx context.Context, g *gate, kind snapshot.Kind) {
	for broken := true; ; {
		t, err := g.enter(ctx, kind, broken)
		if err != nil {
			return
		}
		err = o.ask()
		g.leave(ctx, t, err)
		if err == nil {
			return
		}
		time.Sleep(firstDelay) // the reflector's own
	}
}

// A fleet that loses its API server asks for it at a rate that the server can bear, and
// so it comes back. In a small one nobody waits. The time is made up.
func TestAFleetComesBackAtABearableRate(t *testing.T) {
	const kinds = 11
	for _, tt := range []struct {
		nodes, processes int
		within           time.Duration
	}{{3, 3, 10 * time.Second}, {100, 100, 20 * time.Second}, {1000, 1000, time.Minute}, {5000, 500, 4 * time.Minute}} {
		inMadeUpTime(t, func(t *testing.T) {
			o := &outage{start: time.Now(), lasts: 30 * time.Second}
			var fleet sync.WaitGroup
			for range tt.processes {
				g := newGate(func() int { return tt.nodes })
				for kind := range snapshot.Kind(kinds) {
					fleet.Go(func() { o.watch(t.Context(), g, kind) })
				}
			}
			fleet.Wait()
			took := time.Since(o.start) - o.lasts
			share := tt.nodes / tt.processes // of the fleet that is here
			perSecond := map[int]int{}
			for _, at := range o.requests {
				perSecond[int(at.Seconds())] += share
			}
			busiest := 0
			for _, n := range perSecond {
				busiest = max(busiest, n)
			}
			t.Logf("%d nodes: %d requests in the busiest second, %d in all; all is watched %v after the server was back", tt.nodes, busiest, len(o.requests)*share, took.Round(100*time.Millisecond))
			if most := 500 + 100*(share-1)/9; busiest > most {
				t.Errorf("%d nodes send %d requests in a second, more than %d", tt.nodes, busiest, most)
			}
			if took > tt.within {
				t.Errorf("%d nodes are back after %v, want %v", tt.nodes, took, tt.within)
			}
		})
	}
}

// While the server is lost one request asks for all, a different one each time; then
// Services come first.
func TestOneAsksForAll(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T) {
		g := newGate(func() int { return 1 })
		first, err := g.enter(t.Context(), snapshot.Node, false)
		if err != nil {
			t.Fatal(err)
		}
		g.leave(t.Context(), first, errRefused)
		passed := make(chan *ticket)
		for _, kind := range []snapshot.Kind{snapshot.SpeakerStatus, snapshot.EndpointSlice, snapshot.Service} {
			go func() {
				if t, err := g.enter(context.WithoutCancel(t.Context()), kind, false); err == nil {
					passed <- t
				}
			}()
			synctest.Wait() // they come in this order
		}
		asker := <-passed
		if asker.kind != snapshot.SpeakerStatus {
			t.Errorf("%v asks, though it came later", asker.kind)
		}
		select {
		case other := <-passed:
			t.Errorf("%v asks, too", other.kind)
		case <-time.After(askPatience - time.Second):
		}
		g.leave(t.Context(), asker, apierrors.NewForbidden(schema.GroupResource{}, "", nil)) // which is an answer
		var order []snapshot.Kind
		for range 2 {
			t := <-passed
			order = append(order, t.kind)
		}
		if !slices.Equal(order, []snapshot.Kind{snapshot.Service, snapshot.EndpointSlice}) {
			t.Errorf("they come in the order %v", order)
		}
		if g.isWaiting() {
			t.Error("somebody is thought to wait")
		}
	})
}

// What has failed and never comes again is not waited for.
func TestNobodyWaitsForWhatIsGone(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T) {
		g := newGate(func() int { return 1 })
		write, err := g.enter(t.Context(), snapshot.SpeakerStatus, false)
		if err != nil {
			t.Fatal(err)
		}
		g.leave(t.Context(), write, errRefused)
		if !g.isWaiting() {
			t.Error("who has just failed does not come again")
		}
		time.Sleep(comesAgain)
		if g.isWaiting() {
			t.Error("somebody is thought to come again")
		}
		ctx, hangUp := context.WithCancel(t.Context())
		asks := make(chan struct{})
		go func() {
			defer close(asks)
			if asker, err := g.enter(ctx, snapshot.Service, true); err == nil {
				time.Sleep(time.Second)
				hangUp()
				g.leave(ctx, asker, context.Canceled)
			}
		}()
		time.Sleep(lastDelay)
		<-asks
		if g.isWaiting() {
			t.Error("who has hung up is thought to come again")
		}
	})
}

// A watch that would have ended just then waits with those that the server has broken.
func TestWhoseTimeIsOverWaitsWithTheOthers(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T) {
		g, began := newGate(func() int { return 1000 * fleetRate }), time.Now()
		var waiting sync.WaitGroup
		for _, broken := range []bool{true, false} {
			waiting.Go(func() {
				passed, err := g.enter(t.Context(), snapshot.Service, broken)
				if err != nil {
					t.Error(err)
					return
				}
				g.leave(t.Context(), passed, nil)
				if waited := time.Since(began); waited < time.Second {
					t.Errorf("broken %v: it has waited for %v only", broken, waited)
				}
			})
			synctest.Wait() // they come in this order
		}
		waiting.Wait()
	})
}

// A write that comes in the moment in which the watches break waits with them, though none of
// them has asked again yet.
func TestWhatComesWhenWatchesBreakWaits(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T) {
		g := newGate(func() int { return 1000 * fleetRate })
		for since, waits := range map[time.Duration]bool{0: true, breakTime / 2: true, 2 * breakTime: false} {
			g.broke()
			time.Sleep(since)
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			passed, err := g.enter(ctx, snapshot.SpeakerStatus, false)
			if (err != nil) != waits {
				t.Errorf("%v after a watch has broken: %v", since, err)
			}
			if err == nil {
				g.leave(ctx, passed, nil)
			}
			stop()
		}
	})
}

// Who asks for all and is not answered, or goes, holds up nobody for ever.
func TestAnAskerMayGo(t *testing.T) {
	for name, end := range map[string]func(*gate, context.CancelFunc){
		"hangs":    func(*gate, context.CancelFunc) {},
		"hangs up": func(_ *gate, stop context.CancelFunc) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			inMadeUpTime(t, func(t *testing.T) {
				g := newGate(func() int { return 1 })
				lost, _ := g.enter(t.Context(), snapshot.Service, false)
				g.leave(t.Context(), lost, errRefused)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				asker, err := g.enter(ctx, snapshot.Service, true)
				if err != nil {
					t.Fatal(err)
				}
				end(g, stop)
				if ctx.Err() != nil {
					g.leave(ctx, asker, ctx.Err())
				}
				if _, err := g.enter(t.Context(), snapshot.Node, true); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A watch whose time is over is not held up, and neither is one that the server refuses.
func TestTheGateIsOpen(t *testing.T) {
	g := newGate(func() int { return 1_000_000 })
	for _, err := range []error{nil, apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewNotFound(schema.GroupResource{}, "")} {
		ticket, entered := g.enter(t.Context(), snapshot.Service, false)
		if entered != nil {
			t.Fatal(entered)
		}
		g.leave(t.Context(), ticket, err)
	}
	for _, err := range []error{apierrors.NewTooManyRequests("", 1), apierrors.NewInternalError(errRefused), errRefused} {
		if isAnswer(err) {
			t.Errorf("%v counts as an answer", err)
		}
	}
}

// A speaker takes its time in a large cluster. A controller, which may watch a name in
// each of a thousand namespaces, does not: there are two of them.
func TestOnlyWhoIsManyTakesItsTime(t *testing.T) {
	for every, want := range map[bool]time.Duration{true: time.Second, false: time.Second / fleetRate} {
		a := remembering(t, "", func(o *APIOptions) { o.OnEveryNode = every })
		a.enter([]change{{apply: func(l *ledger) {
			for i := range fleetRate {
				l.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), ResourceVersion: "1"}})
			}
		}}})
		if got := a.gate.distance(); got != want {
			t.Errorf("on every node %v: %v between two requests, want %v", every, got, want)
		}
	}
}
