package route

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// externalAuth are the keys of authentication by another service.
func externalAuth() []option {
	return []option{
		{key: "auth-url", scope: ofLocation, risk: riskHigh, effect: applied, guard: true, parse: parseAuthURL,
			doc:    "service that is asked whether a request may pass",
			differ: "certificates of https are verified, save those of Services; a host that only the client names closes the route"},
		{key: "auth-method", scope: ofLocation, unset: "GET", risk: riskLow, effect: applied, guard: true, parse: parseAuthMethod,
			doc: "method of the request to auth-url"},
		{key: "auth-signin", scope: ofLocation, risk: riskHigh, effect: applied, guard: true, parse: parseAuthSignin,
			doc: "where a 401 of auth-url sends the client", differ: "a rule without host is sent the path of the original address alone; $upstream_http_NAME is a field of that answer"},
		{key: "auth-signin-redirect-param", scope: ofLocation, unset: "rd", risk: riskMedium, effect: applied, guard: true, parse: parseAuthParam,
			doc: "parameter that carries the original address to auth-signin"},
		{key: "auth-request-redirect", scope: ofLocation, unset: "$request_uri", risk: riskMedium, effect: applied, guard: true, parse: parseAuthRedirect,
			doc: "value of X-Auth-Request-Redirect"},
		{key: "auth-response-headers", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAuthCopy,
			doc: "headers copied from the answer of auth-url to the backend"},
		{key: "auth-proxy-set-headers", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAuthHeaders,
			doc: "ConfigMap of headers sent to auth-url", differ: "a missing ConfigMap, or one of another namespace, closes the route"},
		{key: "auth-request-headers", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseAuthLines,
			doc: "fields that auth-url is asked with, in lines of NAME: VALUE, with variables of nginx, in the place of those that are sent unasked or by the client; one without a value is left out; on top of auth-proxy-set-headers; Host is the one that is asked for at that address; X-Forwarded-Host is sent unasked"},
		{key: "auth-always-set-cookie", scope: ofLocation, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parseAuthCookie,
			doc: "pass Set-Cookie of auth-url with every status", matters: isOn},
		{key: "auth-cache-key", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAuthCacheKey,
			doc: "what answers of auth-url are remembered by", differ: "an answer with Vary or Expires is not remembered"},
		{key: "auth-cache-duration", scope: ofLocation, unset: "200 202 401 5m", risk: riskMedium, effect: applied, guard: true, parse: parseAuthCacheFor,
			doc: "how long answers of auth-url are remembered"},
		{key: "enable-global-auth", scope: ofLocation, unset: "true", risk: riskLow, effect: applied, parse: parseGlobalAuth,
			doc: "whether global-auth-url of the proxy is asked", matters: func(v string) bool { return v != "" }},
		{key: "auth-keepalive", scope: ofLocation, unset: "0", risk: riskLow, effect: noOp, doc: "idle connections to auth-url"},
		{key: "auth-keepalive-requests", scope: ofLocation, unset: "1000", risk: riskLow, effect: noOp, doc: "requests on one connection to auth-url"},
		{key: "auth-keepalive-share-vars", scope: ofLocation, unset: "false", risk: riskLow, effect: noOp,
			doc: "share variables with the request to auth-url"},
		{key: "auth-keepalive-timeout", scope: ofLocation, unset: "60", risk: riskLow, effect: noOp, doc: "idle time of connections to auth-url"},
	}
}

// authOptions are the keys beside auth-url, as far as they have to wait for it.
type authOptions struct {
	filter.ExternalAuth
	given         bool // any key is
	signin, param string
	headers       string          // auth-proxy-set-headers
	lines         []filter.Header // auth-request-headers
	snippet       AuthSnippet     // auth-snippet
}

func (s *settings) auth() *authOptions {
	s.external.given = true
	return &s.external
}

// forGlobalAuth parses a companion of global-auth-url as that of auth-url.
func forGlobalAuth(parse func(*settings, string) error) func(w *globalOptions, value string) error {
	return forEach(func(s *settings, value string) error {
		own := s.external
		s.external = s.global
		err := parse(s, value)
		s.global, s.external = s.external, own
		return err
	})
}

// parseGlobalAuth reads whether the service of the proxy is asked.
func parseGlobalAuth(s *settings, value string) error {
	return set(&s.globalOff, value, parseOff)
}

// parseGlobalSignin refuses at once what could not be made for any Ingress.
func parseGlobalSignin(s *settings, value string) error {
	if _, err := signinAddress(value, "rd", false); err != nil {
		return err
	}
	return parseAuthSignin(s, value)
}

func parseAuthURL(s *settings, value string) error {
	return set(&s.auth().URL, value, filter.ParseAddress)
}

func parseAuthMethod(s *settings, value string) error {
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, value) {
		return fmt.Errorf("%q is not a method that can be asked with", value)
	}
	s.auth().Method = value
	return nil
}

func parseAuthSignin(s *settings, value string) error {
	s.auth().signin = value
	return nil
}

func parseAuthParam(s *settings, value string) error {
	if url.QueryEscape(value) != value {
		return fmt.Errorf("%q is not the name of a parameter", value)
	}
	s.auth().param = value
	return nil
}

func parseAuthRedirect(s *settings, value string) error {
	return set(&s.auth().Redirect, value, parseTemplate)
}

func parseAuthCopy(s *settings, value string) error {
	o := s.auth()
	for word := range words(value) {
		name, err := parseToken(word)
		if err != nil {
			return err
		}
		if filter.IsFraming(name) {
			return fmt.Errorf("%s is not to be had from another message", name)
		}
		o.Copy = append(o.Copy, name)
	}
	return nil
}

func parseAuthHeaders(s *settings, value string) error {
	s.auth().headers = value
	return nil
}

func parseAuthLines(s *settings, value string) error {
	list, wrong := parseFieldLines(value, parseAuthField)
	s.auth().lines = list
	return inOne(wrong)
}

// parseAuthField is parseField of a question, which may name another host than its address.
func parseAuthField(name, value string) (filter.Header, error) {
	if !strings.EqualFold(name, "host") {
		return parseField(name, value)
	}
	value, err := parseText(value)
	return filter.Header{Name: "Host", Value: value}, err
}

func parseAuthSnippet(s *settings, value string) error {
	said, err := ParseAuthSnippet(value)
	if err == nil {
		s.auth().snippet = *said
	}
	return err
}

func parseAuthCookie(s *settings, value string) error {
	return set(&s.auth().AlwaysCookie, value, parseBool)
}

func parseAuthCacheKey(s *settings, value string) error {
	return set(&s.auth().CacheKey, value, parseTemplate)
}

// parseAuthCacheFor reads lists of statuses, each with a time behind it:
// "200 202 10m, any 1m".
func parseAuthCacheFor(s *settings, value string) error {
	o := s.auth()
	for list := range strings.SplitSeq(value, ",") {
		words := strings.Fields(list)
		if len(words) == 0 {
			return errors.New("one of its times is missing")
		}
		d, err := parseNginxTime(words[len(words)-1])
		if err != nil {
			return err
		}
		if words = words[:len(words)-1]; len(words) == 0 {
			words = []string{"200", "301", "302"}
		}
		for _, word := range words {
			status, err := strconv.Atoi(word)
			switch {
			case word == "any":
				status = 0
			case err != nil || status < 100 || status > 599:
				return fmt.Errorf("%q is not a status", word)
			}
			o.CacheFor = append(o.CacheFor, filter.CacheTime{Status: status, For: d})
		}
	}
	return nil
}

// parseNginxTime reads a time of nginx: a number, perhaps with ms, s, m, h or d.
func parseNginxTime(text string) (time.Duration, error) {
	units := []struct {
		name string
		unit time.Duration
	}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"", time.Second}}
	for _, u := range units {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseUint(digits, 10, 31)
			if err != nil || n > uint64(366*24*time.Hour/u.unit) {
				break
			}
			return time.Duration(n) * u.unit, nil
		}
	}
	return 0, fmt.Errorf("%q is not a time up to a year", text)
}

// asksGlobally reports whether global-auth-url of the proxy is asked: it is unless keys of
// the Ingress say whom to ask, or that nobody is.
func (s *settings) asksGlobally() bool {
	return !s.external.given && !s.globalOff && s.global.URL != nil
}

// finishAuth makes the question to the authentication service, and closes a route for which
// none can be made: there is no service, or the client would choose it.
func (s *settings) finishAuth(r refs) *finding {
	o, name := &s.external, "auth-url"
	if s.asksGlobally() {
		o, name = &s.global, "auth-url, by global-auth-url of the proxy,"
		s.touched = true
	}
	if !o.given || o.URL == nil && s.closed != "" {
		return nil
	}
	auth, err := o.made(r)
	if err != nil {
		f := s.closeFor(name, "guards access and ", err)
		return &f
	}
	s.filters.External = auth
	return nil
}

func (o *authOptions) made(r refs) (*filter.ExternalAuth, error) {
	auth := o.ExternalAuth
	switch {
	case auth.URL == nil:
		return nil, errors.New("is missing beside its companions")
	case auth.URL.ByHost && r.anyHost():
		return nil, errors.New("leads to whatever host a client names, since a rule of the Ingress is for every host")
	}
	if auth.CacheKey != nil && len(auth.CacheFor) == 0 {
		for _, status := range []int{200, 202, 401} {
			auth.CacheFor = append(auth.CacheFor, filter.CacheTime{Status: status, For: 5 * time.Minute})
		}
	}
	if o.signin != "" {
		place := snippet.FieldsOf(o.snippet.Answers).In(o.signin, "upstream_http_")
		signin, err := signinAddress(place, orText(o.param, "rd"), r.anyHost())
		if err != nil {
			return nil, fmt.Errorf("its auth-signin is not understood: %w", err)
		}
		auth.Signin = signin
	}
	fields, err := o.fields(r)
	auth.Headers = fields
	return &auth, err
}

// fields are those of the question: of the ConfigMap and of the snippet as far as no line has
// them.
func (o *authOptions) fields(r refs) ([]filter.Field, error) {
	list := slices.Clone(o.snippet.Headers)
	if o.headers != "" {
		shared, err := headersOf(r, o.headers)
		if err != nil {
			return nil, fmt.Errorf("its auth-proxy-set-headers %w", err)
		}
		list = overlaid(shared, list)
	}
	list = overlaid(list, o.lines)
	fields := make([]filter.Field, 0, len(list))
	for _, h := range list {
		value, err := filter.ParseTemplate(h.Value)
		if err != nil {
			return nil, fmt.Errorf("is to be asked with a value for %s that is not understood: %w", h.Name, err)
		}
		if strings.EqualFold(h.Name, "host") {
			if err := askableHost(h.Value, r); err != nil {
				return nil, fmt.Errorf("is to be asked for a host that is not understood: %w", err)
			}
		}
		fields = append(fields, filter.Field{Name: h.Name, Value: value})
	}
	return fields, nil
}

// askableHost checks that no client decides which host a service is asked for: one of its
// others might let everybody pass.
func askableHost(value string, r refs) error {
	a, err := filter.ParseAddress("http://" + value)
	switch {
	case err != nil:
		return err
	case strings.ContainsAny(value, "/?"):
		return fmt.Errorf("%q is more than a host", value)
	case a.ByHost && r.anyHost():
		return errors.New("it is whatever host a client names, since a rule of the Ingress is for every host")
	}
	return nil
}

// overlaid returns list with own behind it, and nothing before that own has, too.
func overlaid(list, own []filter.Header) []filter.Header {
	list = slices.DeleteFunc(list, func(h filter.Header) bool {
		return slices.ContainsFunc(own, func(o filter.Header) bool { return strings.EqualFold(o.Name, h.Name) })
	})
	return append(list, own...)
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// signinAddress adds the original address to where clients sign in, unless it is
// there already. Where the route is for every host, that a client names one says
// nothing, so the address is then without it.
func signinAddress(place, param string, anyHost bool) (*filter.Template, error) {
	original := "$scheme://$http_host$escaped_request_uri"
	if anyHost {
		original = "$escaped_request_uri"
	}
	_, query, has := strings.Cut(place, "?")
	switch {
	case !has:
		place += "?" + param + "=" + original
	case !hasParam(query, param):
		place += "&" + param + "=" + original
	}
	address, err := filter.ParseSignin(place)
	if err != nil {
		return nil, err
	}
	if address.ByHost && anyHost {
		return nil, errors.New("it leads to whatever host a client names, since a rule of the Ingress is for every host")
	}
	return address.Template, nil
}

func hasParam(query, param string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name == param && value != "" {
			return true
		}
	}
	return false
}
