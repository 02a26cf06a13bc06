package rtadv

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// Options of a Finder.
type Options struct {
	Log *slog.Logger
}

// Link is what is known of one.
type Link struct {
	// Router at its other end, a link-local address with the interface as its
	// zone; invalid: none was heard.
	Router netip.Addr
	// Own is the link-local address that we advertise from, without a zone: where
	// the router looks for us.
	Own netip.Addr
	// Problem says why there is none, or why it may be another one; "" all is well.
	Problem string
}

// Finder finds routers.
type Finder struct {
	log   *slog.Logger
	want  atomic.Pointer[[]string]
	wake  chan struct{}
	watch chan struct{}

	mu    sync.Mutex
	state map[string]Link // by interface; replaced, never modified
}

// New returns a Finder that is silent until Run.
func New(o Options) *Finder {
	f := &Finder{log: o.Log, wake: make(chan struct{}, 1), watch: make(chan struct{}, 1), state: map[string]Link{}}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.want.Store(new([]string))
	return f
}

// Set declares the interfaces, by name. It never blocks, and the latest wins.
func (f *Finder) Set(interfaces []string) {
	if slices.Equal(*f.want.Swap(&interfaces), interfaces) {
		return
	}
	poke(f.wake)
}

// Watch signals that State changed.
func (f *Finder) Watch() <-chan struct{} { return f.watch }

// State is what is known, by interface. It must not be modified.
func (f *Finder) State() map[string]Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// tell publishes what is known of a link; nil: it is not wanted any more.
func (f *Finder) tell(name string, now *Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.state[name]
	if known == (now != nil) && (!known || was == *now) {
		return
	}
	next := maps.Clone(f.state)
	delete(next, name)
	if now != nil {
		next[name] = *now
		f.log.Info("link of an unnumbered session", "interface", name, "router", now.Router, "problem", now.Problem)
	}
	f.state = next
	poke(f.watch)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run advertises and listens until ctx ends.
func (f *Finder) Run(ctx context.Context) error {
	type running struct {
		stop context.CancelFunc
		done chan struct{}
	}
	have := map[string]running{}
	end := func(name string) {
		have[name].stop()
		<-have[name].done
		delete(have, name)
	}
	defer func() {
		for name := range have {
			end(name)
		}
	}()
	for {
		want := *f.want.Load()
		for _, name := range want {
			if _, runs := have[name]; !runs {
				of, stop := context.WithCancel(ctx)
				r := running{stop, make(chan struct{})}
				have[name] = r
				go func() {
					defer close(r.done)
					(&link{name: name, finder: f}).run(of)
				}()
			}
		}
		for name := range have {
			if !slices.Contains(want, name) {
				end(name)
				f.tell(name, nil)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
	}
}
