package stapler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/refresh"
)

// Options are what a Stapler is made with. Zero values mean the defaults.
type Options struct {
	// Refuse says why a responder at an address is not asked; empty: it is. Nil: all are.
	Refuse func(netip.Addr) string
	// FirstPause is how long after a failure a responder is asked again, at first; a
	// minute.
	FirstPause time.Duration
	Log        *slog.Logger
}

const (
	// maxCertificates is for how many certificates there are responses.
	maxCertificates = 10_000
	// atOnce is how many responders are asked at a time.
	atOnce = 4
	// longestPause is between two questions about one certificate.
	longestPause = time.Hour
)

// id is a certificate, whatever value holds it.
type id = [sha256.Size]byte

func idOf(c *tls.Certificate) id { return sha256.Sum256(c.Certificate[0]) }

// Stapler keeps responses.
type Stapler struct {
	options Options
	http    *http.Client
	wake    chan struct{}
	stapled atomic.Pointer[map[*tls.Certificate]*stapled]

	mu      sync.Mutex
	wanted  map[*tls.Certificate]id
	entries map[id]*entry
}

// stapled is a certificate with a response, and until when that is good. It is
// immutable.
type stapled struct {
	certificate *tls.Certificate
	until       time.Time
}

// entry is what is known of one certificate.
type entry struct {
	from  *tls.Certificate
	raw   []byte // the response; nil: there is none
	until time.Time
	due   time.Time // of the next question
	pause time.Duration
	busy  bool
}

// New returns a Stapler that has no responses yet.
func New(o Options) *Stapler {
	o.FirstPause = cmp.Or(max(o.FirstPause, 0), time.Minute)
	if o.Refuse == nil {
		o.Refuse = func(netip.Addr) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Stapler{options: o, http: client(o.Refuse), wake: make(chan struct{}, 1), entries: map[id]*entry{}}
}

// Set declares for which certificates responses are wanted. Those without a responder,
// or without their issuer behind them, are passed over.
func (s *Stapler) Set(certificates []*tls.Certificate) {
	s.mu.Lock()
	s.wanted = map[*tls.Certificate]id{}
	live := map[id]bool{}
	for _, c := range certificates {
		if !asks(c) || len(live) >= maxCertificates {
			continue
		}
		name := idOf(c)
		s.wanted[c], live[name] = name, true
		if s.entries[name] == nil {
			s.entries[name] = &entry{from: c}
		}
	}
	maps.DeleteFunc(s.entries, func(name id, _ *entry) bool { return !live[name] })
	s.publish()
	s.mu.Unlock()
	refresh.Signal(s.wake)
}

// publish puts what is known in the place of what was. It needs the lock.
func (s *Stapler) publish() {
	all := map[*tls.Certificate]*stapled{}
	for c, name := range s.wanted {
		if e := s.entries[name]; e != nil && e.raw != nil {
			with := *c
			with.OCSPStaple = e.raw
			all[c] = &stapled{&with, e.until}
		}
	}
	s.stapled.Store(&all)
}

// With returns c, which may be nil, with a response that is good now, or c itself.
func (s *Stapler) With(c *tls.Certificate) *tls.Certificate {
	all := s.stapled.Load()
	if all == nil || len(*all) == 0 {
		return c
	}
	if found := (*all)[c]; found != nil && time.Now().Before(found.until) {
		return found.certificate
	}
	return c
}

// question is one about a certificate.
type question struct {
	name id
	from *tls.Certificate
}

// Run asks responders until ctx ends.
func (s *Stapler) Run(ctx context.Context) error {
	defer s.http.CloseIdleConnections()
	return refresh.Loop[question]{AtOnce: atOnce, Due: s.due, Ask: func(ctx context.Context, q question) {
		got, err := s.fetch(ctx, q.from)
		if err != nil {
			s.options.Log.Warn("no OCSP response for a certificate", "subject", q.from.Leaf.Subject, "error", err)
		}
		s.learn(q.name, got, err, time.Now())
	}}.Run(ctx, s.wake)
}

// due takes the certificates whose time has come, and returns how long it is until the
// next.
func (s *Stapler) due(now time.Time) (ask []question, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = longestPause
	for name, e := range s.entries {
		switch wait := e.due.Sub(now); {
		case e.busy:
		case wait <= 0:
			e.busy = true
			ask = append(ask, question{name, e.from})
		default:
			next = min(next, wait)
		}
	}
	return ask, next
}

// learn takes what a responder said, or why there is nothing. What was good stays for
// as long as it is, unless the responder says now that it is not.
func (s *Stapler) learn(name id, got response, err error, now time.Time) {
	s.mu.Lock()
	defer refresh.Signal(s.wake)
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil {
		return
	}
	e.busy = false
	if err != nil {
		e.pause = min(max(2*e.pause, s.options.FirstPause), longestPause)
		e.due = now.Add(e.pause)
		if got.revoked {
			e.raw = nil
			s.publish()
		}
		return
	}
	e.raw, e.until, e.pause = got.raw, got.until, 0
	e.due = now.Add(max(got.until.Sub(now)/2, s.options.FirstPause))
	s.publish()
}
