package route

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// In nginx what a server-snippet says holds for all of a host. Here it holds for the paths that
// its namespace has there: an Ingress that has none of its own has that of the oldest which has
// one, as if it were its own. Whoever has another keeps it: it may guard what that would open.

// loan is a server-snippet that an Ingress has from another of its namespace on some host.
type loan struct {
	from snapshot.Ref
	text string
}

// loanKey is who has it, and where.
type loanKey struct {
	unit snapshot.Key // by keyOf
	host string
}

// lendSnippets compiles those again that have other loans than before on a host that has changed;
// had says whether there were server-snippets.
func (w *compiler) lendSnippets(sources []source, had bool) {
	if !had && w.t.state.lenders == 0 {
		return
	}
	refs := map[snapshot.Ref]struct{}{}
	for host := range w.hosts {
		users, _ := w.byHost.get(snapshot.Key{Name: host})
		lenders := w.lendersOf(host, users)
		for key := range users.All() {
			u, _ := w.units.get(key)
			c, due := u.find(host), loan{}
			if first := lenders[u.ref.Namespace]; first != nil && u.borrows && c.aliasOf == nil && (len(c.routes) > 0 || c.fallback != nil) {
				due = loan{first.ref, first.hostText}
			}
			if c.loan != due {
				w.loans[loanKey{key, host}] = due
				refs[u.ref] = struct{}{}
			}
		}
	}
	w.changed += len(refs)
	for _, ref := range slices.SortedFunc(maps.Keys(refs), compareRefs) {
		w.recompile(ref, sources)
	}
}

// lendersOf are the oldest Ingresses with a server-snippet on a host, by namespace.
func (w *compiler) lendersOf(host string, users users) map[string]*unit {
	lenders := map[string]*unit{}
	for key := range users.All() {
		u, _ := w.units.get(key)
		if c := u.find(host); u.hostText == "" || !c.named {
			continue
		}
		if first := lenders[u.ref.Namespace]; first == nil || u.compareAge(first) < 0 {
			lenders[u.ref.Namespace] = u
		}
	}
	return lenders
}

// hostSnippet notes what others may have of the Ingress.
func (b *unitBuilder) hostSnippet() {
	if b.settings.canary.on {
		return
	}
	own := cmp.Or(b.ingress.Annotations[OwnPrefix+"server-snippet"], b.ingress.Annotations[NginxPrefix+"server-snippet"])
	b.borrows, b.hostText = strings.TrimSpace(own) == "", b.settings.hostText
	if script := b.settings.snippets.host.script; b.hostText != "" && script != nil {
		b.places = script.Places
	}
}

// countLender is 1 if u has a server-snippet.
func (u *unit) countLender() int {
	if u.hostText == "" {
		return 0
	}
	return 1
}

// loanOf is what c has from another: what it had, until lendSnippets says otherwise.
func (b *unitBuilder) loanOf(c *part) loan {
	if b.w.t.state.lenders == 0 { // the common case
		return loan{}
	}
	key := keyOf(b.ref)
	if due, said := b.w.loans[loanKey{key, c.host}]; said {
		return due
	}
	if before, had := b.w.units.get(key); had {
		if was := before.find(c.host); was != nil {
			return was.loan
		}
	}
	return loan{}
}

// on returns the builder of what the Ingress has on the host of c: b, or one that has a
// server-snippet besides, unless that does not go with what the Ingress says itself.
func (b *unitBuilder) on(c *part) *unitBuilder {
	if !b.borrows || c.aliasOf != nil {
		return b
	}
	c.loan = b.loanOf(c)
	if c.loan.text == "" {
		return b
	}
	own := b.borrowed[c.loan]
	if own == nil {
		own = b.borrow(c.loan)
		if b.borrowed == nil {
			b.borrowed = map[loan]*unitBuilder{}
		}
		b.borrowed[c.loan] = own
	}
	if c.unlent = own.unlent; c.unlent != "" {
		return b
	}
	return own
}

// borrow makes a builder of the Ingress as it would be with a server-snippet.
func (b *unitBuilder) borrow(l loan) *unitBuilder {
	s := *b.w.t.state.global.settingsOf(b.class)
	ing := networkingv1.Ingress{ObjectMeta: b.ingress.ObjectMeta, Spec: b.ingress.Spec}
	ing.Annotations = maps.Clone(ing.Annotations)
	if ing.Annotations == nil {
		ing.Annotations = map[string]string{}
	}
	ing.Annotations[OwnPrefix+"server-snippet"] = l.text
	own := &unitBuilder{unit: b.unit, w: b.w, class: b.class, settings: &s, ingress: &ing, loan: l}
	for _, f := range parseOptions(b.w.options, ing.Annotations, &s, own) {
		if !b.told(f) {
			own.unlent = cmp.Or(own.unlent, f.message)
		}
	}
	if s.hostText != "" && s.closed == b.settings.closed {
		own.unlent = "" // and whose it is knows what it does in part
	}
	own.filters, own.terms = s.filtersOf(), own.termsOf()
	return own
}

// tellOfHost tells an Ingress for whose paths on the host its server-snippet does not hold, and of
// locations in it that no path leads to.
func (b *hostBuilder) tellOfHost(parts []*part) {
	for _, c := range parts {
		if c.unit.hostText == "" {
			continue
		}
		i := slices.IndexFunc(parts, func(o *part) bool { return (len(o.routes) > 0 || o.fallback != nil) && !o.has(c.unit) })
		if i >= 0 {
			b.told(c, InvalidAnnotation, fmt.Sprintf("host %s: annotation server-snippet acts in part: it does not hold for the paths that %s has there%s", c.host, parts[i].unit.ref, parts[i].whyNot(c.unit)))
		}
		for _, p := range c.unit.places {
			leads := func(r *Route) bool {
				return p.Pattern != nil || r.pattern != nil || strings.HasPrefix(p.Path, r.Path)
			}
			if c.aliasOf == nil && !slices.ContainsFunc(parts, func(o *part) bool {
				return o.has(c.unit) && (slices.ContainsFunc(o.routes, leads) || o.fallback != nil && leads(o.fallback))
			}) {
				b.told(c, InvalidAnnotation, fmt.Sprintf("host %s: annotation server-snippet acts in part: no path leads to its location %s", c.host, p.Path))
				break
			}
		}
	}
}

// has reports whether the server-snippet of u holds for c.
func (c *part) has(u *unit) bool {
	return c.unit == u || c.unit.hostText == u.hostText && c.unit.ref.Namespace == u.ref.Namespace || c.loan.from == u.ref && c.unlent == "" || c.aliasOf != nil && c.aliasOf.has(u)
}

// whyNot is why the server-snippet of u does not hold for c.
func (c *part) whyNot(u *unit) string {
	switch {
	case c.unit.ref.Namespace != u.ref.Namespace:
		return ", which is of another namespace"
	case !c.unit.borrows:
		return ", which has one of its own"
	case c.loan.from == u.ref:
		return ": " + c.unlent
	}
	return ", which has that of " + c.loan.from.String()
}

// hostTerms are the server-snippet of a route, and by what numbers its own scripts know the
// variables that it may set.
type hostTerms struct {
	text    string
	indexes []int
}

func (s *settings) hostTerms() *hostTerms {
	if s.hostText == "" {
		return nil
	}
	return &hostTerms{s.hostText, s.hostNames}
}

// alike reports whether two have one server-snippet.
func (h *hostTerms) alike(o *hostTerms) bool {
	return h != nil && o != nil && h.text == o.text && len(h.indexes) == len(o.indexes)
}

// Carried returns which values of the variables that scripts of r have set those of to have, where
// a script has moved a request from r to it: all, if both have the same snippets, and else those
// that the host's has set, if it is one for both.
func (r *Route) Carried(to *Route, values [][]byte) [][]byte {
	if r.Scripted() == to.Scripted() {
		return values
	}
	var were [filter.MaxNames][]byte
	n := copy(were[:], values)
	values = values[:0]
	if r.Owner.Namespace != to.Owner.Namespace || !r.host.alike(to.host) {
		return values
	}
	for i, at := range to.host.indexes {
		for len(values) <= at {
			values = append(values, nil)
		}
		if from := r.host.indexes[i]; from < n {
			values[at] = were[from]
		}
	}
	return values
}
