package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"quayside.io/cluster/snapshot"
)

// parseAliases reads further names of the hosts.
func parseAliases(s *settings, value string) error {
	var list []string
	var wrong []error
	for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if why := invalidHost(name); why != "" {
			wrong = append(wrong, fmt.Errorf("%q %s; patterns are not understood", name, why))
			continue
		}
		list = append(list, name)
	}
	s.aliases = slices.Concat(s.aliases, list)
	return inPart(len(list), wrong)
}

// otherNames gives the routes of the first host that has any its further names.
func (b *unitBuilder) otherNames() {
	if len(b.settings.aliases) == 0 {
		return
	}
	var of *part
	for _, c := range b.parts {
		if of == nil && c.host != "" && c.some() != nil {
			of = c
		}
	}
	if of == nil {
		return
	}
	for _, name := range b.settings.aliases {
		if b.find(name) != nil {
			continue // it has rules of its own, or was named twice
		}
		c := b.part(name)
		b.renames = true
		c.rank, c.aliasOf, c.sealed = byAlias, of, of.sealed
		for _, r := range of.routes {
			c.routes = append(c.routes, b.renamed(r, name))
		}
		for _, r := range of.passages {
			c.passages = append(c.passages, b.renamed(r, name))
		}
		if of.noRule != nil {
			c.noRule = b.renamed(of.noRule, name)
		}
		if of.fallback != nil {
			c.fallback, c.weak = b.renamed(of.fallback, name), of.weak
		}
	}
}

// withRules adds to the parts of an alias the rules that others of the namespace have for the host
// that it is a further name of: as in ingress-nginx it is one of the host, and not of some paths.
// To those of the name with www it adds their certificates.
func (w *compiler) withRules(parts []*part) []*part {
	all := slices.Clone(parts)
	for _, c := range parts {
		if c.rank == byRule {
			return parts
		}
		for _, other := range w.parts(c.aliasOf.host) {
			have := slices.ContainsFunc(all, func(p *part) bool { return p.unit == other.unit })
			switch {
			case other.rank != byRule || have || other.unit.ref.Namespace != c.unit.ref.Namespace:
			case c.rank == byAlias:
				all = append(all, other.under(c.host))
			default:
				shown := &part{unit: other.unit, host: c.host, rank: c.rank, aliasOf: other, borrowed: true}
				shown.coveredBy(other.pairs)
				all = append(all, shown)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *part) int { return a.unit.compareAge(b.unit) })
	return all
}

// under returns the rules of c as those of another host.
func (c *part) under(host string) *part {
	n := &part{unit: c.unit, host: host, rank: byAlias, aliasOf: c, sealed: c.sealed, weak: c.weak, borrowed: true}
	n.coveredBy(c.pairs)
	n.tls = n.sharesTLS()
	named := func(r *Route) *Route {
		if r == nil {
			return nil
		}
		as := *r
		as.Host = host
		return &as
	}
	for _, r := range c.routes {
		n.routes = append(n.routes, named(r))
	}
	for _, r := range c.canaries {
		n.canaries = append(n.canaries, named(r))
	}
	for _, r := range c.passages {
		n.passages = append(n.passages, named(r))
	}
	n.fallback, n.noRule = named(c.fallback), named(c.noRule)
	return n
}

// alsoAliases has the further names compiled again of the hosts that are.
func (w *compiler) alsoAliases() {
	if w.t.state.renaming == 0 {
		return
	}
	for _, name := range slices.Collect(maps.Keys(w.hosts)) {
		users, _ := w.byHost.get(snapshot.Key{Name: name})
		for key := range users.All() {
			u, _ := w.units.get(key)
			if !u.renames {
				continue
			}
			for _, c := range u.parts {
				if c.aliasOf != nil && c.aliasOf.host == name {
					w.hosts[c.host] = true
				}
			}
		}
	}
}

// countRenames is 1 if u has further names.
func (u *unit) countRenames() int {
	if u.renames {
		return 1
	}
	return 0
}

// sharesTLS reports whether an alias is redirected to https where its host is: not if no
// certificate of the host's is for it.
func (c *part) sharesTLS() bool {
	return c.aliasOf.tls && (len(c.pairs) > 0 || len(c.aliasOf.pairs) == 0)
}

// aliasTLS shows on every other name of a host the certificates that cover it, unless it has its
// own.
func (b *unitBuilder) aliasTLS() {
	for _, c := range b.parts {
		if c.aliasOf == nil {
			continue
		}
		if len(c.pairs) == 0 {
			c.coveredBy(c.aliasOf.pairs)
		}
		c.tls = c.tls || c.rank == byAlias && c.sharesTLS()
	}
}

// coveredBy adds to c those of pairs, of different kinds, that are for its host, too.
func (c *part) coveredBy(pairs []*keyPair) {
	for _, pair := range pairs {
		if pair.covers(c.host) {
			c.pairs = append(c.pairs, pair)
		}
	}
}

// renamed returns r as it is on a host of another name.
func (b *unitBuilder) renamed(r *Route, host string) *Route {
	n := *r
	n.Host = host
	if n.Backend >= 0 {
		backend := b.w.t.Backends[n.Backend]
		if b.settings.upstream.Name == hostsName {
			backend.TLS.Name = host
		}
		n.Backend = b.w.acquire(backend)
		b.backends = append(b.backends, n.Backend)
	}
	for _, index := range r.Detours {
		if index >= 0 {
			b.backends = append(b.backends, b.w.acquire(b.w.t.Backends[index]))
		}
	}
	return &n
}
