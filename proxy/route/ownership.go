package route

import (
	"fmt"
	"slices"
)

// Whose host it is. What one part names a host by, and which namespace named it
// first, decides which of its parts count; and what the rules of a host leave over
// may be kept from rules of other namespaces for less specific hosts.

// serves reports whether a part asks for requests, not only for a certificate.
func (c *part) serves() bool { return len(c.routes)+len(c.canaries) > 0 || c.fallback != nil }

// first keeps the parts by rules; without them those by aliases, and without
// those one redirect, which is enough.
func (b *hostBuilder) first(parts []*part) []*part {
	most := byWWW
	for _, c := range parts {
		if c.rank < most && (c.rank != byRule || c.serves() || c.named) {
			most = c.rank
		}
	}
	redirected := false
	return slices.DeleteFunc(parts, func(c *part) bool {
		if c.rank == byAlias && most == byRule {
			b.told(c, AliasUnused, fmt.Sprintf("server-alias %s has no effect, since that host has rules of its own", c.host))
		}
		again := c.rank == byWWW && redirected
		redirected = redirected || c.rank == byWWW
		return c.rank > most || again
	})
}

// owned keeps the parts of the namespace that has the host: that of the first
// that asks for requests. All may have rules without host.
func (b *hostBuilder) owned(parts []*part) []*part {
	i := slices.IndexFunc(parts, (*part).serves)
	if i < 0 || parts[i].host == "" {
		return parts
	}
	owner := parts[i].unit.ref
	return slices.DeleteFunc(parts, func(c *part) bool {
		foreign := c.unit.ref.Namespace != owner.Namespace
		if foreign {
			b.told(c, HostOwned, fmt.Sprintf("host %s belongs to namespace %s by %s %s, which named it first, so nothing that this %s says of it holds; ask its owner for the path, or take another host",
				c.host, owner.Namespace, owner.Kind, owner.Key, c.unit.ref.Kind))
		}
		return foreign
	})
}

// keepers are the namespaces that may have what the rules of a host leave over;
// nil: any.
func keepers(parts []*part) []string {
	var list []string
	for _, c := range parts {
		if c.serves() && c.host != "" && !slices.Contains(list, c.unit.ref.Namespace) {
			list = append(list, c.unit.ref.Namespace)
		}
	}
	return list
}

// leaves reports whether h, which may be nil, leaves what its own rules do not
// match to a route of a less specific host.
func (h *host) leaves(r *Route, rank int) bool {
	return h == nil || rank == byWildcard && !h.keepsWildcards || slices.Contains(h.keepers, r.Owner.Namespace)
}
