package route

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// In nginx what a server-snippet says holds for all of a host. Here it holds for the paths that
// its namespace has there: an Ingress that has none of its own has that of the oldest which has
// one, as if it were its own. Whoever has another keeps it: it may guard what that would open.
// One that guards access closes whoever would have it, where it is not obeyed, or does not go with
// what that says itself; but in nginx, too, lists of addresses of a path, and the service that it
// asks, stand in the place of those of the host.

// serverSnippet is one that says more than what is denied.
type serverSnippet struct {
	text    string
	indexes []int                // by which the scripts of who has it know the variables that it may set
	places  []filter.ScriptPlace // its locations
	shuts   bool                 // it guards access, and is not obeyed
}

// loan is a server-snippet that an Ingress has from another of its namespace on some host.
type loan struct {
	from  snapshot.Ref
	text  string
	shuts bool // see serverSnippet
}

// lent is a loan, and why it does not hold; "": it does, or closes what has it for the reason shut.
type lent struct {
	loan
	why, shut string
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
	w.loans = map[loanKey]loan{}
	for host := range w.hosts {
		users, _ := w.byHost.get(snapshot.Key{Name: host})
		lenders := w.lendersOf(host, users)
		for key := range users.All() {
			u, _ := w.units.get(key)
			c, due := u.find(host), loan{}
			if first := lenders[u.ref.Namespace]; first != nil && u.borrows && c.aliasOf == nil && (len(c.routes) > 0 || c.fallback != nil) {
				due = loan{first.ref, first.ofHost.text, first.ofHost.shuts}
			}
			if c.loan() != due {
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
		if c := u.find(host); u.ofHost == nil || !c.named {
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
	b.borrows = strings.TrimSpace(annotation(b.ingress.Annotations, "server-snippet")) == ""
	b.ofHost = b.settings.ofHost
	if script := b.settings.snippets.host.script; b.ofHost != nil && script != nil {
		b.ofHost.places = script.Places
	}
}

// countLender is 1 if u has a server-snippet.
func (u *unit) countLender() int {
	if u.ofHost == nil {
		return 0
	}
	return 1
}

func (c *part) loan() loan {
	if c.lent == nil {
		return loan{}
	}
	return c.lent.loan
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
			return was.loan()
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
	l := b.loanOf(c)
	if l.text == "" {
		return b
	}
	own := b.borrowers[l]
	if own == nil {
		own = b.borrow(l)
		if b.borrowers == nil {
			b.borrowers = map[loan]*unitBuilder{}
		}
		b.borrowers[l] = own
	}
	if c.lent = own.lent; c.lent.why != "" {
		return b
	}
	return own
}

// borrow makes a builder of the Ingress as it would be with a server-snippet.
func (b *unitBuilder) borrow(l loan) *unitBuilder {
	all := map[string]string{}
	maps.Copy(all, b.ingress.Annotations)
	all[OwnPrefix+"server-snippet"] = l.text
	own, findings := b.with(all, nil)
	s := own.settings
	own.lent = &lent{loan: l}
	for _, f := range findings {
		if !b.told(f) {
			own.lent.why = cmp.Or(own.lent.why, f.message)
		}
	}
	switch {
	case l.shuts:
		own.lent.shut = guardsRaw
	case s.ofHost != nil && s.closed == b.settings.closed:
		own.lent.why = "" // and whose it is knows what it does in part
	case !b.settings.standsFor(l.text):
		own.lent.shut = "guards access, and does not go with what this Ingress says itself"
	}
	if own.lent.shut != "" {
		own.lent.shut = fmt.Sprintf("the server-snippet of %s %s", l.from, own.lent.shut)
		own.lent.why, s.closed = "", cmp.Or(b.settings.closed, own.lent.shut)
	}
	own.filters, own.terms = s.filtersOf(), own.termsOf()
	return own
}

// standsFor reports whether what s guards by stands in the place of all that a server-snippet does.
func (s *settings) standsFor(text string) bool {
	for word := range guardWords(text) {
		switch {
		case (word == "allow" || word == "deny") && s.filters.Access != nil:
		case strings.HasPrefix(word, "auth_request") && s.external.URL != nil:
		default:
			return false
		}
	}
	return true
}

// tellOfHost tells an Ingress for whose paths on the host its server-snippet does not hold, and of
// locations in it that no path leads to.
func (b *hostBuilder) tellOfHost(parts []*part) {
	left := firstNoRule(parts)
	for _, c := range parts {
		if c.lent != nil && c.lent.shut != "" {
			b.told(c, RouteClosed, fmt.Sprintf("host %s: %s, in ingress-nginx for all paths of the host, so every request gets a 503; mend that, or give this Ingress a server-snippet of its own", c.host, c.lent.shut))
		}
		if c.unit.ofHost == nil || c.unit.ofHost.shuts {
			continue
		}
		i := slices.IndexFunc(parts, func(o *part) bool { return (len(o.routes) > 0 || o.fallback != nil) && !o.has(c.unit) })
		if i >= 0 {
			b.told(c, InvalidAnnotation, fmt.Sprintf("host %s: annotation server-snippet acts in part: it does not hold for the paths that %s has there%s", c.host, parts[i].unit.ref, parts[i].whyNot(c.unit)))
		}
		places := c.unit.ofHost.places
		unasked := slices.IndexFunc(places, func(p filter.ScriptPlace) bool {
			return !slices.ContainsFunc(parts, func(o *part) bool { return o.has(c.unit) && o.leadsTo(&p) })
		})
		if unasked >= 0 && c.aliasOf == nil && (left == nil || !left.has(c.unit)) {
			b.told(c, InvalidAnnotation, fmt.Sprintf("host %s: annotation server-snippet acts in part: no path leads to its location %s", c.host, places[unasked].Path))
		}
	}
}

// leadsTo reports whether a request for a path of c may be one for p.
func (c *part) leadsTo(p *filter.ScriptPlace) bool {
	leads := func(r *Route) bool {
		return p.Pattern != nil || r.pattern != nil || strings.HasPrefix(p.Path, r.Path)
	}
	return slices.ContainsFunc(c.routes, leads) || c.fallback != nil && leads(c.fallback)
}

// has reports whether the server-snippet of u holds for c.
func (c *part) has(u *unit) bool {
	switch own := c.unit.ofHost; {
	case c.unit == u:
		return true
	case own != nil:
		return own.text == u.ofHost.text && c.unit.ref.Namespace == u.ref.Namespace
	case c.aliasOf != nil:
		return c.aliasOf.has(u)
	}
	return c.loan().from == u.ref && c.lent.why == ""
}

// whyNot is why the server-snippet of u does not hold for c.
func (c *part) whyNot(u *unit) string {
	switch {
	case c.unit.ref.Namespace != u.ref.Namespace:
		return ", which is of another namespace"
	case c.aliasOf != nil:
		return c.aliasOf.whyNot(u)
	case !c.unit.borrows:
		return ", which has one of its own"
	case c.loan().from == u.ref:
		return ": " + c.lent.why
	}
	return ", which has that of " + c.loan().from.String()
}

// alike reports whether two are the same text.
func (s *serverSnippet) alike(o *serverSnippet) bool {
	return s != nil && o != nil && s.text == o.text && len(s.indexes) == len(o.indexes)
}

// Carried returns which values of the variables that scripts of r have set those of to have, where
// a script has moved a request from r to it: all, if both have the same snippets, and else those
// that the host's has set, if it is one for both.
func (r *Route) Carried(to *Route, values [][]byte) [][]byte {
	switch {
	case r.Scripted() == to.Scripted():
		return values
	case r.Owner.Namespace != to.Owner.Namespace || !r.ofHost.alike(to.ofHost):
		return values[:0]
	}
	var were [filter.MaxNames][]byte
	n := copy(were[:], values)
	values = values[:0]
	for i, at := range to.ofHost.indexes {
		for len(values) <= at {
			values = append(values, nil)
		}
		if from := r.ofHost.indexes[i]; from < n {
			values[at] = were[from]
		}
	}
	return values
}
