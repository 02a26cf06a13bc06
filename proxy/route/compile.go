package route

import (
	"cmp"
	"crypto/tls"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
)

// state is what one Compile leaves to the next: its inputs, each object in its
// compiled form, and who depends on what. All of it is immutable and shared with
// the Tables before and after, so a change costs what it touches.
type state struct {
	options Options
	seen    snapshot.Stores // those that were read
	reach   reach           // what could be

	units    snapshot.Store[*unit]  // by keyOf
	byHost   index                  // hosts are Keys without namespace
	byObject index                  // what options and backends name, by keyOf
	bySecret index                  // those with certificates
	slots    snapshot.Store[[]slot] // the backends in use, by Service
	free     int                    // entries of Table.Backends without a Service
	guarded  int                    // hosts with guards
	decoding int                    // hosts with patterns of adopted classes
	ciphered int                    // hosts with cipher suites of their own
	offering int                    // hosts that say whether they offer HTTP/2
	passing  int                    // hosts whose connections are handed on
	renaming int                    // units with further names of hosts
	lenders  int                    // units with a server-snippet
	global   *globalOptions         // never nil after Compile
	scratch  *sync.Pool             // of *[1024]byte
	table    []option               // nil until an object with annotations was compiled
	pairs    snapshot.Store[*keyPair]

	faults      snapshot.Store[[]snapshot.Problem] // by unit
	conflicts   snapshot.Store[[]snapshot.Problem] // by host
	defaultPair *keyPair
	defaults    []snapshot.Problem // of the default certificate
}

// A compiler makes one Table. It works on a copy of the Table before.
type compiler struct {
	c *snapshot.Cluster
	t *Table

	units     *draft[*unit]
	byHost    *draft[users]
	byObject  *draft[users]
	bySecret  *draft[users]
	slots     *draft[[]slot]
	pairs     *draft[*keyPair]
	faults    *draft[[]snapshot.Problem]
	conflicts *draft[[]snapshot.Problem]

	settings        settings                 // of the object at hand; nothing of a Table points into it
	parsed          snapshot.Store[*keyPair] // of a Table that is otherwise given up
	hosts           map[string]bool          // to compile again
	loans           map[loanKey]loan         // other than before
	problemsChanged bool
	certsChanged    bool // or expired
	ownsList        bool // t.Backends is ours to change
	changed         int  // objects to compile
}

// Compile returns the Table of c. prev is the Table before, or nil; what did not
// change since is shared with it.
func Compile(c *snapshot.Cluster, prev *Table, opts Options) *Table {
	return compile(c, prev, opts, sources(c, opts))
}

func compile(c *snapshot.Cluster, prev *Table, opts Options, sources []source) *Table {
	w := &compiler{c: c, hosts: map[string]bool{}}
	if prev == nil {
		prev = &Table{}
	}
	t := *prev
	global := compileGlobal(c, opts, prev.state.global)
	if global != prev.state.global || !opts.same(prev.state.options) || !opts.Classes.Equal(prev.state.options.Classes) || prev.state.seen.IngressClasses != c.IngressClasses || prev.state.free > len(prev.Backends)/2+64 {
		// Start afresh. Only the parsed certificates are worth keeping.
		t = Table{Version: prev.Version, Front: global.front, Unrouted: global.unrouted(), TLS: global.tlsPolicy(), Connections: global.connections(), Collector: global.collector(), state: state{global: global, defaultPair: prev.state.defaultPair}}
		w.parsed, w.problemsChanged, w.certsChanged = prev.state.pairs, true, true
	}
	w.t = &t
	if t.state.scratch == nil {
		t.state.scratch = &sync.Pool{New: func() any { return new([1024]byte) }}
	}
	old := t.state
	w.open()
	t.state.options = opts
	t.state.seen, t.state.reach = c.Stores, reachOf(c)
	t.state.seen.EndpointSlices = snapshot.Store[*discoveryv1.EndpointSlice]{} // never read, and always new

	dirty := w.dirty(&old, prev.NextWake, sources)
	w.changed = len(dirty)
	for _, ref := range dirty {
		w.recompile(ref, sources)
	}
	w.lendSnippets(sources, old.lenders > 0)
	w.compileHosts()
	w.close()
	w.defaultCertificate()
	if w.certsChanged {
		w.schedule()
	}
	if w.problemsChanged {
		w.collectProblems()
	}
	if w.problemsChanged || len(w.hosts) > 0 || !slices.Equal(t.certs, prev.certs) || !t.NextWake.Equal(prev.NextWake) {
		t.Version++
	}
	return &t
}

// open takes up the work where the Table before left it. Only the first Table knows
// how much there is to do.
func (w *compiler) open() {
	s, n := &w.t.state, 0
	if s.units.Len() == 0 {
		n = w.c.Ingresses.Len()
	}
	w.units, w.slots, w.pairs = draftOf(s.units, n), draftOf(s.slots, n), draftOf(s.pairs, 0)
	w.byHost, w.byObject, w.bySecret = draftOf(s.byHost, n), draftOf(s.byObject, n), draftOf(s.bySecret, 0)
	w.faults, w.conflicts = draftOf(s.faults, 0), draftOf(s.conflicts, 0)
}

// close leaves it to the next.
func (w *compiler) close() {
	s := &w.t.state
	w.t.leftOver = w.leftOver()
	s.units, s.slots, s.pairs = w.units.store(), w.slots.store(), w.pairs.store()
	s.byHost, s.byObject, s.bySecret = w.byHost.store(), w.byObject.store(), w.bySecret.store()
	s.faults, s.conflicts = w.faults.store(), w.conflicts.store()
}

// dirty returns the objects to compile again, ordered, so that equal histories
// number their backends alike.
func (w *compiler) dirty(old *state, wake time.Time, sources []source) []snapshot.Ref {
	refs := map[snapshot.Ref]struct{}{}
	for _, s := range sources {
		for key := range s.changed(&old.seen, &w.c.Stores) {
			refs[snapshot.Ref{Kind: s.kind(), Key: key}] = struct{}{}
		}
	}
	users := func(ix index, what snapshot.Key) {
		list, _ := ix.Get(what)
		for key := range list.All() {
			u, _ := old.units.Get(key)
			refs[u.ref] = struct{}{}
		}
	}
	for ref := range changedObjects(&old.seen, &w.c.Stores) {
		users(old.byObject, keyOf(ref))
	}
	for key := range snapshot.Diff(old.seen.Secrets, w.c.Secrets) {
		if pair, ok := old.pairs.Get(key); ok && !pair.of(w.secret(key)) {
			users(old.bySecret, key)
		}
	}
	for key := range turned(old.reach.secrets, w.t.state.reach.secrets, old.bySecret) {
		users(old.bySecret, key)
	}
	for key := range turnedObjects(old.reach, w.t.state.reach, old.byObject) {
		users(old.byObject, key)
	}
	w.dirtyNamespaces(old, refs)
	if now := w.t.state.options.Now; !wake.IsZero() && !now.Before(wake) {
		w.certsChanged = true
		for key, pair := range old.pairs.All() {
			if pair.expiredBetween(old.options.Now, now) {
				users(old.bySecret, key)
			}
		}
	}
	sorted := slices.AppendSeq(make([]snapshot.Ref, 0, len(refs)), maps.Keys(refs))
	slices.SortFunc(sorted, compareRefs)
	return sorted
}

func compareRefs(a, b snapshot.Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Key.Compare(b.Key))
}

// changedObjects yields what units may refer to and is another than before.
func changedObjects(before, after *snapshot.Stores) iter.Seq[snapshot.Ref] {
	return func(yield func(snapshot.Ref) bool) {
		for key := range snapshot.Diff(before.Services, after.Services) {
			a, _ := before.Services.Get(key)
			b, _ := after.Services.Get(key)
			if !sameService(a, b) && !yield(refTo(snapshot.Service, key)) {
				return
			}
		}
		for key := range snapshot.Diff(before.Secrets, after.Secrets) {
			if !yield(refTo(snapshot.Secret, key)) {
				return
			}
		}
		for key := range snapshot.Diff(before.ConfigMaps, after.ConfigMaps) {
			if !yield(refTo(snapshot.ConfigMap, key)) {
				return
			}
		}
	}
}

// dirtyNamespaces adds the units of each namespace that began or ceased to
// terminate. That is rare, so it may look at all of them.
func (w *compiler) dirtyNamespaces(old *state, refs map[snapshot.Ref]struct{}) {
	turned := map[string]bool{}
	for key := range snapshot.Diff(old.seen.Namespaces, w.c.Namespaces) {
		before, _ := old.seen.Namespaces.Get(key)
		after, _ := w.c.Namespaces.Get(key)
		if terminating(before) != terminating(after) {
			turned[key.Name] = true
		}
	}
	if len(turned) == 0 {
		return
	}
	for _, u := range old.units.All() {
		if turned[u.ref.Namespace] {
			refs[u.ref] = struct{}{}
		}
	}
}

// terminating reports whether a namespace is being deleted, with all that is in it.
func terminating(n *corev1.Namespace) bool {
	return n != nil && (n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating)
}

// sameService reports whether routes see no difference between two versions of a
// Service. Its status changes far more often than its ports. With its UID the sessions
// change that a canary asks for.
func sameService(a, b *corev1.Service) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && externalName(a) == externalName(b) && a.Spec.ExternalName == b.Spec.ExternalName &&
		slices.EqualFunc(a.Spec.Ports, b.Spec.Ports, func(p, q corev1.ServicePort) bool {
			return p.Name == q.Name && p.Port == q.Port && p.Protocol == q.Protocol && p.TargetPort == q.TargetPort && sameValue(p.AppProtocol, q.AppProtocol)
		})
}

func sameValue(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// recompile makes a unit of what an object is now.
func (w *compiler) recompile(ref snapshot.Ref, sources []source) {
	i := slices.IndexFunc(sources, func(s source) bool { return s.kind() == ref.Kind })
	w.replace(ref, sources[i].compile(w, ref.Key))
}

// replace puts after, which may be nil, in the place of what an object was.
func (w *compiler) replace(ref snapshot.Ref, after *unit) {
	key := keyOf(ref)
	before, had := w.units.get(key)
	if !had {
		before = &unit{}
	}
	switch {
	case after != nil:
		space, _ := w.c.Namespaces.Get(snapshot.Key{Name: ref.Namespace})
		after.leaving = terminating(space)
		w.units.set(key, after)
	case had:
		w.units.unset(key)
		after = &unit{}
	default:
		return
	}
	w.t.state.renaming += after.countRenames() - before.countRenames()
	w.t.state.lenders += after.countLender() - before.countLender()
	reindex(w.byHost, key, before.hostKeys(), after.hostKeys())
	reindex(w.byObject, key, before.objects, after.objects)
	reindex(w.bySecret, key, before.secrets, after.secrets)
	for _, secret := range before.secrets {
		if _, used := w.bySecret.get(secret); !used {
			w.pairs.unset(secret)
			w.certsChanged = true
		}
	}
	for _, b := range before.backends {
		w.release(b)
	}
	for _, u := range []*unit{before, after} {
		for _, c := range u.parts {
			w.hosts[c.host] = true
		}
	}
	if !slices.Equal(before.problems, after.problems) {
		setProblems(w.faults, key, after.problems)
		w.problemsChanged = true
	}
}

func (u *unit) hostKeys() []snapshot.Key {
	keys := make([]snapshot.Key, len(u.parts))
	for i, c := range u.parts {
		keys[i] = snapshot.Key{Name: c.host}
	}
	return keys
}

func setProblems(d *draft[[]snapshot.Problem], key snapshot.Key, list []snapshot.Problem) {
	if len(list) == 0 {
		d.unset(key)
	} else {
		d.set(key, list)
	}
}

// options returns the option table, which each Compile hands on to the next.
func (w *compiler) options() []option {
	s := &w.t.state
	if s.table == nil {
		s.table = optionTable()
	}
	return s.table
}

// keyPair returns the certificate in a Secret, parsed if it is new.
func (w *compiler) keyPair(key snapshot.Key) *keyPair {
	secret, unread := w.secret(key)
	known, _ := w.pairs.get(key)
	pair := known
	if pair == nil {
		pair, _ = w.parsed.Get(key)
	}
	if pair == nil || !pair.of(secret, unread) {
		pair = parseKeyPair(key, secret, unread)
	}
	if pair != known {
		w.pairs.set(key, pair)
		w.certsChanged = true
	}
	return pair
}

// defaultCertificate chooses the certificate for names that have none.
func (w *compiler) defaultCertificate() {
	s := &w.t.state
	cert := s.options.FallbackCertificate
	var problems []snapshot.Problem
	if key := s.options.DefaultCertificate; key != (snapshot.Key{}) {
		secret, unread := w.secret(key)
		if s.defaultPair == nil || s.defaultPair.key != key || !s.defaultPair.of(secret, unread) {
			s.defaultPair, w.certsChanged = parseKeyPair(key, secret, unread), true
		}
		if s.defaultPair.cert != nil {
			cert = s.defaultPair.cert
		}
		if f := s.defaultPair.finding(s.options.Now); f.reason != "" {
			problems = []snapshot.Problem{{
				Object: refTo(snapshot.Secret, key), Reason: f.reason,
				Message: f.message + "; it is meant to be the default certificate",
			}}
		}
	}
	if cert == nil {
		w.t.certs = nil
	} else if len(w.t.certs) == 0 || w.t.certs[0] != cert {
		w.t.certs = []*tls.Certificate{cert}
	}
	if !slices.Equal(problems, s.defaults) {
		s.defaults, w.problemsChanged = problems, true
	}
}

// schedule sets NextWake to the next expiry.
func (w *compiler) schedule() {
	now := w.t.state.options.Now
	w.t.NextWake = time.Time{}
	if now.IsZero() {
		return
	}
	sooner := func(p *keyPair) {
		if end := p.expiry(); end.After(now) && (w.t.NextWake.IsZero() || end.Before(w.t.NextWake)) {
			w.t.NextWake = end
		}
	}
	for _, pair := range w.t.state.pairs.All() {
		sooner(pair)
	}
	if w.t.state.defaultPair != nil {
		sooner(w.t.state.defaultPair)
	}
}

func (w *compiler) collectProblems() {
	all := slices.Concat(w.t.state.defaults, w.t.state.global.problems)
	for _, store := range []snapshot.Store[[]snapshot.Problem]{w.t.state.faults, w.t.state.conflicts} {
		for _, list := range store.All() {
			all = append(all, list...)
		}
	}
	slices.SortFunc(all, snapshot.Problem.Compare)
	w.t.Problems = all
}
