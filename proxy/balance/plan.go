package balance

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// plan is a Policy made ready for one Set. A set without one is taken in turn.
type plan struct {
	policy   Policy
	byClient bool // the Service has sessionAffinity: ClientIP
	key      HashKey
	sealer   sealer
	salt     [sha256.Size]byte
	// seeds are what the endpoints are hashed with, at their indexes. They depend on
	// nothing but the backend and the endpoint, so that replicas agree, also those that
	// have no CookieKey yet.
	seeds []uint64
}

// Check says what is wrong with p, in words for the owner of an annotation.
func (p Policy) Check() error {
	if p.Algorithm == Hash {
		if _, err := ParseHashKey(p.HashBy); err != nil {
			return err
		}
	}
	if p.Subset < 0 || p.Subset > MaxSubset {
		return fmt.Errorf("a subset of %d endpoints: at most %d are possible", p.Subset, MaxSubset)
	}
	if err := p.HealthCheck.check(); err != nil {
		return err
	}
	if p.MaxRequests < 0 || p.SlowStart < 0 {
		return errors.New("limits and times cannot be negative")
	}
	return p.Cookie.check()
}

func (c *HealthCheck) check() error {
	switch {
	case c.Path == "" && *c != (HealthCheck{}):
		return errors.New("a health check has no path")
	case c.Path == "":
		return nil
	case c.Path[0] != '/' || strings.ContainsFunc(c.Path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%q is no path that can be asked for", c.Path)
	case c.Interval <= 0 || c.Timeout <= 0 || c.Failures < 1 || c.Successes < 1:
		return errors.New("a health check takes time, and its results count from 1")
	}
	return nil
}

func (c *Cookie) check() error {
	if c.Name == "" {
		return nil
	}
	if !exchange.IsToken([]byte(c.Name)) {
		return fmt.Errorf("%q is not the name of a cookie", c.Name)
	}
	if strings.ContainsFunc(c.Path, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' || r == ',' }) {
		return fmt.Errorf("%q is no path that a cookie can have", c.Path)
	}
	if strings.ContainsFunc(c.Domain, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '-' && r != '.'
	}) {
		return fmt.Errorf("%q is no domain: browsers would not take the cookie", c.Domain)
	}
	if !slices.Contains([]string{"", "None", "Lax", "Strict"}, c.SameSite) {
		return fmt.Errorf("SameSite %q is none of None, Lax, Strict", c.SameSite)
	}
	if c.MaxAge < 0 || c.Expires < 0 {
		return errors.New("a cookie cannot expire before it is set")
	}
	return nil
}

// Arrange returns s with p in force, which Check has passed. identity tells the backend
// from others, and is the same on all replicas; cookies are sealed with key.
func (s *Set) Arrange(p Policy, identity []byte, key CookieKey) *Set {
	return s.arrange(p, false, identity, key)
}

func (s *Set) arrange(p Policy, byClient bool, identity []byte, key CookieKey) *Set {
	n := *s
	n.plan = nil
	if p.Check() != nil {
		p = Policy{} // a table that was not checked; to serve is better than to panic
	}
	p.HealthCheck = HealthCheck{} // is for others to do
	if p == (Policy{}) && !byClient {
		return &n
	}
	pl := &plan{policy: p, byClient: byClient, salt: sha256.Sum256(append([]byte("quayside balance\x00"), identity...))}
	if p.Cookie.Name != "" {
		pl.sealer = sealerOf(key, identity)
	}
	pl.key, _ = ParseHashKey(p.HashBy)
	pl.seeds = make([]uint64, len(s.Endpoints))
	for i := range s.Endpoints {
		pl.seeds[i] = pl.seedOf(&s.Endpoints[i])
	}
	n.plan = pl
	return &n
}

// seedOf names the pod as well as the address: another pod that got the address
// knows nothing of its sessions.
func (p *plan) seedOf(e *Endpoint) uint64 {
	h := sha256.New()
	h.Write(p.salt[:])
	addr, _ := e.Addr.MarshalBinary()
	h.Write(addr)
	h.Write([]byte(e.Pod.String()))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// tagged returns the index of the endpoint whose seed is tag.
func (p *plan) tagged(tag uint64) (int, bool) {
	i := slices.Index(p.seeds, tag)
	return i, i >= 0
}

// rendezvous returns the endpoint with the highest score for key below the given
// one, and its score; the index is -1 if there is none. An endpoint that leaves
// moves its own keys only, and one that joins takes its share from each.
func (p *plan) rendezvous(key, below uint64) (best int, score uint64) {
	best = -1
	for i, seed := range p.seeds {
		if s := mix(seed ^ key); s < below && (best < 0 || s > score) {
			best, score = i, s
		}
	}
	return best, score
}

func (p *plan) same(o *plan) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.policy == o.policy && p.byClient == o.byClient && p.salt == o.salt && p.sealer == o.sealer
}

// share is the part of a full load that an endpoint gets while it starts.
func (p *plan) share(h *Health, now time.Time) float64 {
	const least = 0.1
	joined := h.joined.Load()
	if p.policy.SlowStart == 0 || joined == 0 {
		return 1
	}
	passed := float64(now.UnixNano()-joined) / float64(p.policy.SlowStart)
	return min(max(passed, least), 1)
}
