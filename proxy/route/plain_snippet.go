package route

import (
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
		"auth-response-headers": parseAuthCopy,
		"enable-access-log":     parseAccessLog,
		"proxy-cookie-domain":   parseCookiePair(true, cookieDomain),
		"proxy-cookie-flags":    parseCookieFlags,
		"proxy-cookie-path":     parseCookiePair(false, cookiePath),
		"proxy-ssl-name":        parseUpstreamName,
		"proxy-ssl-server-name": parseUpstreamSNI,
		"request-headers":       parseRequestHeaders,
		"response-headers":      parseResponseHeaders,
		"success-headers":       parseSuccessHeaders,
	}
}
