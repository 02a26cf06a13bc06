package names

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"quayside.io/proxy/refresh"
)

// Options are what a Resolver is made with. Zero values mean the defaults.
type Options struct {
	// Dial connects to a DNS server; as the system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Max is how many names are looked up; 1,000. Those beyond are not.
	Max int
	// Least is the shortest time for which an answer is kept; a second.
	Least time.Duration
	Log   *slog.Logger
}

const (
	// atOnce is how many names are being looked up at a time.
	atOnce = 16
	// patience bounds one lookup, with all its questions.
	patience = 10 * time.Second
	// longest and longestNot are for how long an answer is kept, and that there is none.
	longest    = 5 * time.Minute
	longestNot = 30 * time.Second
	// staleFor is for how long an answer is kept while DNS fails.
	staleFor = time.Hour
	// maxAddrs is how many addresses of one name are kept.
	maxAddrs = 64
)

// Answer is what is known of a name. It is immutable.
type Answer struct {
	Addrs []netip.Addr // ordered
	// Why says in words for the owner of the name's object why there are none.
	Why string
}

func (a Answer) equal(b Answer) bool { return a.Why == b.Why && slices.Equal(a.Addrs, b.Addrs) }

// Resolver keeps the answers for some names.
type Resolver struct {
	options Options
	changed chan struct{}
	wake    chan struct{}

	mu      sync.Mutex
	entries map[string]*entry
	left    map[string]bool // wanted, but too many
}

// entry is one name that is wanted.
type entry struct {
	Answer
	due   time.Time // of the next lookup
	good  time.Time // when DNS answered last
	busy  bool
	fails int // in a row, of DNS itself
}

// New returns a Resolver that knows nothing yet.
func New(o Options) *Resolver {
	o.Max = cmp.Or(max(o.Max, 0), 1000)
	o.Least = cmp.Or(max(o.Least, 0), time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Resolver{options: o, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), entries: map[string]*entry{}}
}

// Set declares which names are wanted: DNS names without a dot at their end. Of too
// many the first by alphabet are kept, and those that are known already before all.
func (r *Resolver) Set(names []string) {
	r.mu.Lock()
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	maps.DeleteFunc(r.entries, func(name string, _ *entry) bool { return !wanted[name] })
	r.left = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch {
		case r.entries[name] != nil:
		case len(r.entries) < r.options.Max:
			r.entries[name] = &entry{Answer: Answer{Why: name + " is being looked up in DNS"}}
		default:
			r.left[name] = true
		}
	}
	r.mu.Unlock()
	refresh.Signal(r.wake)
}

// Lookup returns what is known of a name that is wanted.
func (r *Resolver) Lookup(name string) Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := r.entries[name]; {
	case e != nil:
		return e.Answer
	case r.left[name]:
		return Answer{Why: fmt.Sprintf("%s is not looked up in DNS, since there are more than %d names", name, r.options.Max)}
	}
	return Answer{Why: name + " is about to be looked up in DNS"}
}

// Changed is sent to after answers have become others.
func (r *Resolver) Changed() <-chan struct{} { return r.changed }

// Run looks names up until ctx ends.
func (r *Resolver) Run(ctx context.Context) error {
	return refresh.Loop[string]{AtOnce: atOnce, Due: r.due, Ask: func(ctx context.Context, name string) {
		found, err := r.ask(ctx, name)
		r.learn(name, found, err, time.Now())
	}}.Run(ctx, r.wake)
}

// due takes the names whose time has come, and returns how long it is until the next.
func (r *Resolver) due(now time.Time) (names []string, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = time.Hour
	for name, e := range r.entries {
		switch wait := e.due.Sub(now); {
		case e.busy:
		case wait <= 0:
			e.busy = true
			names = append(names, name)
		default:
			next = min(next, wait)
		}
	}
	return names, next
}

// learn takes the result of a lookup.
func (r *Resolver) learn(name string, found found, err error, now time.Time) {
	r.mu.Lock()
	e := r.entries[name]
	if e == nil {
		r.mu.Unlock()
		return
	}
	before := e.Answer
	e.busy = false
	if err == nil && now.Sub(e.good) <= staleFor && found.misses(e.Addrs) {
		err = found.half // as if DNS had not answered, save for what it told of the other family
		e.Answer = Answer{Addrs: found.with(e.Addrs)}
	}
	switch {
	case err == nil:
		e.Answer, e.good, e.fails = Answer{Addrs: found.addrs}, now, 0
		e.due = now.Add(min(max(found.life, r.options.Least), longest))
	case isNone(err):
		e.Answer, e.good, e.fails = Answer{Why: name + " has no address in DNS"}, now, 0
		e.due = now.Add(min(max(found.life, r.options.Least), longestNot))
	default:
		e.fails++
		e.due = now.Add(min(r.options.Least<<min(e.fails, 5), longestNot))
		if len(e.Addrs) == 0 || now.Sub(e.good) > staleFor {
			e.Answer = Answer{Why: name + " cannot be looked up, since DNS does not answer"}
		}
	}
	changed := !before.equal(e.Answer)
	r.mu.Unlock()
	if err != nil {
		r.options.Log.Debug("a name has no address", "name", name, "error", err)
	}
	if changed {
		refresh.Signal(r.changed)
	}
	refresh.Signal(r.wake)
}
