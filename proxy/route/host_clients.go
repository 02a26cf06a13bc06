package route

import (
	"crypto/x509"
	"fmt"

	"quayside.io/proxy/filter"
)

// ingress-nginx asks all clients of a host for a certificate if one of its Ingresses
// does. Here each Ingress decides about its own paths, so that nobody shuts those of
// others; but in adopted classes what one Ingress asks holds for those of its
// namespace, too, which say nothing themselves: they were guarded before.

// sharedClients is what an Ingress asks of the clients of others.
type sharedClients struct {
	cert   *filter.ClientCert
	closed string // why nobody passes; empty: who has such a certificate does
	unread bool   // see Route.Unread
}

// clientsOf returns what holds for the routes of adopted classes in each namespace,
// nil for nothing. The oldest Ingress counts that asks for a certificate, and else the oldest
// that has clients asked for none.
func clientsOf(parts []*part) map[string]*sharedClients {
	var all map[string]*sharedClients
	for _, c := range parts {
		r := c.anyRoute()
		namespace := c.unit.ref.Namespace
		if r == nil || !r.nginx || r.Filters == nil || r.Filters.Clients == nil {
			continue
		}
		if first := all[namespace]; first != nil && (first.cert.Asks() || !r.Filters.Clients.Asks()) {
			continue
		}
		if all == nil {
			all = map[string]*sharedClients{}
		}
		s := &sharedClients{cert: r.Filters.Clients}
		if isUnclear(s.cert) {
			s.closed, s.unread = fmt.Sprintf("%s asks clients for certificates by auth-tls annotations that are not obeyed", c.unit.ref), r.Unread
		}
		all[namespace] = s
	}
	return all
}

// isUnclear reports whether it is not understood which certificates c asks for. Whose routes have
// such a one, and who shares it, is closed.
func isUnclear(c *filter.ClientCert) bool { return c.Asks() && c.Roots == nil }

// tellOfClients tells those whom that closes.
func (b *hostBuilder) tellOfClients(parts []*part) {
	for _, c := range parts {
		r, s := c.anyRoute(), b.clients[c.unit.ref.Namespace]
		if r == nil || s == nil || s.closed == "" || s.unread || !sharesClients(r) {
			continue
		}
		b.told(c, RouteClosed, fmt.Sprintf("host %s: %s, in ingress-nginx for all paths of the host, "+
			"so every request gets a 503; mend those, or give this Ingress auth-tls-secret of its own", c.host, s.closed))
	}
}

// sharesClients reports whether r takes what others of its namespace ask of clients.
// Challenges of ACME come without TLS.
func sharesClients(r *Route) bool {
	return r.nginx && (r.Filters == nil || r.Filters.Clients == nil) && !r.isChallenge()
}

// ask has clients of r, which is a copy, asked for a certificate.
func (r *Route) ask(s *sharedClients) {
	r.change(func(f *filter.Settings) { f.Clients = s.cert })
	r.guarded = r.guarded || s.cert.Guards()
	if s.closed != "" && r.Closed == "" {
		r.Closed, r.Unread, r.Backend, r.Split, r.Detours = s.closed, s.unread, -1, nil, nil
	}
}

// clientCAs says which certificates clients are asked for. With no pool any will
// do: they are verified later, and by the route.
type clientCAs struct{ pool *x509.CertPool }

// clientCAsOf returns what the clients of a host with these routes are asked for.
func clientCAsOf(routes []*Route) *clientCAs {
	var asked *filter.ClientCert
	for _, r := range routes {
		switch f := r.Filters; {
		case f == nil || !f.Clients.Asks() || isUnclear(f.Clients):
		case asked == nil:
			asked = f.Clients
		case asked != f.Clients:
			return &clientCAs{}
		}
	}
	switch {
	case asked == nil:
		return nil
	case asked.Mode == filter.ClientUnverified:
		return &clientCAs{}
	}
	return &clientCAs{asked.Roots}
}

// ClientCAs reports whether clients that ask for a server name are to be asked for a
// certificate, because some request to it may need one, and by which authorities;
// nil: any.
func (t *Table) ClientCAs(serverName string) (authorities *x509.CertPool, asked bool) {
	var buf [maxHost]byte
	name := appendHost(buf[:0], serverName)
	for rank := exactly; rank <= anyHost; rank++ {
		h := t.host(name, rank)
		if h == nil {
			continue
		}
		if h.clients != nil {
			if asked {
				return nil, true
			}
			authorities, asked = h.clients.pool, true
		}
		if h.sealed {
			break
		}
	}
	return authorities, asked
}
