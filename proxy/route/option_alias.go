package route

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
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

// otherNames gives the routes of the first host with paths its further names.
func (b *unitBuilder) otherNames() {
	if len(b.settings.aliases) == 0 {
		return
	}
	var of *part
	for _, c := range b.parts {
		if of == nil && c.host != "" && len(c.routes) > 0 {
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
		c.rank, c.aliasOf, c.sealed = byAlias, of, of.sealed
		for _, r := range of.routes {
			c.routes = append(c.routes, b.renamed(r, name))
		}
		for _, r := range of.passages {
			c.passages = append(c.passages, b.renamed(r, name))
		}
		if of.fallback != nil {
			c.fallback, c.weak = b.renamed(of.fallback, name), of.weak
		}
	}
}

// aliasTLS has an alias redirect to https where the host does, and shows on every other
// name of a host the certificates that cover it, unless it has its own.
func (b *unitBuilder) aliasTLS() {
	for _, c := range b.parts {
		if c.aliasOf == nil {
			continue
		}
		c.tls = c.tls || c.rank == byAlias && c.aliasOf.tls
		if len(c.pairs) > 0 {
			continue
		}
		for _, pair := range c.aliasOf.pairs {
			if pair.covers(c.host) {
				c.pairs = append(c.pairs, pair)
			}
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
