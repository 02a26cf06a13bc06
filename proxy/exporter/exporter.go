package exporter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"quayside.io/proxy/refresh"
)

// Options are what an Exporter is made with. Zero values mean the defaults.
type Options struct {
	// Dial connects to the collector; as the system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Node is the name of the machine that the spans are from.
	Node string
	// Patience bounds a question, from its connection to the end of its answer; 10 s.
	Patience time.Duration
	// FirstPause is how long after a collector was unavailable it is asked again, at
	// first; a second.
	FirstPause time.Duration
	// Last is for how long Run goes on when its context has ended; 5 s.
	Last time.Duration
	Log  *slog.Logger
}

// Collector is where spans go, and how. It is comparable.
type Collector struct {
	// Address is host:port; empty: there is none.
	Address string
	// Service is the name that the spans are under: service.name.
	Service string
	// Queue is how many spans may wait, Batch how many travel together, and Delay how
	// long the first of them waits for others.
	Queue, Batch int
	Delay        time.Duration
}

// ConnectTimeout bounds the making of a connection, as for backends. Less than the
// patience with an answer, it tells a collector that is away from one that stalls.
const ConnectTimeout = 5 * time.Second

const (
	// longestPause is between two questions, and retryFor how long a batch is tried.
	longestPause = 30 * time.Second
	retryFor     = time.Minute
)

// Exporter sends spans. Make one with New.
type Exporter struct {
	options   Options
	http      *http.Transport
	lines     *lines
	queue     *queue
	collector atomic.Pointer[Collector]
	changed   chan struct{} // there is another collector

	failing bool // the last question was in vain; Run's alone

	exported, dropped, failed atomic.Uint64
}

// New returns an Exporter that has no collector yet.
func New(o Options) *Exporter {
	o.Patience = cmp.Or(max(o.Patience, 0), 10*time.Second)
	o.FirstPause = cmp.Or(max(o.FirstPause, 0), time.Second)
	o.Last = cmp.Or(max(o.Last, 0), 5*time.Second)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: ConnectTimeout}).DialContext
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{options: o, lines: &lines{dialer: o.Dial, open: map[*line]struct{}{}}, queue: newQueue(), changed: make(chan struct{}, 1)}
	e.http = transport(o, e.lines)
	e.collector.Store(&Collector{})
	return e
}

// Set declares where spans go. What waits goes there too; without a collector nothing
// is taken.
func (e *Exporter) Set(c Collector) {
	old := e.collector.Swap(&c)
	if *old == c {
		return
	}
	if c.Address == "" {
		c.Queue = 0
	}
	e.queue.limit(c.Queue, c.Batch)
	refresh.Signal(e.changed)
	refresh.Signal(e.queue.full) // or what waits would do so for as long as it was to
}

// Span takes the message of a span, or drops it. The bytes are the caller's again when
// it returns.
func (e *Exporter) Span(message []byte) {
	if !e.queue.add(message) {
		e.dropped.Add(1)
	}
}

// Run sends spans until ctx ends, and then what is left.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.lines.end()
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(e.options.Last, cancel) })()
	delay := time.NewTimer(0)
	defer delay.Stop()
	for ctx.Err() == nil {
		if e.queue.empty() {
			select {
			case <-e.queue.some:
			case <-ctx.Done():
				continue
			}
		}
		delay.Reset(e.collector.Load().Delay)
		all := false
		select {
		case <-delay.C:
			all = true
		case <-e.queue.full:
		case <-ctx.Done():
		}
		e.exportAll(ctx, longer, all)
	}
	e.exportAll(ctx, longer, true)
	return nil
}

// exportAll sends what waits: whole batches or, if so asked, all.
func (e *Exporter) exportAll(ctx, longer context.Context, all bool) {
	for b := e.queue.take(all); b != nil; b = e.queue.take(all) {
		e.export(ctx, longer, b)
		e.queue.free(b)
	}
}

// export sends a batch, again and again while the collector is unavailable. When ctx
// has ended it is tried once more; longer is for how long.
func (e *Exporter) export(ctx, longer context.Context, b *batch) {
	pause := e.options.FirstPause
	for began := time.Now(); ; pause = min(2*pause, longestPause) {
		last := ctx.Err() != nil || time.Since(began) > retryFor
		err := e.send(longer, b)
		e.tell(err)
		if !last && errors.Is(err, errUnavailable) {
			e.wait(ctx, pause)
			continue
		}
		lost, part := b.n, (*rejected)(nil)
		switch {
		case err == nil:
			lost = 0
		case errors.As(err, &part):
			lost = min(part.spans, b.n)
		}
		e.exported.Add(uint64(b.n - lost))
		e.failed.Add(uint64(lost))
		return
	}
}

// wait lets a pause pass, more or less: proxies that lost one collector do not come
// back as one. Another collector is asked at once.
func (e *Exporter) wait(ctx context.Context, pause time.Duration) {
	over := time.NewTimer(pause/2 + rand.N(pause))
	defer over.Stop()
	select {
	case <-over.C:
	case <-e.changed:
	case <-ctx.Done():
	}
}

// tell logs when the collector begins to fail, and when it is well again.
func (e *Exporter) tell(err error) {
	before, to := e.failing, e.collector.Load().Address
	e.failing = err != nil
	switch {
	case e.failing && !before:
		e.options.Log.Warn("the collector does not take all spans; see quayside_http_spans_total", "collector", to, "error", err)
	case !e.failing && before:
		e.options.Log.Info("the collector takes spans again", "collector", to)
	}
}
