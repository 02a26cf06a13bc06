package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster/lastknown"
	"quayside.io/cluster/privatefile"
	"quayside.io/cluster/snapshot"
)

// LastKnown is a file in which a process keeps what it knows of the cluster, so that
// its next life can work while the API server is away. Secrets are in it.
type LastKnown struct {
	// File is its path; empty: there is none.
	File string
	// MaxAge is how old what is in it may be when it is used.
	MaxAge time.Duration
}

const (
	// recallAfter is how long a process waits for the API server before it works with
	// what it knew in its former life.
	recallAfter = 3 * time.Second
	// memoryPause lies between two writings of the file, and longer where that is much work:
	// it may have a 200th of the processor's time. A disk that is slow costs none.
	memoryPause = 5 * time.Second
	memoryShare = 200
	// Where nothing changes, the file is written anew this often within MaxAge, to say
	// that all of it is still true.
	memoryRenewals = 24
	// maxMemory bounds the file, in bytes.
	maxMemory = 128 << 20
	// clockSkew is how far ahead of us a file may be written.
	clockSkew = time.Minute
)

// memory keeps an API's LastKnown.
type memory struct {
	api     *API
	options LastKnown
	wait    time.Duration // for the API server
	pause   time.Duration
	work    time.Duration // of the last attempt; 0: nothing was written
	save    func(path string, content []byte) error
	written prometheus.Gauge
	fleet   int // as last written, see formerFleet
}

func newMemory(a *API) *memory {
	return &memory{api: a, options: a.opts.LastKnown, wait: recallAfter, pause: memoryPause, save: privatefile.Write, written: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quayside_last_known_timestamp_seconds", Help: "When the file with what is known of the cluster was last written, in seconds since 1970; 0: not yet.",
	})}
}

// run recalls what was known, if nothing else is, and keeps what is, until ctx ends.
func (m *memory) run(ctx context.Context) {
	if m.options.File == "" {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-m.api.Synced():
	case <-time.After(m.wait):
		if err := m.recall(ctx); err != nil && ctx.Err() == nil {
			m.api.log.Warn("the API server does not answer, and nothing that was known before can be used", "error", err)
		}
	}
	m.keep(ctx)
}

// of says whose file it is.
func (m *memory) of() string {
	o := m.api.opts
	kinds := make([]string, 0, len(o.Kinds))
	for _, k := range o.Kinds {
		kinds = append(kinds, k.String())
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%s %s %s %q %q", m.api.clients.config.Host, o.Component, kinds, o.WatchNamespace, o.SpeakerStatus)
}

// recall enters what was known in a former life.
func (m *memory) recall(ctx context.Context) error {
	known, err := m.read(time.Now())
	if err != nil {
		return err
	}
	var scopes []scope
	for _, p := range known.Parts {
		scopes = append(scopes, scope{p.Kind, p.Key.Namespace, p.Key.Name})
	}
	m.api.references.adopt(scopes, func(wanted map[snapshot.Kind]map[scope]bool) {
		m.api.note(true, func(l *ledger) {
			l.recall(known)
			for kind, scopes := range wanted {
				l.release(kind, scopes)
			}
		})
	})
	if err := m.api.tell(ctx, func(*ledger) {}); err != nil { // it has been done
		return err
	}
	m.api.log.Warn("nothing has been heard from the API server yet; working with what was known before", "at", known.At, "objects", len(known.Objects))
	return nil
}

// read returns what the file holds, if it may be used.
func (m *memory) read(now time.Time) (*lastknown.Known, error) {
	content, err := privatefile.Read(m.options.File, maxMemory)
	if err != nil {
		return nil, err
	}
	known, err := lastknown.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.options.File, err)
	}
	switch age := now.Sub(known.At); {
	case known.Of != m.of():
		return nil, fmt.Errorf("%s is about another cluster, or other kinds: %.200q", m.options.File, known.Of)
	case age > m.options.MaxAge:
		return nil, fmt.Errorf("%s is %v old, more than %v", m.options.File, age.Round(time.Second), m.options.MaxAge)
	case age < -clockSkew:
		return nil, fmt.Errorf("%s is from %v, which is to come", m.options.File, known.At)
	}
	return known, nil
}

// keep writes what is known whenever it has changed, and now and then if not. Where it is not
// known in full that is tried again, since no change may follow when it is.
func (m *memory) keep(ctx context.Context) {
	changes := m.api.Watch()
	defer changes.Stop()
	failed, next := "", time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes.C():
		case <-time.After(next):
		}
		m.work = 0
		whole, err := m.write(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		if next = 0; whole {
			next = m.options.MaxAge / memoryRenewals
		}
		if err != nil && err.Error() != failed {
			m.api.log.Warn("what is known of the cluster is not kept for the next start", "error", err)
		}
		failed = ""
		if err != nil {
			failed = err.Error()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(m.pause, memoryShare*m.work)):
		}
	}
}

// write writes what is known, and reports whether all of it is true now: without contact the
// file stays as old as it is.
func (m *memory) write(ctx context.Context, now time.Time) (whole bool, err error) {
	known := &lastknown.Known{Of: m.of(), At: now}
	var cluster *snapshot.Cluster
	if err := m.api.tell(ctx, func(l *ledger) {
		if len(l.waiting) == 0 && len(l.awaited) == 0 && len(l.recalled) == 0 && m.api.references.areSaid() {
			cluster, known.Parts = l.cluster, l.parts()
		}
	}); err != nil || cluster == nil || m.api.contact.isLost() || m.api.gate.isWaiting() {
		return false, err
	}
	return true, m.store(known, cluster)
}

func (m *memory) store(known *lastknown.Known, cluster *snapshot.Cluster) error {
	began := time.Now()
	for kind := range snapshot.Kinds() {
		known.Objects = slices.AppendSeq(known.Objects, cluster.Objects(kind))
	}
	content, err := lastknown.Encode(known)
	m.work = time.Since(began)
	if err != nil {
		return err
	}
	if len(content) > maxMemory {
		return fmt.Errorf("it has %d bytes, more than %d", len(content), maxMemory)
	}
	if err := m.save(m.options.File, content); err != nil {
		return err
	}
	m.written.Set(float64(known.At.UnixMilli()) / 1000)
	return m.writeFleet()
}

// fleetSuffix ends the name of a second file, with the number of processes of this one's
// kind. A process reads it before anything else, and the first may have a hundred megabytes.
const fleetSuffix = "-fleet"

// mostFleet bounds what is believed of it.
const mostFleet = 10_000

func (m *memory) writeFleet() error {
	n := m.api.processes()
	if n == m.fleet {
		return nil
	}
	m.fleet = n
	return privatefile.Write(m.options.File+fleetSuffix, []byte(strconv.Itoa(n)))
}

// formerFleet is how many processes there were of this one's kind at the end of its former
// life; 0: that is not known.
func (m *memory) formerFleet() int {
	if m.options.File == "" {
		return 0
	}
	text, err := privatefile.Read(m.options.File+fleetSuffix, 16)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return min(max(n, 0), mostFleet)
}

// parts are the scopes that have been seen.
func (l *ledger) parts() (parts []lastknown.Part) {
	for s := range l.seen {
		at := snapshot.Key{Namespace: s.namespace, Name: s.name}
		parts = append(parts, lastknown.Part{Kind: s.kind, Key: at, Whole: l.cluster.Reach(s.kind).Covers(at)})
	}
	return parts
}

// recalledVersion is older than all that a server says.
const recalledVersion = "1"

// recall enters what was known in a former life, of scopes of which nothing has been
// heard in this one. Until a server is heard, nobody waits for others.
func (l *ledger) recall(known *lastknown.Known) {
	l.alone = len(l.seen) == 0
	for _, p := range known.Parts {
		s := scope{p.Kind, p.Key.Namespace, p.Key.Name}
		if l.seen[s] {
			continue
		}
		l.recalled[s] = true
		if p.Whole {
			l.reach(s)
		}
		if !s.narrowed() {
			delete(l.waiting, s.kind)
		}
	}
	for _, o := range known.Objects {
		kind, _ := snapshot.KindOf(o)
		if slices.ContainsFunc(scopesOf(kind, placeOf(o)), func(s scope) bool { return l.recalled[s] }) {
			o.SetResourceVersion(recalledVersion)
			l.put(o)
		}
	}
}

// release drops what is recalled of scopes of a kind that nobody wants: no server will tell of
// them, and as long as something is only recalled nothing is written. What is wanted of it is
// recalled as before.
func (l *ledger) release(kind snapshot.Kind, wanted map[scope]bool) {
	var unwanted []scope
	for s := range l.recalled {
		if s.kind == kind && !wanted[s] {
			unwanted = append(unwanted, s)
		}
	}
	if len(unwanted) == 0 {
		return
	}
	for w := range wanted {
		at := snapshot.Key{Namespace: w.namespace, Name: w.name}
		if l.seen[w] || !slices.ContainsFunc(scopesOf(kind, at), func(s scope) bool { return l.recalled[s] }) {
			continue
		}
		if l.recalled[w] = true; l.cluster.Reach(kind).Covers(at) {
			l.reach(w)
		}
	}
	l.drop(newGroup(kind, "", unwanted), func(at snapshot.Key) bool {
		return slices.ContainsFunc(scopesOf(kind, at), func(s scope) bool { return wanted[s] })
	})
}

// forget drops what is only recalled of a scope: a server has told of it.
func (l *ledger) forget(s scope) {
	l.alone = false
	if !l.recalled[s] {
		return
	}
	delete(l.recalled, s)
	for o := range l.cluster.Objects(s.kind) {
		if s.covers(placeOf(o)) && o.GetResourceVersion() == recalledVersion {
			l.cluster = l.cluster.Without(s.kind, snapshot.KeyOf(o))
		}
	}
}
