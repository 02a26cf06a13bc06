package route

import (
	"slices"
	"strings"
)

// OptionTable returns every annotation that we know, ordered by key. It is the
// one place where an option is defined: code, documentation and `migrate` read
// it alike.
func OptionTable() []Option {
	table := slices.Concat(guards(), tlsOptions(), canaries(), sessions(), corsOptions(), limits(),
		upstreams(), upstreamTLS(), rewrites(), observers(), snippets())
	slices.SortFunc(table, func(a, b Option) int { return strings.Compare(a.Key, b.Key) })
	return table
}

// guards decide who may pass. None of them is obeyed yet, so each closes.
func guards() []Option {
	return []Option{
		{Key: "allowlist-source-range", Risk: Medium, Effect: Closes, Doc: "CIDRs that may pass, others get 403"},
		{Key: "whitelist-source-range", Risk: Medium, Effect: Closes, Doc: "old name of allowlist-source-range"},
		{Key: "denylist-source-range", Risk: Medium, Effect: Closes, Doc: "CIDRs that get 403"},
		{Key: "satisfy", Risk: Low, Effect: Closes, Doc: "whether all guards must agree, or any"},
		{Key: "auth-type", Risk: Low, Effect: Closes, Doc: "basic or digest authentication", matters: isOn},
		{Key: "auth-secret", Risk: Medium, Effect: Closes, Doc: "Secret with the users of basic authentication"},
		{Key: "auth-secret-type", Risk: Low, Effect: Closes, Doc: "layout of that Secret: auth-file or auth-map"},
		{Key: "auth-realm", Risk: Medium, Effect: Closes, Doc: "realm shown by basic authentication"},
		{Key: "auth-url", Risk: High, Effect: Closes, Doc: "service that is asked whether a request may pass"},
		{Key: "auth-method", Risk: Low, Effect: Closes, Doc: "method of the request to auth-url"},
		{Key: "auth-signin", Risk: High, Effect: Closes, Doc: "where a 401 of auth-url sends the client"},
		{Key: "auth-signin-redirect-param", Risk: Medium, Effect: Closes, Doc: "parameter that carries the original address to auth-signin"},
		{Key: "auth-request-redirect", Risk: Medium, Effect: Closes, Doc: "value of X-Auth-Request-Redirect"},
		{Key: "auth-response-headers", Risk: Medium, Effect: Closes, Doc: "headers copied from the answer of auth-url to the backend"},
		{Key: "auth-proxy-set-headers", Risk: Medium, Effect: Closes, Doc: "ConfigMap of headers sent to auth-url"},
		{Key: "auth-always-set-cookie", Risk: Low, Effect: Closes, Doc: "pass Set-Cookie of auth-url with every status"},
		{Key: "auth-cache-key", Risk: Medium, Effect: Closes, Doc: "what answers of auth-url are remembered by"},
		{Key: "auth-cache-duration", Risk: Medium, Effect: Closes, Doc: "how long answers of auth-url are remembered"},
		{Key: "auth-tls-secret", Risk: Medium, Effect: Closes, Doc: "authorities that sign client certificates"},
		{Key: "auth-tls-verify-client", Risk: Medium, Effect: Closes, Doc: "whether a client certificate is needed", matters: isOn},
		{Key: "auth-tls-verify-depth", Risk: Low, Effect: Closes, Doc: "longest chain of a client certificate"},
		{Key: "auth-tls-match-cn", Risk: High, Effect: Closes, Doc: "names that a client certificate may carry"},
		{Key: "auth-tls-error-page", Risk: High, Effect: Closes, Doc: "where a bad client certificate is sent"},
		{Key: "auth-tls-pass-certificate-to-upstream", Risk: Low, Effect: Closes, Doc: "tell the backend the client certificate", matters: isOn},
		{Key: "enable-modsecurity", Risk: Low, Effect: Closes, Doc: "web application firewall", matters: isOn},
		{Key: "enable-owasp-core-rules", Risk: Low, Effect: Closes, Doc: "core rules of that firewall", matters: isOn},
		{Key: "modsecurity-snippet", Risk: Critical, Effect: Closes, Doc: "rules of that firewall"},
		{Key: "modsecurity-transaction-id", Risk: High, Effect: Ignored, Doc: "id in that firewall's log"},
		{Key: "enable-global-auth", Risk: Low, Effect: NoOp, Doc: "opt out of global authentication, which does not exist here"},
		{Key: "auth-keepalive", Risk: Low, Effect: NoOp, Doc: "idle connections to auth-url"},
		{Key: "auth-keepalive-requests", Risk: Low, Effect: NoOp, Doc: "requests on one connection to auth-url"},
		{Key: "auth-keepalive-share-vars", Risk: Low, Effect: NoOp, Doc: "share variables with the request to auth-url"},
		{Key: "auth-keepalive-timeout", Risk: Low, Effect: NoOp, Doc: "idle time of connections to auth-url"},
	}
}

func tlsOptions() []Option {
	return []Option{
		{Key: "ssl-redirect", Risk: Low, Effect: Applied, parse: parseSSLRedirect,
			Doc: "send requests without TLS to https by 308 if the host has a tls entry; true by default for classes of ingress-nginx, false for ours"},
		{Key: "force-ssl-redirect", Risk: Medium, Effect: Applied, parse: parseForceSSLRedirect,
			Doc: "the same without a tls entry, where TLS ends in front of us"},
		{Key: "preserve-trailing-slash", Risk: Medium, Effect: NoOp, Doc: "keep the slash in a redirect to https; always kept here"},
		{Key: "ssl-passthrough", Risk: Low, Effect: Ignored, Doc: "hand raw TLS to the backend", matters: isOn},
		{Key: "ssl-ciphers", Risk: Low, Effect: Ignored, Doc: "cipher suites towards clients"},
		{Key: "ssl-prefer-server-ciphers", Risk: Low, Effect: NoOp, Doc: "order of cipher suites, which TLS 1.3 does not need"},
		{Key: "http2-push-preload", Risk: Low, Effect: NoOp, Doc: "HTTP/2 push, which browsers removed"},
	}
}

// canaries share a host and path with another Ingress. Taken for ordinary
// Ingresses they could win all of its traffic.
func canaries() []Option {
	return []Option{
		{Key: "canary", Risk: Low, Effect: Drops, Doc: "take a share of another Ingress's requests", matters: isOn},
		{Key: "canary-by-header", Risk: Medium, Effect: Ignored, Doc: "header that chooses the canary"},
		{Key: "canary-by-header-value", Risk: Medium, Effect: Ignored, Doc: "value of that header"},
		{Key: "canary-by-header-pattern", Risk: Medium, Effect: Ignored, Doc: "pattern of that header"},
		{Key: "canary-by-cookie", Risk: Medium, Effect: Ignored, Doc: "cookie that chooses the canary"},
		{Key: "canary-weight", Risk: Low, Effect: Ignored, Doc: "share of the canary"},
		{Key: "canary-weight-total", Risk: Low, Effect: Ignored, Doc: "what the share is of"},
		{Key: "affinity-canary-behavior", Risk: Low, Effect: Ignored, Doc: "whether sessions stay with a canary"},
	}
}

func sessions() []Option {
	return []Option{
		{Key: "affinity", Risk: Low, Effect: Ignored, Doc: "keep a client on one endpoint by cookie"},
		{Key: "affinity-mode", Risk: Medium, Effect: Ignored, Doc: "balanced or persistent"},
		{Key: "session-cookie-name", Risk: Medium, Effect: Ignored, Doc: "name of the cookie"},
		{Key: "session-cookie-path", Risk: Medium, Effect: Ignored, Doc: "Path of the cookie"},
		{Key: "session-cookie-domain", Risk: Medium, Effect: Ignored, Doc: "Domain of the cookie"},
		{Key: "session-cookie-expires", Risk: Medium, Effect: Ignored, Doc: "Expires of the cookie"},
		{Key: "session-cookie-max-age", Risk: Medium, Effect: Ignored, Doc: "Max-Age of the cookie"},
		{Key: "session-cookie-samesite", Risk: Low, Effect: Ignored, Doc: "SameSite of the cookie"},
		{Key: "session-cookie-conditional-samesite-none", Risk: Low, Effect: Ignored, Doc: "leave SameSite=None out for old browsers"},
		{Key: "session-cookie-secure", Risk: Low, Effect: Ignored, Doc: "Secure of the cookie"},
		{Key: "session-cookie-change-on-failure", Risk: Low, Effect: Ignored, Doc: "new endpoint after a failure"},
	}
}

func corsOptions() []Option {
	return []Option{
		{Key: "enable-cors", Risk: Low, Effect: Ignored, Doc: "answer preflight requests and add CORS headers", matters: isOn},
		{Key: "cors-allow-origin", Risk: Medium, Effect: Ignored, Doc: "origins allowed"},
		{Key: "cors-allow-methods", Risk: Medium, Effect: Ignored, Doc: "methods allowed"},
		{Key: "cors-allow-headers", Risk: Medium, Effect: Ignored, Doc: "headers allowed"},
		{Key: "cors-allow-credentials", Risk: Low, Effect: Ignored, Doc: "whether credentials are allowed"},
		{Key: "cors-expose-headers", Risk: Medium, Effect: Ignored, Doc: "headers shown to scripts"},
		{Key: "cors-max-age", Risk: Low, Effect: Ignored, Doc: "how long a preflight is remembered"},
	}
}

func limits() []Option {
	return []Option{
		{Key: "limit-rps", Risk: Low, Effect: Ignored, Doc: "requests per second of one client"},
		{Key: "limit-rpm", Risk: Low, Effect: Ignored, Doc: "requests per minute of one client"},
		{Key: "limit-burst-multiplier", Risk: Low, Effect: Ignored, Doc: "burst over those limits"},
		{Key: "limit-connections", Risk: Low, Effect: Ignored, Doc: "connections of one client"},
		{Key: "limit-allowlist", Risk: Low, Effect: Ignored, Doc: "CIDRs without limits"},
		{Key: "limit-whitelist", Risk: Low, Effect: Ignored, Doc: "old name of limit-allowlist"},
		{Key: "limit-rate", Risk: Low, Effect: Ignored, Doc: "KiB per second of one response"},
		{Key: "limit-rate-after", Risk: Low, Effect: Ignored, Doc: "KiB before that limit begins"},
		{Key: "proxy-body-size", Risk: Medium, Effect: Ignored, Doc: "largest request body"},
		{Key: "client-body-buffer-size", Risk: Low, Effect: NoOp, Doc: "memory for a request body, which is streamed here"},
		{Key: "proxy-buffer-size", Risk: Low, Effect: Ignored, Doc: "largest response header"},
		{Key: "proxy-buffering", Risk: Low, Effect: NoOp, Doc: "gather responses; they are streamed here"},
		{Key: "proxy-buffers-number", Risk: Low, Effect: NoOp, Doc: "buffers of one response"},
		{Key: "proxy-busy-buffers-size", Risk: Low, Effect: NoOp, Doc: "buffers of one response that may be busy"},
		{Key: "proxy-max-temp-file-size", Risk: Low, Effect: NoOp, Doc: "disk for one response; none is used here"},
		{Key: "proxy-request-buffering", Risk: Low, Effect: Ignored, Doc: "gather a request before it is sent on"},
	}
}

func upstreams() []Option {
	return []Option{
		{Key: "backend-protocol", Risk: Low, Effect: Ignored, Doc: "protocol of the backend other than HTTP",
			matters: func(v string) bool { return v != "" && !strings.EqualFold(v, "HTTP") }},
		{Key: "load-balance", Risk: Low, Effect: Ignored, Doc: "algorithm other than round_robin",
			matters: func(v string) bool { return v != "" && v != "round_robin" }},
		{Key: "upstream-hash-by", Risk: High, Effect: Ignored, Doc: "choose the endpoint by a hash"},
		{Key: "upstream-hash-by-subset", Risk: Low, Effect: Ignored, Doc: "choose a group of endpoints by that hash"},
		{Key: "upstream-hash-by-subset-size", Risk: Low, Effect: Ignored, Doc: "size of such a group"},
		{Key: "service-upstream", Risk: Low, Effect: Ignored, Doc: "use the address of the Service instead of its endpoints", matters: isOn},
		{Key: "default-backend", Risk: Low, Effect: Ignored, Doc: "Service that answers while the backend has no endpoint"},
		{Key: "custom-http-errors", Risk: Low, Effect: Ignored, Doc: "statuses that default-backend answers"},
		{Key: "disable-proxy-intercept-errors", Risk: Low, Effect: NoOp, Doc: "leave the backend's errors alone, as is done here"},
		{Key: "proxy-connect-timeout", Risk: Low, Effect: Ignored, Doc: "time to connect to the backend"},
		{Key: "proxy-read-timeout", Risk: Low, Effect: Ignored, Doc: "longest silence of the backend"},
		{Key: "proxy-send-timeout", Risk: Low, Effect: Ignored, Doc: "longest time in which the backend takes nothing"},
		{Key: "proxy-next-upstream", Risk: Medium, Effect: Ignored, Doc: "when another endpoint is tried"},
		{Key: "proxy-next-upstream-timeout", Risk: Low, Effect: Ignored, Doc: "time for all tries"},
		{Key: "proxy-next-upstream-tries", Risk: Low, Effect: Ignored, Doc: "number of tries"},
		{Key: "proxy-http-version", Risk: Low, Effect: Ignored, Doc: "HTTP version of the backend",
			matters: func(v string) bool { return v != "" && v != "1.1" }},
		{Key: "connection-proxy-header", Risk: Low, Effect: Ignored, Doc: "Connection header sent to the backend"},
		{Key: "upstream-vhost", Risk: Low, Effect: Ignored, Doc: "Host header sent to the backend"},
		{Key: "x-forwarded-prefix", Risk: Medium, Effect: Ignored, Doc: "X-Forwarded-Prefix sent to the backend"},
		{Key: "mirror-target", Risk: High, Effect: Ignored, Doc: "copy requests to another address"},
		{Key: "mirror-host", Risk: High, Effect: Ignored, Doc: "Host header of the copies"},
		{Key: "mirror-request-body", Risk: Low, Effect: Ignored, Doc: "copy the body too"},
		{Key: "fastcgi-index", Risk: Medium, Effect: Ignored, Doc: "FastCGI, which is not spoken here"},
		{Key: "fastcgi-params-configmap", Risk: Medium, Effect: Ignored, Doc: "FastCGI, which is not spoken here"},
	}
}

func upstreamTLS() []Option {
	return []Option{
		{Key: "proxy-ssl-secret", Risk: Medium, Effect: Ignored, Doc: "our certificate and authorities towards the backend"},
		{Key: "proxy-ssl-verify", Risk: Low, Effect: Ignored, Doc: "verify the backend's certificate", matters: isOn},
		{Key: "proxy-ssl-verify-depth", Risk: Low, Effect: Ignored, Doc: "longest chain of the backend's certificate"},
		{Key: "proxy-ssl-name", Risk: High, Effect: Ignored, Doc: "name in the backend's certificate"},
		{Key: "proxy-ssl-server-name", Risk: Low, Effect: Ignored, Doc: "send that name", matters: isOn},
		{Key: "proxy-ssl-ciphers", Risk: Medium, Effect: Ignored, Doc: "cipher suites towards the backend"},
		{Key: "proxy-ssl-protocols", Risk: Low, Effect: Ignored, Doc: "TLS versions towards the backend"},
	}
}

func rewrites() []Option {
	return []Option{
		{Key: "rewrite-target", Risk: Medium, Effect: Ignored, Doc: "path sent to the backend"},
		{Key: "use-regex", Risk: Low, Effect: Ignored, Doc: "paths are regular expressions", matters: isOn},
		{Key: "app-root", Risk: Medium, Effect: Ignored, Doc: "where / redirects to"},
		{Key: "permanent-redirect", Risk: Medium, Effect: Ignored, Doc: "answer every request by a 301"},
		{Key: "permanent-redirect-code", Risk: Low, Effect: Ignored, Doc: "status instead of that 301"},
		{Key: "temporal-redirect", Risk: Medium, Effect: Ignored, Doc: "answer every request by a 302"},
		{Key: "temporal-redirect-code", Risk: Low, Effect: Ignored, Doc: "status instead of that 302"},
		{Key: "from-to-www-redirect", Risk: Low, Effect: Ignored, Doc: "redirect between a host and its www name", matters: isOn},
		{Key: "relative-redirects", Risk: Low, Effect: Ignored, Doc: "redirects without scheme and host", matters: isOn},
		{Key: "use-port-in-redirects", Risk: Low, Effect: Ignored, Doc: "redirects with our port", matters: isOn},
		{Key: "proxy-redirect-from", Risk: Medium, Effect: Ignored, Doc: "part of the backend's Location to replace"},
		{Key: "proxy-redirect-to", Risk: Medium, Effect: Ignored, Doc: "what replaces it"},
		{Key: "proxy-cookie-domain", Risk: Medium, Effect: Ignored, Doc: "replace Domain of the backend's cookies"},
		{Key: "proxy-cookie-path", Risk: Medium, Effect: Ignored, Doc: "replace Path of the backend's cookies"},
		{Key: "server-alias", Risk: High, Effect: Ignored, Doc: "further names of the host"},
		{Key: "custom-headers", Risk: Medium, Effect: Ignored, Doc: "ConfigMap of response headers"},
	}
}

func observers() []Option {
	return []Option{
		{Key: "enable-access-log", Risk: Low, Effect: Ignored, Doc: "write a line per request"},
		{Key: "enable-rewrite-log", Risk: Low, Effect: NoOp, Doc: "log of nginx's rewrite engine"},
		{Key: "enable-opentelemetry", Risk: Low, Effect: Ignored, Doc: "trace requests", matters: isOn},
		{Key: "opentelemetry-operation-name", Risk: Medium, Effect: Ignored, Doc: "name of the span"},
		{Key: "opentelemetry-trust-incoming-span", Risk: Low, Effect: Ignored, Doc: "continue the client's trace"},
	}
}

// snippets are raw nginx configuration. They are never executed, here or later.
func snippets() []Option {
	return []Option{
		{Key: "auth-snippet", Risk: Critical, Effect: Closes, Doc: "raw nginx configuration for auth-url"},
		{Key: "configuration-snippet", Risk: Critical, Effect: Ignored, Doc: "raw nginx configuration, which is never executed"},
		{Key: "server-snippet", Risk: Critical, Effect: Ignored, Doc: "raw nginx configuration, which is never executed"},
		{Key: "stream-snippet", Risk: Critical, Effect: Ignored, Doc: "raw nginx configuration, which is never executed"},
	}
}
