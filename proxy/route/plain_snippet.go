package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/snippet"
)

// parsePlainSnippet obeys a configuration-snippet of which options do the same, as a whole or
// not at all. Annotations of the same Ingress come on top.
func parsePlainSnippet(s *settings, value string) error {
	list, denied, err := snippet.Options(value)
	if err != nil {
		return err
	}
	return s.obeySnippet("configuration-snippet", list, denied)
}

// obeySnippet obeys what a snippet comes to that stands under a key.
func (s *settings) obeySnippet(key string, list []snippet.Setting, denied []snippet.Denial) error {
	before, parsers := *s, plainParsers()
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

// denyHidden denies the paths that locations of nginx refuse, which stand under a key.
func (s *settings) denyHidden(key string, list []snippet.Denial) error {
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, l := range list {
		lines = append(lines, l.String())
	}
	if err := parseDeniedPaths(s, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("its denied-paths: %w", err)
	}
	s.hidden, s.hiddenBy = slices.Concat(s.hidden, list), key
	return nil
}

// finishHidden closes a route where nginx would serve a path of the Ingress that its
// snippet refuses, since here it would be refused.
func (s *settings) finishHidden(r refs) *finding {
	if len(s.hidden) == 0 {
		return nil
	}
	paths := r.paths()
	for _, l := range s.hidden {
		if !l.Wins(paths, s.useRegex || s.rewrite != nil) {
			f := s.close(s.hiddenBy, fmt.Sprintf("refuses %s, beside a path of the Ingress that nginx may prefer to that", l))
			f.message += SnippetHelp
			return &f
		}
	}
	return nil
}

// plainParsers are those of the options that snippet.Options returns.
func plainParsers() map[string]func(s *settings, value string) error {
	return map[string]func(s *settings, value string) error{
		"allowlist-source-range": parseSnippetAllow,
		"auth-response-headers":  parseAuthCopy,
		"denied-requests":        parseDeniedRequests,
		"enable-access-log":      parseAccessLog,
		"proxy-cookie-domain":    parseCookiePair(true, cookieDomain),
		"proxy-cookie-flags":     parseCookieFlags,
		"proxy-cookie-path":      parseCookiePair(false, cookiePath),
		"proxy-ssl-name":         parseUpstreamName,
		"proxy-ssl-server-name":  parseUpstreamSNI,
		"answered-requests":      parseAnsweredRequests,
		"redirected-requests":    parseRedirectedRequests,
		"rewritten-paths":        parseRewrittenPaths,
		"request-headers":        parseRequestHeaders,
		"response-headers":       parseResponseHeaders,
		"success-headers":        parseSuccessHeaders,
	}
}

// parseSnippetAllow reads the allow list of a snippet. nginx asks lists in their order; beside
// those of an option or of the proxy a wrong guess at it opens.
func parseSnippetAllow(s *settings, value string) error {
	if s.filters.Access != nil {
		return errors.New("other lists of addresses hold, too")
	}
	return parseAllow("configuration-snippet")(s, value)
}
