package waf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corazawaf/coraza/v3"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
)

// maxRuleSets bounds the rule sets in force. The first one with the core rules is 12 MiB,
// each other, which shares its patterns, 2 MiB and what its own rules take.
const maxRuleSets = 64

// The reasons why a rule set is not in force.
var (
	errWaiting = errors.New("its rules are being compiled")
	errTooMany = fmt.Errorf("there are more than %d different sets of rules; share the snippets of Ingresses", maxRuleSets)
)

// Options are what a Driver is made with.
type Options struct {
	// Log takes what rules have matched; nil: nobody.
	Log *slog.Logger
}

// Driver compiles rule sets and judges by them.
type Driver struct {
	log   *slog.Logger
	stats stats
	lines lineLimit
	// places are taken while the arguments of a request are judged, which costs
	// processor time: other routes keep half of the processors.
	places chan struct{}
	wake   chan struct{}

	mu   sync.Mutex
	sets map[seclang.RuleSet]*ruleSet
}

// ruleSet is one that routes ask for.
type ruleSet struct {
	driver *Driver
	rules  seclang.RuleSet
	waf    atomic.Pointer[coraza.WAF] // nil: it is not in force
	tried  chan struct{}              // closed once it is, or cannot be

	// Of Driver.mu.
	err   error // why it is not in force
	wants int   // the order in which it was asked for
}

// New returns a Driver. Only one per process may judge: Coraza's way to read forms
// and JSON is replaced for all of it.
func New(o Options) *Driver {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	registerForms()
	registerJSON()
	return &Driver{
		log: o.Log, stats: newStats(),
		places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		wake:   make(chan struct{}, 1),
		sets:   map[seclang.RuleSet]*ruleSet{},
	}
}

// Prepare has rule sets compiled beside those that there are, in that order.
func (d *Driver) Prepare(list []seclang.RuleSet) {
	d.mu.Lock()
	for _, r := range list {
		if d.sets[r] == nil {
			d.sets[r] = &ruleSet{driver: d, rules: r, tried: make(chan struct{}), err: errWaiting, wants: d.stats.next()}
		}
	}
	d.mu.Unlock()
	d.notify()
}

// Wait returns when each of the rule sets is in force or cannot be, or ctx ends.
func (d *Driver) Wait(ctx context.Context, list []seclang.RuleSet) {
	for _, r := range list {
		d.mu.Lock()
		s := d.sets[r]
		d.mu.Unlock()
		if s == nil {
			continue
		}
		select {
		case <-s.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Retain forgets all rule sets but these.
func (d *Driver) Retain(list []seclang.RuleSet) {
	kept := make(map[seclang.RuleSet]*ruleSet, len(list))
	d.mu.Lock()
	for _, r := range list {
		if s := d.sets[r]; s != nil {
			kept[r] = s
		}
	}
	gone := d.sets
	d.sets = kept
	d.mu.Unlock()
	for r, s := range gone {
		if kept[r] == nil {
			s.forget()
		}
	}
	d.notify()
}

func (d *Driver) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run compiles what was asked for, one after the other, until ctx ends.
func (d *Driver) Run(ctx context.Context) error {
	for {
		for s := d.due(); s != nil && ctx.Err() == nil; s = d.due() {
			began := time.Now()
			waf, err := compile(s.rules)
			d.stats.compiled(time.Since(began), err)
			d.settle(s, waf, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		}
	}
}

// due returns the rule set to compile next, nil for none.
func (d *Driver) due() (next *ruleSet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	inForce := 0
	for _, s := range d.sets {
		if s.waf.Load() != nil {
			inForce++
		}
	}
	for _, s := range d.sets {
		waits := errors.Is(s.err, errWaiting) || errors.Is(s.err, errTooMany)
		switch {
		case waits && inForce >= maxRuleSets:
			s.settled(errTooMany)
		case waits && (next == nil || s.wants < next.wants):
			next = s
		}
	}
	return next
}

func (d *Driver) settle(s *ruleSet, waf coraza.WAF, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		s.waf.Store(&waf)
	}
	s.settled(err)
	if d.sets[s.rules] != s {
		s.forget() // nobody wants it any more
	}
}

// settled notes the outcome, under Driver.mu.
func (s *ruleSet) settled(err error) {
	s.err = err
	select {
	case <-s.tried:
	default:
		close(s.tried)
	}
}

// forget frees what the rules of s do not share. Requests under way keep them.
func (s *ruleSet) forget() {
	waf := s.waf.Swap(nil)
	if waf == nil {
		return
	}
	if c, ok := (*waf).(io.Closer); ok {
		c.Close() // which cannot fail
	}
}

// Fault says why a rule set is not in force; nil: it is.
func (d *Driver) Fault(r seclang.RuleSet) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sets[r]; s != nil {
		return s.err
	}
	return errWaiting
}

// Inspector returns who judges by r, now or as soon as it is in force.
func (d *Driver) Inspector(r seclang.RuleSet) filter.Inspector {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sets[r]; s != nil {
		return s
	}
	return &ruleSet{driver: d, rules: r} // nobody asked for it, so it never is
}

// Begin implements filter.Inspector.
func (s *ruleSet) Begin(ex *exchange.Exchange, id string, at *filter.Place) (exchange.Inspection, exchange.Verdict) {
	waf := s.waf.Load()
	switch {
	case s.rules.State() == seclang.Off:
		return nil, exchange.Verdict{}
	case waf == nil:
		return nil, exchange.Verdict{Status: 503}
	}
	i := s.inspection(*waf, id, ex, at)
	return i, i.head(ex)
}

var _ filter.Inspector = (*ruleSet)(nil)
