package route

import (
	"errors"
	"fmt"

	"quayside.io/proxy/snippet"
)

// parsePlainSnippet obeys a configuration-snippet of which options do the same, as a whole or
// not at all. Annotations of the same Ingress come on top.
func parsePlainSnippet(s *settings, value string) error {
	list, err := snippet.Options(value)
	if err != nil {
		return err
	}
	before, parsers := *s, plainParsers()
	for _, o := range list {
		if err := parsers[o.Key](s, o.Value); err != nil {
			*s = before
			return fmt.Errorf("its %s: %w", o.Key, err)
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
