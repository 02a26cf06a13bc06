package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// obeyedSnippets are what is obeyed of those that stand in the place of Ingresses, and of those of
// hosts.
type obeyedSnippets struct {
	known       snippet.Known // by both
	ahead       string        // what stands in the place of the Ingress, and is read later
	place, host obeyed
	beside      []*filter.Script // of what stands beside all hosts
}

// obeyed is what is obeyed of the snippets of one kind.
type obeyed struct {
	script  *filter.Script // of all of them; nil: they have none
	forAll  string         // what the proxy says for all Ingresses
	request int            // how many fields of requests that sets
}

// of is what is obeyed for hosts, or in the place of Ingresses.
func (o *obeyedSnippets) of(hosts bool) *obeyed {
	if hosts {
		return &o.host
	}
	return &o.place
}

// scripts are in the order in which nginx comes to them.
func (o *obeyedSnippets) scripts() (list []*filter.Script) {
	for _, s := range []*filter.Script{o.host.script, o.place.script} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// ownTemplate is a text with variables that snippets have set, or given tables; false: there is
// none that is not known anyway.
func (s *settings) ownTemplate(text string) (*filter.Template, bool) {
	if _, err := filter.ParseTemplate(text); err == nil {
		return nil, false
	}
	t, err := s.snippets.known.ParseTemplate(text)
	return t, err == nil
}

// template is filter.ParseTemplate with such variables.
func (s *settings) template(text string) (*filter.Template, error) {
	if t, ok := s.ownTemplate(text); ok {
		return t, nil
	}
	return filter.ParseTemplate(text)
}

// parseSnippet obeys a snippet of an Ingress, as a whole or not at all, save for what it can do
// without. Annotations of the same Ingress come on top. What stands for hosts holds for the paths
// of its namespace there, see lendSnippets.
func parseSnippet(key string, ofHost bool) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		made, err := s.obeySnippet(key, value, ofHost)
		s.takesAnswers = s.takesAnswers || err == nil && len(made.Script.Answers) > 0
		if err == nil && ofHost && (!made.Script.IsEmpty() || len(made.Options)+len(made.Passages) > 0) {
			s.ofHost = &serverSnippet{text: value, indexes: s.snippets.known.Indexes()}
		}
		if err != nil && ofHost && guardsAccess(value) {
			s.ofHost = &serverSnippet{text: value, shuts: true}
		}
		if err == nil {
			err = inPart(1, made.Skipped)
		}
		return err
	}
}

// obeySnippet obeys a snippet that stands under a key, behind that of the same kind that stands
// for all Ingresses, as nginx reads both in one place.
func (s *settings) obeySnippet(key, value string, ofHost bool) (*snippet.Scripted, error) {
	behind := func() *snippet.Known {
		known := s.snippets.known.Clone()
		if ofHost {
			snippet.Declare(s.snippets.ahead, known)
		}
		return known
	}
	known := behind()
	made, err := snippet.Script(value, ofHost, known)
	if err != nil {
		return nil, err
	}
	kind, whole := s.snippets.of(ofHost), made
	if kind.forAll != "" {
		known = behind()
		if whole, err = snippet.Script(kind.forAll+"\n"+value, ofHost, known); err != nil {
			return nil, fmt.Errorf("behind the one of the proxy: %w", err)
		}
	}
	before := *s
	if err := s.obeyOptions(key, made.Options, made.Denied); err != nil {
		return nil, err
	}
	if err := s.obeyRealIP(made.RealIP, ofHost); err != nil {
		*s = before
		return nil, err
	}
	s.snippets.known = *known
	s.filters.RequestHeaders = slices.Concat(s.filters.RequestHeaders, whole.Request[kind.request:])
	if made.Host != nil {
		s.filters.UpstreamHost = whole.Host
	}
	for i := range whole.Script.Rates {
		r := &whole.Script.Rates[i]
		r.Status = cmp.Or(r.Status, s.limitCode)
	}
	if c := whole.Script.Concurrency; c != nil {
		c.Status = cmp.Or(c.Status, s.limitConnCode)
	}
	if ofHost {
		s.passages = whole.Passages
	} else {
		s.detours, s.filters.Detours = whole.Detours, pathsOf(whole.Detours)
	}
	if !whole.Script.IsEmpty() {
		kind.script = whole.Script
	}
	s.filters.Scripts = s.snippets.scripts()
	return made, nil
}

// obeyRealIP has a snippet say who the client is, if it does.
func (s *settings) obeyRealIP(said *filter.RealIP, ofHost bool) error {
	of, other := &s.filters.RealIP, s.filters.HostRealIP
	if ofHost {
		of, other = &s.filters.HostRealIP, s.filters.RealIP
	}
	switch {
	case said == nil:
	case other != nil || *of != nil:
		return errors.New("set_real_ip_from: another snippet says who the client is, too")
	default:
		*of = said
	}
	return nil
}

// obeyForAll obeys a snippet that stands for all Ingresses, before those of each. One of each
// takes the place of lists of addresses, so that those are not obeyed.
func (s *settings) obeyForAll(key, value string, ofHost bool) error {
	before := *s
	s.mayAnswer = nil // which is about fields of Ingresses
	made, err := s.obeySnippet(key, value, ofHost)
	s.mayAnswer = before.mayAnswer
	if err != nil {
		return err
	}
	if err == nil && len(made.Passages) > 0 {
		*s = before
		return errors.New("a location of all hosts leads to no Service")
	}
	for _, o := range made.Options {
		switch {
		case o.Key == "auth-url":
			err = errors.New("global-auth-url names who is asked about all Ingresses")
		case o.Key == "server-alias":
			err = errors.New("a name of all hosts is no name")
		case isList(o):
			err = errors.New("of allow and deny whitelist-source-range and denylist-source-range do the same, which an Ingress may replace")
		}
	}
	if err != nil {
		*s = before
		return err
	}
	kind := s.snippets.of(ofHost)
	kind.forAll, kind.request = strings.TrimPrefix(kind.forAll+"\n"+value, "\n"), kind.request+len(made.Request)
	if len(made.Skipped) > 0 {
		return fmt.Errorf("%w: %w", errInPart, inOne(made.Skipped))
	}
	return nil
}

// obeyOptions obeys options that stand for a snippet under a key, and the paths that it refuses,
// all or none.
func (s *settings) obeyOptions(key string, list []snippet.Setting, denied []snippet.Denial) error {
	before, parsers := *s, snippetParsers()
	if s.filters.Access != nil && slices.ContainsFunc(list, isList) { // nginx asks them in their order, and a wrong guess opens
		return errors.New("other lists of addresses hold, too")
	}
	if err := s.denyHidden(key, denied); err != nil {
		return err
	}
	for _, o := range list {
		if err := parsers[o.Key](s, o.Value); err != nil {
			*s = before
			return fmt.Errorf("its %s: %w", o.Key, err)
		}
	}
	return nil
}

// snippetParsers are those of the options that snippet.Script returns.
func snippetParsers() map[string]func(s *settings, value string) error {
	parsers := map[string]func(s *settings, value string) error{
		"allowlist-source-range": parseAllow("configuration-snippet"),
		"auth-url":               parseSnippetAsk,
		"auth-method":            parseAuthMethod,
		"auth-request-headers":   parseAuthLines,
		"denylist-source-range":  parseSnippetDeny,
		"enable-access-log":      parseAccessLog,
		"limit-rate":             parseRate(func(f *exchange.Forwarding) *int64 { return &f.Rate }),
		"limit-rate-after":       parseRate(func(f *exchange.Forwarding) *int64 { return &f.RateAfter }),
		"mirror-host":            parseMirrorHost,
		"mirror-request-body":    parseMirrorBody,
		"mirror-request-headers": parseMirrorHeaders,
		"mirror-target":          parseSnippetMirror,
		"proxy-cookie-domain":    parseCookiePair(true, cookieDomain),
		"proxy-cookie-flags":     parseCookieFlags,
		"proxy-cookie-path":      parseCookiePair(false, cookiePath),
		"proxy-ssl-name":         parseUpstreamName,
		"proxy-ssl-server-name":  parseUpstreamSNI,
		"proxy-ssl-protocols":    parseUpstreamProtocols,
		"server-alias":           parseAliases,
		"request-headers":        parseRequestHeaders,
		"satisfy":                parseSatisfy,
		"x-forwarded-prefix":     parseForwardedPrefix,
	}
	for key, parse := range compressParsers() {
		parsers[key] = func(s *settings, value string) error {
			if value == "true" {
				s.compress.asNginx(key)
			}
			err := parse(s, value)
			s.filters.Compress = s.compress.filter()
			return err
		}
	}
	return parsers
}

// parseSnippetAsk is parseAuthURL where nobody is asked yet.
func parseSnippetAsk(s *settings, value string) error {
	if s.external.URL != nil {
		return errors.New("another service is asked already")
	}
	return parseAuthURL(s, value)
}

// parseSnippetMirror is parseMirrorTarget where no copies are sent yet.
func parseSnippetMirror(s *settings, value string) error {
	if s.mirror.To != nil {
		return errors.New("copies go elsewhere already")
	}
	return parseMirrorTarget(s, value)
}

func parseSnippetDeny(s *settings, value string) error {
	err := parseDeny(s, value)
	s.denied = true
	return err
}

// isList reports whether an option is one of addresses.
func isList(o snippet.Setting) bool { return strings.HasSuffix(o.Key, "list-source-range") }

// finishScripts tells of places of a host to which no path of the Ingress leads, so that they
// are never asked for here, and of variables of answers where nobody is asked.
func (s *settings) finishScripts(r refs) *finding {
	if s.takesAnswers && s.filters.External == nil {
		return &finding{InvalidAnnotation, "annotation configuration-snippet acts in part: nobody is asked who could answer what auth_request_set takes; set auth-url"}
	}
	if len(s.filters.Scripts) == 0 {
		return nil
	}
	paths := r.paths()
	patterns := s.patterns(paths)
	for _, one := range s.filters.Scripts {
		if one == s.snippets.host.script {
			continue // see tellOfHost
		}
		for _, p := range one.Places {
			leads := func(at snippet.Path) bool {
				return patterns || p.Pattern != nil || at.Path == "" || strings.HasPrefix(p.Path, at.Path)
			}
			if !slices.ContainsFunc(paths, leads) {
				return &finding{InvalidAnnotation, fmt.Sprintf("annotation configuration-snippet acts in part: no path of the Ingress leads to its location %s", p.Path)}
			}
		}
	}
	return nil
}
