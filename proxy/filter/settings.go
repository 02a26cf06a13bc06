package filter

import (
	"hash/maphash"
	"net/netip"
	"regexp"
	"slices"

	"quayside.io/proxy/coding"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/seclang"
)

// Settings are what the options of an Ingress ask of the filters of its routes:
// plain values that were checked when they were parsed. The zero value asks for
// nothing. Once in a Route they are not changed.
type Settings struct {
	// Trace names requests for whoever sees them; nil: only clients do.
	Trace *Trace
	// DeniedPaths are refused before all else.
	DeniedPaths []DeniedPath
	// DeniedRequests are refused where scripts of other origins have been told whether they
	// may ask.
	DeniedRequests []DeniedRequest
	// RedirectedRequests are sent elsewhere behind that, and AnsweredRequests answered.
	RedirectedRequests []RedirectedRequest
	AnsweredRequests   []AnsweredRequest
	// Scripts, those of the host first, come before both.
	Scripts []*Script
	// MaxBody is the largest request body in bytes; 0: any.
	MaxBody int64
	CORS    *CORS
	// AppRoot is the path that a request for exactly "/" is sent to, by 302; nil: none.
	AppRoot *Target
	// Redirect answers every request.
	Redirect *Redirect
	// AddSlash sends those who ask for the path of the rule, but for the slash at its end, to
	// that with it.
	AddSlash bool
	// CanonicalHost is the name that requests for this host are sent to, with the
	// scheme and the target that they have. Empty: none. RedirectCode is the status, 308.
	CanonicalHost string
	RedirectCode  int

	// Clients asks for a certificate, before all else and whatever SatisfyAny says.
	Clients *ClientCert
	Limits  *Limits
	Access  *Access
	Basic   *Basic
	// External has a service asked.
	External *ExternalAuth
	// SatisfyAny lets a request pass that one of Access, Basic and External lets pass.
	SatisfyAny bool

	// Firewall judges what passes all of them.
	Firewall *Firewall

	// DirectResponse is what such a request is answered; nil: the upstream is asked.
	DirectResponse *DirectResponse

	Mirror  *Mirror
	Rewrite *Rewrite
	// RewrittenPaths come before that: of all the first counts whose pattern is found.
	RewrittenPaths []Rewrite
	UpstreamPath   *UpstreamPath
	Detours        []*UpstreamPath // of scripts
	// DropNames has fields of requests left out by what stands in their names, before anything
	// else sees them.
	DropNames exchange.Spelling
	// HostRealIP says who the client is before anything else, and RealIP after what Scripts do.
	HostRealIP, RealIP *RealIP
	// NoUpgrade sends requests for another protocol on as what they are without.
	NoUpgrade bool
	// UpstreamHost replaces the Host field that the upstream is sent, see ParseHost.
	UpstreamHost *Template
	// HashKey is what the endpoint is chosen by; nil: it is not said here.
	HashKey *Template
	// RequestHeaders are set in every request that the upstream is sent; one without a
	// value is left out.
	RequestHeaders []Field
	// ForwardedPrefix is sent to the upstream as X-Forwarded-Prefix.
	ForwardedPrefix *Template
	// Location replaces the beginning of the upstream's Location and Refresh.
	Location Replacement
	Cookies  *Cookies
	// CookieFlags change the flags of the upstream's cookies, those of each as the first says
	// that is about it.
	CookieFlags []CookieFlags
	// HideHeaders are fields of the upstream's response that the client is not sent.
	HideHeaders []string
	// Headers are set in every response, behind them what Scripts say and TopHeaders, and
	// SuccessHeaders in those without an error.
	Headers, TopHeaders, SuccessHeaders []Field
	// Compress encodes responses.
	Compress *Compress
}

// Header is one field to set.
type Header struct{ Name, Value string }

// CORS is the answer to scripts of other origins. Empty lists leave their fields
// out.
type CORS struct {
	// Origins are "*" alone, or origins, each perhaps with one label as an asterisk:
	// "https://*.example.com:8443".
	Origins []string
	// Methods, Headers and Expose are the values of the fields.
	Methods, Headers, Expose string
	Credentials              bool
	MaxAge                   int // seconds for which a preflight is remembered; 0 and -1: not at all
}

// Redirect sends requests elsewhere.
type Redirect struct {
	Code int // 301, 302, 303, 307 or 308
	// To is the whole new address; nothing is appended.
	To *Target
}

// DirectResponse is what requests are answered without an upstream.
type DirectResponse struct {
	Status int
	Text   *Template // the body, as text/plain
}

// Access lets clients pass by their address.
type Access struct {
	// Deny refuses, with 403. It comes before Allow.
	Deny []netip.Prefix
	// Allow, unless empty, refuses all others.
	Allow []netip.Prefix
}

// Passes reports whether a client may pass; nil lets all.
func (a *Access) Passes(client netip.Addr) bool {
	return a == nil || !isIn(a.Deny, client) && (len(a.Allow) == 0 || isIn(a.Allow, client))
}

// Basic asks for a user and a password (RFC 7617).
type Basic struct {
	Realm string
	Users *Users
}

// Limits bound what one client may ask. 0 is no limit.
type Limits struct {
	// Zone names whose limits these are: requests to different zones are counted
	// apart.
	Zone string
	// Key is what clients are counted by, nil: their address. Who has none is not limited.
	Key *Template
	// PerSecond and PerMinute are requests; Burst is how many times as many may come
	// at once, 5.
	PerSecond, PerMinute, Burst int
	// Connections are requests at the same time.
	Connections int
	// Exempt are not limited.
	Exempt []netip.Prefix
	// Status refuses requests, ConnectionStatus those over Connections; 503.
	Status, ConnectionStatus int
}

// Rewrite replaces the path that the upstream is sent.
type Rewrite struct {
	// Pattern finds what Target's $1 to $9 stand for in the path (normalised). Where
	// it does not match, nothing is rewritten. Nil: every path is replaced.
	Pattern *regexp.Regexp
	// Target is the new path, perhaps with a query, which comes before the client's. An
	// absolute URL redirects there by 302. Its groups are those of Pattern.
	Target *Template
	// Decode reads %2F in the path as a slash, see AppendDecoded. Where Pattern does
	// not match that, the path is taken as it is.
	Decode bool
}

// Tools are what filters need beside the exchange, made by whoever runs them.
type Tools struct {
	// Limiter counts clients for all routes.
	Limiter *Limiter
	// Connections counts requests under way.
	Connections *Connections
	// Asker asks others. Where nobody can be asked, what needs an answer refuses.
	Asker Asker
	// Answers remembers what they say.
	Answers *Answers
	// Memory is that of the bodies that are being copied.
	Memory *Memory
	// Encoders compress for all routes.
	Encoders *coding.Encoders
	// Inspector returns who judges by rules; nil: nobody, so nothing passes.
	Inspector func(seclang.RuleSet) Inspector
	// Place is where the route stands.
	Place Place
	// Normalize appends the path of a target as it is matched; ok is false of one that is none.
	Normalize func(dst, target []byte) (path []byte, ok bool)
}

// NewTools returns the tools of one process; seed is a secret that keeps clients from
// choosing what they are counted with.
func NewTools(seed maphash.Seed) Tools {
	return Tools{Limiter: newLimiter(seed, limiterKeys), Connections: newConnections(seed), Answers: newAnswers(), Asker: nobody{}, Memory: newMemory(64 << 20), Encoders: &coding.Encoders{}}
}

// Host is what the filters of a route owe to the host that it is on.
type Host struct {
	// ToTLS, if not nil, says which requests are sent to https, by the path that their route was
	// found by, with RedirectCode; 308. RedirectPort is the port that the address names; empty:
	// none.
	ToTLS        func(path []byte) bool
	RedirectCode int
	RedirectPort string
	// HSTS is the Strict-Transport-Security of every response over TLS; empty: the
	// upstream's own.
	HSTS string
}

// add appends a filter that is asked for.
func (c *Chain) add(on bool, f func() Filter) {
	if on {
		*c = append(*c, f())
	}
}

// FieldsAlone is what s says of the fields of all responses, whoever makes them.
func (s *Settings) FieldsAlone() *Settings {
	alone := &Settings{Headers: s.Headers}
	for _, one := range s.Scripts {
		if fields := one.FieldsAlone(); fields != nil {
			alone.Scripts = append(alone.Scripts, fields)
		}
	}
	return alone
}

// Compile returns the filters that s asks for, in the order in which ingress-nginx
// runs them.
func Compile(s *Settings, host Host, tools Tools) Chain {
	var c Chain
	add := c.add
	if s == nil {
		s = &Settings{}
	}
	add(s.DropNames != 0, func() Filter { return dropNames(s.DropNames) })
	add(s.Trace != nil, func() Filter { return Filter{Request: s.Trace.request} })
	add(s.HostRealIP != nil, func() Filter { return s.HostRealIP.filter() })
	add(len(s.DeniedPaths) > 0, func() Filter { return deniedPaths(s.DeniedPaths) })
	add(s.Location.Asks(), func() Filter { return location(s.Location, tools.Place) })
	add(s.Cookies != nil, func() Filter { return cookies(s.Cookies, tools.Place) })
	add(len(s.CookieFlags) > 0, func() Filter { return cookieFlags(s.CookieFlags) })
	add(len(s.HideHeaders) > 0, func() Filter { return hideHeaders(s.HideHeaders) })
	add(host.HSTS != "", func() Filter { return hsts(host.HSTS) })
	add(s.Clients != nil, func() Filter { return s.Clients.filter(host, tools) })
	add(s.MaxBody > 0, func() Filter { return maxBody(s.MaxBody) })
	add(s.CORS != nil, func() Filter { return cors(s.CORS) })
	add(len(s.DeniedRequests) > 0, func() Filter { return deniedRequests(s.DeniedRequests, tools.Place) })
	c = append(c, s.answers(&tools)...)
	add(host.ToTLS != nil, func() Filter { return ToTLS(host.ToTLS, host.RedirectCode, host.RedirectPort) })
	add(s.RealIP != nil, func() Filter { return s.RealIP.filter() })
	if s.Limits != nil {
		c = append(c, limits(s.Limits, tools)...)
	}
	for _, one := range s.Scripts {
		c = append(c, scriptLimits(one, tools)...)
	}
	for _, one := range s.Scripts {
		add(one.Except != nil, func() Filter { return one.Except.filter() })
	}
	add(s.guarded(), func() Filter { return Guards(s, tools) })
	add(s.Firewall != nil, func() Filter { return firewall(s.Firewall, tools) })
	add(s.DirectResponse != nil, func() Filter { return directResponse(s.DirectResponse, tools.Place) })
	add(s.Basic != nil && !s.External.copies("Authorization"), dropPassword)
	add(s.Mirror != nil, func() Filter { return mirror(s.Mirror, tools) })
	add(s.Rewrite != nil || len(s.RewrittenPaths) > 0, func() Filter { return rewrites(s.pathRewrites(), tools.Place) })
	add(s.NoUpgrade, noUpgrade)
	add(s.UpstreamHost != nil, func() Filter { return upstreamHost(s.UpstreamHost, tools.Place) })
	add(s.HashKey != nil, func() Filter { return hashKey(s.HashKey, tools.Place) })
	add(len(s.RequestHeaders) > 0, func() Filter { return requestHeaders(s.RequestHeaders, tools.Place) })
	add(s.ForwardedPrefix != nil, func() Filter { return forwardedPrefix(s.ForwardedPrefix, tools.Place) })
	add(s.UpstreamPath != nil || len(s.Detours) > 0, func() Filter { return upstreamPaths(s.UpstreamPath, s.Detours, tools.Place) })
	add(len(s.Headers) > 0, func() Filter { return headers(s.Headers, tools.Place) })
	add(len(s.Scripts) > 0, func() Filter { return Filter{Response: changeFields(s.Scripts, tools.Place)} })
	add(len(s.TopHeaders) > 0, func() Filter { return headers(s.TopHeaders, tools.Place) })
	add(len(s.SuccessHeaders) > 0, func() Filter { return onSuccess(headers(s.SuccessHeaders, tools.Place)) })
	for _, one := range s.Scripts {
		add(one.Substitution != nil, func() Filter { return Filter{Response: substitute(one.Substitution, tools.Place)} })
	}
	add(s.Compress != nil, func() Filter { return compress(s.Compress, tools.Encoders) })
	return c
}

// answers are the filters that answer what passes DeniedRequests, before anybody is asked who
// it is from.
func (s *Settings) answers(tools *Tools) (c Chain) {
	at := tools.Place
	for _, one := range s.Scripts {
		c = append(c, script(one, s.Rewrite, tools))
	}
	c.add(len(s.RedirectedRequests) > 0, func() Filter { return redirectedRequests(s.RedirectedRequests, at) })
	c.add(len(s.AnsweredRequests) > 0, func() Filter { return answeredRequests(s.AnsweredRequests, at) })
	c.add(s.CanonicalHost != "", func() Filter { return canonicalHost(s.CanonicalHost, s.RedirectCode) })
	c.add(s.AppRoot != nil, func() Filter { return appRoot(s.AppRoot, at) })
	c.add(s.Redirect != nil, func() Filter { return redirect(s.Redirect, at) })
	c.add(s.AddSlash, func() Filter { return addSlash(at.Path) })
	return c
}

// pathRewrites are all of them, in their order.
func (s *Settings) pathRewrites() []Rewrite {
	if s.Rewrite == nil {
		return s.RewrittenPaths
	}
	return append(slices.Clone(s.RewrittenPaths), *s.Rewrite)
}
