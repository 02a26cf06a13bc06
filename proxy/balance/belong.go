package balance

import (
	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy/exchange"
)

// Sessions tell the clients that have a session with one backend from all others. The
// zero value is a backend that has none.
type Sessions struct {
	cookie string
	sealer sealer
}

// SessionsOf returns those that sets of svc and port make with the policy p and key.
func SessionsOf(svc *corev1.Service, port PortRef, p Policy, key CookieKey) Sessions {
	if p.Cookie.Name == "" {
		return Sessions{}
	}
	return Sessions{cookie: p.Cookie.Name, sealer: sealerOf(key, identityOf(svc, port))}
}

// Have reports whether the client of r has one, whether or not its endpoint is still
// there.
func (s *Sessions) Have(r *exchange.Request) bool {
	if s.cookie == "" {
		return false
	}
	for value := range cookies(&r.Header, s.cookie) {
		if _, ok := s.sealer.open(value); ok {
			return true
		}
	}
	return false
}
