package route

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/filter"
)

// These obey the options of the table, one value at a time; what several say
// together is made in settings.finish.

func parseSSLRedirect(s *settings, value string) error {
	return set(&s.tls.redirect, value, parseBool)
}

func parseForceSSLRedirect(s *settings, value string) error {
	return set(&s.tls.force, value, parseBool)
}

// want is what the two keys say together.
func (o *tlsSettings) want() redirect {
	switch {
	case o.force:
		return redirectAlways
	case o.redirect:
		return redirectIfTLS
	}
	return redirectNever
}

func parsePortInRedirects(s *settings, value string) error {
	return set(&s.tls.port, value, parseBool)
}

// parseAllow reads one of the two names of the allow list. Both together would
// need a rule which of them counts, and a wrong guess opens.
func parseAllow(key string) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		list, err := parsePrefixes(value)
		if err != nil {
			return err
		}
		if s.allowed != "" {
			return fmt.Errorf("%s is given too", s.allowed)
		}
		s.allowed = key
		s.access().Allow = list
		return nil
	}
}

func parseDeny(s *settings, value string) error {
	list, err := parsePrefixes(value)
	switch {
	case err != nil:
		return err
	case s.denied:
		return errors.New("configuration-snippet refuses addresses, too")
	}
	s.access().Deny = list
	return nil
}

// access returns the lists of this Ingress alone: those that it began with are
// everybody's.
func (s *settings) access() *filter.Access {
	own := filter.Access{}
	if s.filters.Access != nil {
		own = *s.filters.Access
	}
	s.filters.Access = &own
	return &own
}

func parseSatisfy(s *settings, value string) error {
	s.filters.SatisfyAny = value == "any"
	if value != "any" && value != "all" {
		return fmt.Errorf("%q is neither all nor any", value)
	}
	return nil
}

func parseAuthType(s *settings, value string) error {
	if value != "basic" {
		return fmt.Errorf("of %q only basic is supported", value)
	}
	s.basic.on, s.basic.given = true, "auth-type"
	return nil
}

func parseAuthSecret(s *settings, value string) error {
	s.basic.secret, s.basic.given = value, "auth-secret"
	return nil
}

func parseAuthSecretType(s *settings, value string) error {
	if value != "auth-file" && value != "auth-map" {
		return fmt.Errorf("%q is neither auth-file nor auth-map", value)
	}
	s.basic.kind, s.basic.given = value, cmp.Or(s.basic.given, "auth-secret-type")
	return nil
}

func parseAuthRealm(s *settings, value string) error {
	s.basic.given = cmp.Or(s.basic.given, "auth-realm")
	return set(&s.basic.realm, value, parseText)
}

// redirectOptions are the keys of redirects that answer every request.
type redirectOptions struct {
	permanent, temporal         *filter.Target
	permanentCode, temporalCode int
}

func parseRedirectTo(of func(*redirectOptions) **filter.Target) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(&s.redirTo), value, filter.ParseTarget)
	}
}

func parseRedirectCode(of func(*redirectOptions) *int) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		code, err := strconv.Atoi(value)
		if err != nil || !slices.Contains(redirectStatuses(), code) {
			return fmt.Errorf("%q is not the status of a redirect", value)
		}
		*of(&s.redirTo) = code
		return nil
	}
}

// redirectStatuses are those that send clients elsewhere.
func redirectStatuses() []int { return []int{301, 302, 303, 307, 308} }

// finishRedirects lets temporal win over permanent, as ingress-nginx does.
func (s *settings) finishRedirects(refs) *finding {
	o := s.redirTo
	switch {
	case o.temporal != nil:
		s.filters.Redirect = &filter.Redirect{Code: orElse(o.temporalCode, 302), To: o.temporal}
	case o.permanent != nil:
		s.filters.Redirect = &filter.Redirect{Code: orElse(o.permanentCode, 301), To: o.permanent}
	}
	return nil
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func parseAppRoot(s *settings, value string) error {
	root, err := filter.ParseTarget(value)
	if err == nil && !root.IsPath() {
		err = fmt.Errorf("%q is not a path", value)
	}
	if err == nil {
		s.filters.AppRoot = root
	}
	return err
}

func parseWWW(s *settings, value string) error {
	return set(&s.wwwToo, value, parseBool)
}

func parseUseRegex(s *settings, value string) error {
	return set(&s.useRegex, value, parseBool)
}

// corsValues are the keys of CORS.
type corsValues struct {
	on bool
	filter.CORS
}

const (
	corsMethods = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
	corsHeaders = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
)

func corsDefaults() corsValues {
	return corsValues{CORS: filter.CORS{Origins: []string{"*"}, Methods: corsMethods, Headers: corsHeaders, Credentials: true, MaxAge: 1728000}}
}

func parseEnableCORS(s *settings, value string) error {
	return set(&s.cors.on, value, parseBool)
}

func (s *settings) finishCORS(refs) *finding {
	if s.cors.on {
		c := s.cors.CORS
		s.filters.CORS = &c
	}
	return nil
}

func parseOrigins(s *settings, value string) error {
	var list []string
	s.cors.Origins = nil // none is allowed if one of them is not understood
	for word := range words(value) {
		if word == "*" {
			s.cors.Origins = []string{"*"}
			return nil
		}
		scheme, rest, ok := strings.Cut(word, "://")
		before, after, wild := strings.Cut(rest, "*")
		// One label as an asterisk, and enough behind it to be somebody's.
		if !ok || scheme == "" || rest == "" || strings.ContainsAny(word, " \"'\\/?#@$\t\r\n") && strings.ContainsAny(rest, " \"'\\/?#@$\t\r\n") ||
			wild && (before != "" || !strings.HasPrefix(after, ".") || strings.Contains(after, "*")) {
			return fmt.Errorf("%q is not an origin such as https://*.example.com:8443", word)
		}
		list = append(list, word)
	}
	if list == nil {
		return errors.New("it lists nothing")
	}
	s.cors.Origins = list
	return nil
}

func parseCORSList(of func(*filter.CORS) *string) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		empty := true
		for word := range words(value) {
			if _, err := parseToken(word); err != nil {
				return err
			}
			empty = false
		}
		if empty {
			return errors.New("it lists nothing")
		}
		*of(&s.cors.CORS) = strings.Trim(value, ", ") // a comma at its end is common
		return nil
	}
}

func parseCredentials(s *settings, value string) error {
	return set(&s.cors.Credentials, value, parseBool)
}

func parseCORSMaxAge(s *settings, value string) error {
	if value == "-1" { // is what others write for "not at all"
		s.cors.MaxAge = -1
		return nil
	}
	return set(&s.cors.MaxAge, value, count(1<<31-1))
}

func parseBodySize(s *settings, value string) error {
	return set(&s.filters.MaxBody, value, parseBytes)
}

func parseLimit(of func(*filter.Limits) *int) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(s.limits()), value, count(1_000_000))
	}
}

func parseExempt(s *settings, value string) error {
	return set(&s.limits().Exempt, value, parsePrefixes)
}

func (s *settings) limits() *filter.Limits {
	if s.filters.Limits == nil {
		s.filters.Limits = &filter.Limits{}
	}
	return s.filters.Limits
}

func (s *settings) finishLimits(r refs) *finding {
	l := s.filters.Limits
	switch {
	case l == nil:
	case l.PerSecond == 0 && l.PerMinute == 0 && l.Connections == 0:
		s.filters.Limits = nil
	default:
		l.Zone, l.Key, l.Burst = r.zone(), s.limitKey, orElse(l.Burst, 5)
		l.Status, l.ConnectionStatus = orElse(s.limitCode, 503), orElse(s.limitConnCode, 503)
	}
	return nil
}

func parseUpstreamHost(s *settings, value string) error {
	return set(&s.filters.UpstreamHost, value, filter.ParseHost)
}

func parseForwardedPrefix(s *settings, value string) error {
	return set(&s.filters.ForwardedPrefix, value, parseTemplate)
}

func parseLoadBalance(s *settings, value string) error {
	names := map[string]balance.Algorithm{"round_robin": balance.RoundRobin, "ewma": balance.PeakEWMA, "least_requests": balance.LeastRequests}
	algorithm, ok := names[value]
	if !ok {
		return fmt.Errorf("%q is none of round_robin, ewma, least_requests", value)
	}
	if s.policy.Algorithm != balance.Hash { // upstream-hash-by comes before all
		s.policy.Algorithm = algorithm
	}
	return nil
}

func parseHashBy(s *settings, value string) error {
	p := s.policy
	p.Algorithm, p.HashBy = balance.Hash, value
	if key, ok := s.ownTemplate(value); ok {
		s.filters.HashKey, p.HashBy = key, balance.Given
	}
	if err := p.Check(); err != nil {
		return err
	}
	s.policy = p
	return nil
}

// subsetOptions are the keys of groups of endpoints.
type subsetOptions struct {
	on   bool
	size int
}

func parseHashSubset(s *settings, value string) error {
	return set(&s.subset.on, value, parseBool)
}

func parseHashSubsetSize(s *settings, value string) error {
	return set(&s.subset.size, value, count(balance.MaxSubset))
}

func (s *settings) finishSubset(refs) *finding {
	if s.subset.on && s.policy.Algorithm == balance.Hash {
		s.policy.Subset = orElse(s.subset.size, 3)
	}
	return nil
}

// canaryOptions are the keys of a canary.
type canaryOptions struct {
	on                    bool
	header, value, cookie string
	pattern               *regexp.Regexp
	weight, total         int
	forgets               bool // affinity-canary-behavior: legacy
}

func parseCanary(s *settings, value string) error {
	err := set(&s.canary.on, value, parseBool)
	if err != nil {
		s.dropped = true // it must not be taken for an ordinary Ingress
	}
	return err
}

func parseCanaryHeader(s *settings, value string) error {
	return set(&s.canary.header, value, parseToken)
}

func parseCanaryValue(s *settings, value string) error {
	return set(&s.canary.value, value, parseText)
}

func parseCanaryPattern(s *settings, value string) error {
	return set(&s.canary.pattern, value, filter.CompilePattern)
}

func parseCanaryCookie(s *settings, value string) error {
	return set(&s.canary.cookie, value, parseToken)
}

func parseCanaryWeight(s *settings, value string) error {
	return set(&s.canary.weight, value, count(1_000_000_000))
}

func parseCanaryTotal(s *settings, value string) error {
	return set(&s.canary.total, value, count(1_000_000_000))
}

func parseCanarySessions(s *settings, value string) error {
	if value != "sticky" && value != "legacy" {
		return fmt.Errorf("%q is neither sticky nor legacy", value)
	}
	s.canary.forgets = value == "legacy"
	return nil
}

func (s *settings) finishCanary(refs) *finding {
	if s.canary.on {
		s.canary.total = max(orElse(s.canary.total, 100), 100) // as ingress-nginx: a smaller total does not count
	}
	return nil
}

func parseAccessLog(s *settings, value string) error {
	return set(&s.unlogged, value, parseOff)
}
