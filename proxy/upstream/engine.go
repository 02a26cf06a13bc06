package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/streams"
)

// Options are the limits of an Engine. Zero values mean the defaults, which are
// those of ingress-nginx.
type Options struct {
	ConnectTimeout time.Duration // 5 s
	// ReadTimeout and SendTimeout bound the time between two reads or writes,
	// not the whole: 60 s.
	ReadTimeout time.Duration
	SendTimeout time.Duration
	// UpgradeTimeout is how long an upgraded connection may be silent: 1 h.
	UpgradeTimeout time.Duration
	MaxIdle        int           // idle connections per endpoint, for more than a moment: 320
	IdleTimeout    time.Duration // 60 s
	MaxLifetime    time.Duration // of a connection: 1 h
	MaxRequests    int           // per connection: 10,000
	MaxHead        int           // bytes of a response head: 256 KiB
	MaxOpen        int           // connections to all endpoints together: no bound
	// MaxShared is how many connections of HTTP/2 one endpoint has: 64. Each carries
	// as many requests as the pod allows, and MaxStreams at most: 256.
	MaxShared, MaxStreams int
	Log                   *slog.Logger
	// TerseErrors keeps the names of Services out of what clients are told.
	TerseErrors bool
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	set(&o.ConnectTimeout, 5*time.Second)
	set(&o.ReadTimeout, time.Minute)
	set(&o.SendTimeout, time.Minute)
	set(&o.UpgradeTimeout, time.Hour)
	set(&o.IdleTimeout, time.Minute)
	set(&o.MaxLifetime, time.Hour)
	if o.MaxIdle <= 0 {
		o.MaxIdle = 320
	}
	if o.MaxRequests <= 0 {
		o.MaxRequests = 10_000
	}
	if o.MaxHead <= 0 {
		o.MaxHead = 256 << 10
	}
	if o.MaxOpen <= 0 {
		o.MaxOpen = math.MaxInt32
	}
	o.MaxShared = cmp.Or(o.MaxShared, 64)
	o.MaxStreams = cmp.Or(o.MaxStreams, 256)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	// maxTries is how many endpoints one request may try without success.
	maxTries = 3
	// maxRaces is how many more may leave the set while it tries them.
	maxRaces = 16
)

// Engine holds the backends and what they share.
type Engine struct {
	options      Options
	keeping      atomic.Pointer[Options] // with how connections are kept now
	rules        exchange.Forwarding     // of routes that say nothing
	transactions sync.Pool
	buffers      sync.Pool // of *[]byte, bufferSize long
	http2        *streams.Client
	places       places

	mu       sync.Mutex
	backends map[route.Backend]*Backend
	tunnels  map[*tunnel]struct{}
	closing  bool
	tunneled sync.WaitGroup
	ended    bool           // Run has
	watching sync.WaitGroup // who checks endpoints
}

// New returns an Engine without backends.
func New(o Options) *Engine {
	e := &Engine{
		options:  o.withDefaults(),
		backends: map[route.Backend]*Backend{},
		tunnels:  map[*tunnel]struct{}{},
	}
	o = e.options
	e.http2 = streams.New(streams.Options{HeadSize: o.MaxHead, Streams: o.MaxStreams, WriteTimeout: o.SendTimeout})
	e.rules = exchange.Forwarding{
		ConnectTimeout: o.ConnectTimeout, ReadTimeout: o.ReadTimeout, SendTimeout: o.SendTimeout, Tries: maxTries, Next: exchange.NextError,
	}
	e.SetKeeping(Keeping{})
	e.transactions.New = func() any { return newTransaction(e) }
	e.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	return e
}

// Backend returns the backend for what a route leads to, which it makes if there
// is none. A new one answers 503 until SetEndpoints.
func (e *Engine) Backend(of route.Backend) *Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.backends[of]
	if b == nil {
		b = &Backend{of: of, name: of.Service.Namespace + "-" + of.Service.Name + "-" + of.Port.String(), engine: e}
		b.picker.Start(rand.Uint64())
		b.state.Store(&targets{set: &balance.Set{Why: "the endpoints of " + of.Called() + " are not known yet"}})
		e.backends[of] = b
	}
	return b
}

// Retain forgets every backend that keep refuses and closes its idle
// connections. Requests that were on their way to it, perhaps chosen by the table
// before but not yet sent, still reach the endpoints it had.
func (e *Engine) Retain(keep func(route.Backend) bool) {
	e.mu.Lock()
	var gone []*Backend
	for of, b := range e.backends {
		if !keep(of) {
			gone = append(gone, b)
			delete(e.backends, of)
		}
	}
	e.mu.Unlock()
	for _, b := range gone {
		b.retire()
	}
}

// Run closes idle connections in time, until ctx ends; then it closes all, and nobody
// checks endpoints any more.
func (e *Engine) Run(ctx context.Context) error {
	tick := time.NewTicker(max(e.options.IdleTimeout/8, time.Second))
	defer tick.Stop()
	var told uint64
	for {
		select {
		case <-ctx.Done():
			e.mu.Lock()
			e.ended = true
			e.mu.Unlock()
			e.Retain(func(route.Backend) bool { return false })
			e.watching.Wait()
			e.DrainTunnels(ctx)
			return nil
		case now := <-tick.C:
			told = e.tellRefused(told)
			for _, b := range e.list() {
				for _, ep := range b.state.Load().endpoints {
					ep.sweep(now, e.keeping.Load())
				}
			}
		}
	}
}

func (e *Engine) list() []*Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*Backend, 0, len(e.backends))
	for _, b := range e.backends {
		list = append(list, b)
	}
	return list
}
