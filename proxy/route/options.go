package route

import (
	"crypto/tls"
	"time"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/filter"
)

// Options say which Ingresses are served, and with which certificates.
type Options struct {
	// Classes say which Ingresses are ours.
	Classes ingressclass.Rules

	// DefaultCertificate is the Secret for server names without certificate.
	DefaultCertificate snapshot.Key
	// FallbackCertificate stands in while that Secret is not usable. Whoever
	// calls makes it, since a pure package has no randomness; it may be nil.
	FallbackCertificate *tls.Certificate

	// DefaultBackend is the Service that is asked what no rule is for, by its first port,
	// and that answers with pages in the place of backends, see custom-http-errors. Zero:
	// there is none.
	DefaultBackend snapshot.Key

	// ConfigMap holds proxy-wide options in the names of ingress-nginx; see
	// docs/ingress-nginx.md. Zero: there is none.
	ConfigMap snapshot.Key

	// FirstNamespace lets only the namespace of the oldest Ingress that names a host
	// have rules for it, and take what its rules leave over.
	FirstNamespace bool
	// NoCatchAll keeps rules without host and default backends from what the rules
	// of a host leave over, unless one of these is of the same namespace.
	NoCatchAll bool

	// NoPassthrough closes the routes of Ingresses that ask for ssl-passthrough.
	NoPassthrough bool

	// NoExternalName closes routes to Services of type ExternalName.
	NoExternalName bool

	// ModSecurity allows Ingresses to ask for a web application firewall. Else the
	// routes of those that do are closed.
	ModSecurity bool

	// Places are what is known of where clients are, such as a *geoip.Databases, for variables such
	// as $geoip2_country_code. Nil: nothing is, and what has such a variable is not understood.
	Places filter.Places

	// CookieKey seals the session cookies of backends, which canaries look at.
	CookieKey balance.CookieKey

	// Now judges certificates. If it is zero, none expires.
	Now time.Time
}

// same reports whether what p compiled may be shared, as far as hosts, backends and the
// conditions of routes go.
func (o Options) same(p Options) bool {
	return o.CookieKey == p.CookieKey && o.DefaultBackend == p.DefaultBackend && o.FirstNamespace == p.FirstNamespace && o.NoCatchAll == p.NoCatchAll && o.NoPassthrough == p.NoPassthrough && o.NoExternalName == p.NoExternalName
}
