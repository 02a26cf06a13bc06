package balance

import "time"

// Algorithm is how a backend chooses among its endpoints.
type Algorithm uint8

// The algorithms. Those that draw lots draw them from a Picker's own sequence.
const (
	// RoundRobin takes endpoints in turn.
	RoundRobin Algorithm = iota
	// LeastRequests draws two endpoints and takes the one with fewer requests
	// under way (the power of two choices).
	LeastRequests
	// PeakEWMA draws two and takes the one whose recent latency times its
	// requests under way is lower; a latency peak counts at once and decays.
	PeakEWMA
	// Hash takes the endpoint that HashBy leads to.
	Hash
)

// String returns the name that ingress-nginx or Envoy uses.
func (a Algorithm) String() string {
	switch a {
	case LeastRequests:
		return "least_requests"
	case PeakEWMA:
		return "ewma"
	case Hash:
		return "hash"
	}
	return "round_robin"
}

// Policy is how the requests of one backend are spread. It is comparable, so
// that it can be part of a key; the zero value is round robin without limits.
type Policy struct {
	Algorithm Algorithm
	// HashBy is what Hash hashes, in the language of ParseHashKey:
	// "$request_uri", "$http_x_user$remote_addr". It is ignored otherwise.
	HashBy string
	// Subset, if above 1, spreads the requests of one hash over so many
	// endpoints in turn. It is at most MaxSubset.
	Subset int
	// Cookie keeps a client on one endpoint and goes before the algorithm.
	Cookie Cookie
	// SlowStart is how long an endpoint that joins takes to get its whole share.
	SlowStart time.Duration
	// MaxRequests is how many requests one endpoint has under way at most; with
	// all endpoints there, a request is refused at once. 0 is without limit.
	MaxRequests int
	// HealthCheck asks endpoints whether they are well, beside what Kubernetes says.
	HealthCheck HealthCheck
}

// HealthCheck is how endpoints are asked whether they are well. One that is not is left
// out of turn, unless more than half are not. The zero value asks nobody.
type HealthCheck struct {
	// Path is asked for by GET; a status from 200 to 399 is well. Empty: nobody is asked.
	Path string
	// Interval lies between two checks. Timeout bounds one as a whole.
	Interval, Timeout time.Duration
	// Failures in a row put an endpoint out of turn, and Successes in a row back. Both
	// are at least 1.
	Failures, Successes int
}

// MaxSubset is the largest Policy.Subset.
const MaxSubset = 16

// CookieKey seals the session cookies of all backends. Proxies that have the same accept
// each other's cookies. Clients, and those who may read Services, must not know it.
type CookieKey [32]byte

// Cookie is a session cookie that names its endpoint. The zero value is none.
type Cookie struct {
	// Name is a token; empty means no cookie is used.
	Name string
	// Path and Domain limit where the client sends it. An empty Path is the CookiePath of
	// the request, which is no part of the policy: paths of one backend would be several.
	// An empty Domain is this host only.
	Path, Domain string
	// MaxAge and Expires are how long the client keeps it, in whole seconds; 0:
	// as long as the browser runs.
	MaxAge, Expires time.Duration
	// SameSite is "None", "Lax", "Strict", or empty.
	SameSite string
	// ConditionalNone leaves SameSite=None out for browsers that take it for
	// Strict.
	ConditionalNone bool
	// Secure says whether the client may send it without TLS.
	Secure Secure
	// Persistent keeps a client on its endpoint for as long as that is there.
	// Otherwise endpoints that join take over their share of the clients.
	Persistent bool
	// ChangeOnFailure gives a client whose endpoint failed another for good, not
	// for that request only.
	ChangeOnFailure bool
}

// Secure is whether a cookie gets the attribute of that name.
type Secure uint8

// The default of ingress-nginx is SecureAuto.
const (
	SecureAuto Secure = iota // where the request came over TLS
	SecureOn
	SecureOff
)
