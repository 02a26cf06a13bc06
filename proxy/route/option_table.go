package route

import (
	"slices"
	"strings"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// optionTable returns every annotation of ingress-nginx, ordered by key. It is
// the one place where an option is defined: what compiles Ingresses, and so
// `quayside migrate` too, reads it here.
func optionTable() []option {
	table := slices.Concat(guards(), firewalls(), externalAuth(), clientCerts(), mirrors(), tlsOptions(), canaries(), sessions(), corsOptions(), limits(),
		upstreams(), balancing(), upstreamTLS(), rewrites(), observers(), snippets())
	slices.SortFunc(table, func(a, b option) int { return strings.Compare(a.key, b.key) })
	return table
}

// guards decide who may pass. One that is not obeyed yet closes.
func guards() []option {
	return []option{
		{key: "allowlist-source-range", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAllow("allowlist-source-range"),
			doc: "CIDRs that may pass, others get 403", differ: "both names of the list together close the route", matters: always},
		{key: "whitelist-source-range", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAllow("whitelist-source-range"),
			doc: "old name of allowlist-source-range", differ: "both names of the list together close the route", matters: always},
		{key: "denylist-source-range", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseDeny,
			doc: "CIDRs that get 403", matters: always},
		{key: "denied-paths", scope: ofHost, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseDeniedPaths,
			doc: "paths that get 403, in lines as nginx's locations: what they begin with, = and a whole path, ~ or ~* and a pattern (RE2) that is found in them, and perhaps a status behind it, such as 404; " +
				"holds for all paths of its hosts in its namespace, but for challenges of ACME; 64 lines, and 256 different ones of a namespace on one host"},
		{key: "denied-requests", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseDeniedRequests,
			doc: "requests that get 403, in lines as nginx's if: a variable of a request, one of =, !=, ~, !~, ~* and !~*, a value or pattern (RE2), in double quotes if it has blanks, and perhaps a status behind it, such as " +
				"$request_method !~ ^(GET|HEAD)$ 405; each of several fields, cookies or arguments of a name counts, and X-Forwarded-* say what is believed of the client"},
		{key: "satisfy", scope: ofLocation, unset: "all", risk: riskLow, effect: applied, guard: true, parse: parseSatisfy,
			doc: "whether all guards must agree, or any"},
		{key: "auth-type", scope: ofLocation, risk: riskLow, effect: applied, guard: true, parse: parseAuthType,
			doc: "basic or digest authentication", differ: "digest is refused, which closes the route", matters: isOn},
		{key: "auth-secret", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAuthSecret,
			doc: "Secret with the users of basic authentication", differ: "a Secret of another namespace, or one without auth-type, closes the route"},
		{key: "auth-secret-type", scope: ofLocation, unset: "auth-file", risk: riskLow, effect: applied, guard: true, parse: parseAuthSecretType,
			doc: "layout of that Secret: auth-file or auth-map"},
		{key: "auth-realm", scope: ofLocation, risk: riskMedium, effect: applied, guard: true, parse: parseAuthRealm,
			doc: "realm shown by basic authentication"},
	}
}

func tlsOptions() []option {
	return []option{
		{key: "ssl-redirect", scope: ofLocation, unset: "true", risk: riskLow, effect: applied, parse: parseSSLRedirect,
			doc: "send requests without TLS to https by 308 if the host has a tls entry, in classes of ingress-nginx also another of its Ingress; true by default there, false for ours"},
		{key: "force-ssl-redirect", scope: ofLocation, unset: "false", risk: riskMedium, effect: applied, parse: parseForceSSLRedirect,
			doc: "the same without a tls entry, where TLS ends in front of us"},
		{key: "preserve-trailing-slash", scope: ofLocation, unset: "false", risk: riskMedium, effect: noOp,
			doc: "keep the slash in a redirect to https; always kept here"},
		{key: "ssl-passthrough", scope: ofHost, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parsePassthrough, matters: isOn,
			doc:    "hand connections on to the backend of the path / undecrypted, by the server name that clients ask for",
			differ: "to endpoints, unless service-upstream says otherwise; wildcard hosts and aliases too; on unless --enable-ssl-passthrough=false, which closes the route; lists of addresses are kept, other guards, and those of the namespace's other Ingresses for the host, end the connections; a request that comes decrypted, by a connection for another name, gets 421; HTTP without TLS is served as ever"},
		{key: "ssl-passthrough-proxy-protocol", scope: ofHost, unset: "off", risk: riskLow, effect: applied, ours: true, parse: parsePassthroughHeader,
			doc: "v1 or v2: begin those connections with a PROXY header of that version"},
		{key: "ssl-ciphers", scope: ofHost, risk: riskLow, effect: applied, parse: parseHostCiphers,
			doc: "cipher suites towards clients before TLS 1.3", differ: "those that Go has, in its own order; of groups DEFAULT, HIGH and ALL; the oldest Ingress of a host counts"},
		{key: "http2", scope: ofHost, unset: "true", risk: riskLow, effect: applied, ours: true, parse: parseHostHTTP2,
			doc: "offer HTTP/2 to clients that ask for the host by TLS; a connection for another host does not carry its requests then, but answers 421; of a host's Ingresses the oldest that says anything counts, before use-http2 of the ConfigMap"},
		{key: "ssl-prefer-server-ciphers", scope: ofHost, unset: "true", risk: riskLow, effect: noOp,
			doc: "order of cipher suites, which TLS 1.3 does not need"},
		{key: "http2-push-preload", scope: ofLocation, unset: "false", risk: riskLow, effect: noOp, doc: "HTTP/2 push, which browsers removed"},
	}
}

// canaries share a host and path with another Ingress. Taken for ordinary
// Ingresses they could win all of its traffic.
func canaries() []option {
	return []option{
		{key: "canary", scope: ofIngress, unset: "false", risk: riskLow, effect: applied, parse: parseCanary,
			doc: "take a share of another Ingress's requests", matters: isOn},
		{key: "canary-by-header", scope: ofIngress, risk: riskMedium, effect: applied, parse: parseCanaryHeader,
			doc: "header that chooses the canary"},
		{key: "canary-by-header-value", scope: ofIngress, risk: riskMedium, effect: applied, parse: parseCanaryValue,
			doc: "value of that header"},
		{key: "canary-by-header-pattern", scope: ofIngress, risk: riskMedium, effect: applied, parse: parseCanaryPattern,
			doc: "pattern of that header", differ: "the pattern is RE2"},
		{key: "canary-by-cookie", scope: ofIngress, risk: riskMedium, effect: applied, parse: parseCanaryCookie,
			doc: "cookie that chooses the canary"},
		{key: "canary-weight", scope: ofIngress, unset: "0", risk: riskLow, effect: applied, parse: parseCanaryWeight,
			doc: "share of the canary"},
		{key: "canary-weight-total", scope: ofIngress, unset: "100", risk: riskLow, effect: applied, parse: parseCanaryTotal,
			doc: "what the share is of"},
		{key: "affinity-canary-behavior", scope: ofIngress, unset: "sticky", risk: riskLow, effect: applied, parse: parseCanarySessions,
			doc: "sticky: sessions are as those of the Ingress that the canary is of, and who has one with the canary stays there; legacy: as the canary's own affinity says"},
	}
}

func sessions() []option {
	return []option{
		{key: "affinity", scope: ofIngress, risk: riskLow, effect: applied, parse: parseAffinity,
			doc: "keep a client on one endpoint by cookie"},
		{key: "affinity-mode", scope: ofIngress, unset: "balanced", risk: riskMedium, effect: applied, parse: parseAffinityMode,
			doc: "balanced or persistent"},
		{key: "session-cookie-name", scope: ofIngress, unset: "INGRESSCOOKIE", risk: riskMedium, effect: applied, parse: parseCookieName,
			doc: "name of the cookie"},
		{key: "session-cookie-path", scope: ofIngress, risk: riskMedium, effect: applied,
			parse: parseCookieText(func(c *balance.Cookie) *string { return &c.Path }),
			doc:   "Path of the cookie", differ: "unset, it is the path of the rule without a slash at its end, and / where that is a pattern, in which ingress-nginx sends the pattern"},
		{key: "session-cookie-domain", scope: ofIngress, risk: riskMedium, effect: applied,
			parse: parseCookieText(func(c *balance.Cookie) *string { return &c.Domain }),
			doc:   "Domain of the cookie"},
		{key: "session-cookie-expires", scope: ofIngress, risk: riskMedium, effect: applied,
			parse: parseCookieTime(func(c *balance.Cookie) *time.Duration { return &c.Expires }),
			doc:   "Expires of the cookie"},
		{key: "session-cookie-max-age", scope: ofIngress, risk: riskMedium, effect: applied,
			parse: parseCookieTime(func(c *balance.Cookie) *time.Duration { return &c.MaxAge }),
			doc:   "Max-Age of the cookie"},
		{key: "session-cookie-samesite", scope: ofIngress, risk: riskLow, effect: applied, parse: parseSameSite,
			doc: "SameSite of the cookie"},
		{key: "session-cookie-conditional-samesite-none", scope: ofIngress, unset: "false", risk: riskLow, effect: applied,
			parse: parseCookieSwitch(func(c *balance.Cookie) *bool { return &c.ConditionalNone }),
			doc:   "leave SameSite=None out for old browsers"},
		{key: "session-cookie-secure", scope: ofIngress, risk: riskLow, effect: applied, parse: parseCookieSecure,
			doc: "Secure of the cookie"},
		{key: "session-cookie-change-on-failure", scope: ofIngress, unset: "false", risk: riskLow, effect: applied,
			parse: parseCookieSwitch(func(c *balance.Cookie) *bool { return &c.ChangeOnFailure }),
			doc:   "new endpoint after a failure"},
	}
}

func corsOptions() []option {
	return []option{
		{key: "enable-cors", scope: ofIngress, unset: "false", risk: riskLow, effect: applied, parse: parseEnableCORS,
			doc: "answer preflight requests and add CORS headers", matters: isOn},
		{key: "cors-allow-origin", scope: ofIngress, unset: "*", risk: riskMedium, effect: applied, parse: parseOrigins,
			doc: "origins allowed"},
		{key: "cors-allow-methods", scope: ofIngress, unset: corsMethods, risk: riskMedium, effect: applied,
			parse: parseCORSList(func(c *filter.CORS) *string { return &c.Methods }),
			doc:   "methods allowed"},
		{key: "cors-allow-headers", scope: ofIngress, unset: corsHeaders, risk: riskMedium, effect: applied,
			parse: parseCORSList(func(c *filter.CORS) *string { return &c.Headers }),
			doc:   "headers allowed"},
		{key: "cors-allow-credentials", scope: ofIngress, unset: "true", risk: riskLow, effect: applied, parse: parseCredentials,
			doc: "whether credentials are allowed"},
		{key: "cors-expose-headers", scope: ofIngress, risk: riskMedium, effect: applied,
			parse: parseCORSList(func(c *filter.CORS) *string { return &c.Expose }),
			doc:   "headers shown to scripts"},
		{key: "cors-max-age", scope: ofIngress, unset: "1728000", risk: riskLow, effect: applied, parse: parseCORSMaxAge,
			doc: "how long a preflight is remembered"},
	}
}

func limits() []option {
	return []option{
		{key: "limit-rps", scope: ofLocation, unset: "0", risk: riskLow, effect: applied,
			parse: parseLimit(func(l *filter.Limits) *int { return &l.PerSecond }),
			doc:   "requests per second of one client"},
		{key: "limit-rpm", scope: ofLocation, unset: "0", risk: riskLow, effect: applied,
			parse: parseLimit(func(l *filter.Limits) *int { return &l.PerMinute }),
			doc:   "requests per minute of one client"},
		{key: "limit-burst-multiplier", scope: ofLocation, unset: "5", risk: riskLow, effect: applied,
			parse: parseLimit(func(l *filter.Limits) *int { return &l.Burst }),
			doc:   "burst over those limits"},
		{key: "limit-connections", scope: ofLocation, unset: "0", risk: riskLow, effect: applied,
			parse: parseLimit(func(l *filter.Limits) *int { return &l.Connections }),
			doc:   "connections of one client", differ: "requests under way are counted, not connections"},
		{key: "limit-allowlist", scope: ofLocation, risk: riskLow, effect: applied, parse: parseExempt,
			doc: "CIDRs without limits"},
		{key: "limit-whitelist", scope: ofLocation, risk: riskLow, effect: applied, parse: parseExempt,
			doc: "old name of limit-allowlist"},
		{key: "limit-rate", scope: ofLocation, unset: "0", risk: riskLow, effect: applied, parse: parseRate(func(f *exchange.Forwarding) *int64 { return &f.Rate }),
			doc: "KiB per second of one response", differ: "without proxy-buffering too; the backend is held up"},
		{key: "limit-rate-after", scope: ofLocation, unset: "0", risk: riskLow, effect: applied, parse: parseRate(func(f *exchange.Forwarding) *int64 { return &f.RateAfter }),
			doc: "KiB before that limit begins"},
		{key: "proxy-body-size", scope: ofLocation, unset: "1m", risk: riskMedium, effect: applied, parse: parseBodySize,
			doc: "largest request body", differ: "no limit by default for classes of ours"},
		{key: "client-body-buffer-size", scope: ofLocation, unset: "8k", risk: riskLow, effect: applied, parse: parseGatherMemory,
			doc: "memory for a request body, before a file is used", differ: "64k by default, and 1m at most; where proxy-request-buffering is off, bodies are streamed"},
		{key: "proxy-buffer-size", scope: ofLocation, unset: "4k", risk: riskLow, effect: applied, parse: parseHeadSize,
			doc: "largest response header", differ: "256k whatever it says; more than that is told"},
		{key: "proxy-buffering", scope: ofLocation, unset: "off", risk: riskLow, effect: noOp, doc: "gather responses; they are streamed here, and a slow client holds up its backend, not memory or disk"},
		{key: "proxy-buffers-number", scope: ofLocation, unset: "4", risk: riskLow, effect: noOp, doc: "buffers of one response"},
		{key: "proxy-busy-buffers-size", scope: ofLocation, risk: riskLow, effect: noOp, doc: "buffers of one response that may be busy"},
		{key: "proxy-max-temp-file-size", scope: ofLocation, unset: "1024m", risk: riskLow, effect: noOp, doc: "disk for one response; none is used here"},
		{key: "proxy-request-buffering", scope: ofLocation, unset: "on", risk: riskLow, effect: applied, parse: parseGather,
			doc: "gather a request before it is sent on", differ: "off by default for classes of ours; see --body-files for what is not gathered, nor is what goes to backends over HTTP/2"},
	}
}

func upstreams() []option {
	return []option{
		{key: "backend-protocol", scope: ofLocation, unset: "HTTP", risk: riskLow, effect: applied, parse: parseProtocol, guard: true,
			doc: "protocol of the backend other than HTTP", differ: "HTTPS, GRPC, GRPCS and H2C; another one closes the route; where nothing is said, the appProtocol kubernetes.io/h2c of the Service's port counts; " +
				"what calls of gRPC are refused with is a status of gRPC; with GRPC and GRPCS hide-headers, proxy-ssl-server-name and proxy_set_header of snippets hold, too, which nginx leaves out there"},
		{key: "load-balance", scope: ofLocation, unset: "round_robin", risk: riskLow, effect: applied, parse: parseLoadBalance,
			doc: "algorithm other than round_robin", differ: "least_requests is known too"},
		{key: "upstream-hash-by", scope: ofLocation, risk: riskHigh, effect: applied, parse: parseHashBy,
			doc: "choose the endpoint by a hash", differ: "simple variables only; where the endpoint fails, another is tried instead of the same"},
		{key: "upstream-hash-by-subset", scope: ofLocation, unset: "false", risk: riskLow, effect: applied, parse: parseHashSubset,
			doc: "choose a group of endpoints by that hash", differ: "every hash has a group of its own, so that groups overlap; what a busy one cannot take goes beyond it"},
		{key: "upstream-hash-by-subset-size", scope: ofLocation, unset: "3", risk: riskLow, effect: applied, parse: parseHashSubsetSize,
			doc: "size of such a group", differ: "16 at most"},
		{key: "service-upstream", scope: ofIngress, unset: "false", risk: riskLow, effect: applied, parse: parseServiceAddress,
			doc: "use the address of the Service instead of its endpoints"},
		{key: "default-backend", scope: ofLocation, risk: riskLow, effect: applied, parse: parseErrorBackend, doc: "Service that answers while the backend has no endpoint"},
		{key: "custom-http-errors", scope: ofLocation, risk: riskLow, effect: applied, parse: parseOwnErrorStatuses, doc: "statuses that default-backend answers", differ: "needs default-backend, or --default-backend-service, which is asked by GET without the body, and whose answers have the fields that the Ingress sets; what guards and limits refuse is not sent there, nor answers of gRPC"},
		{key: "disable-proxy-intercept-errors", scope: ofLocation, unset: "false", risk: riskLow, effect: applied, parse: parseErrorsOff,
			doc: "leave the backend's errors alone"},
		{key: "proxy-connect-timeout", scope: ofLocation, unset: "5", risk: riskLow, effect: applied, parse: parseConnectTimeout,
			doc: "time to connect to the backend"},
		{key: "proxy-read-timeout", scope: ofLocation, unset: "60", risk: riskLow, effect: applied, parse: parseReadTimeout,
			doc: "longest silence of the backend"},
		{key: "proxy-send-timeout", scope: ofLocation, unset: "60", risk: riskLow, effect: applied, parse: parseSendTimeout,
			doc: "longest time in which the backend takes nothing"},
		{key: "proxy-next-upstream", scope: ofLocation, unset: "error timeout", risk: riskMedium, effect: applied, parse: parseNext,
			doc: "when another endpoint is tried"},
		{key: "proxy-next-upstream-timeout", scope: ofLocation, unset: "0", risk: riskLow, effect: applied, parse: parseTriesTimeout,
			doc: "time for all tries"},
		{key: "proxy-next-upstream-tries", scope: ofLocation, unset: "3", risk: riskLow, effect: applied, parse: parseTries, doc: "number of tries"},
		{key: "proxy-http-version", scope: ofLocation, unset: "1.1", risk: riskLow, effect: applied, parse: parseHTTPVersion,
			doc: "1.0 or 1.1: HTTP version that the backend is asked in, where backend-protocol does not say 2", differ: "with 1.0 each request has its own connection, and upgrades are refused"},
		{key: "connection-proxy-header", scope: ofLocation, risk: riskLow, effect: applied, parse: parseConnection,
			doc: "Connection header sent to the backend", differ: "keep-alive, which refuses upgrades, and upgrade only"},
		{key: "upstream-vhost", scope: ofLocation, risk: riskLow, effect: applied, parse: parseUpstreamHost,
			doc: "Host header sent to the backend", differ: "no variables but those of the host, the place and the path's groups"},
		{key: "x-forwarded-prefix", scope: ofLocation, risk: riskMedium, effect: applied, parse: parseForwardedPrefix,
			doc: "X-Forwarded-Prefix sent to the backend", differ: "without rewrite-target, too"},
		{key: "fastcgi-index", scope: ofLocation, risk: riskMedium, effect: ignored, doc: "FastCGI, which is not spoken here"},
		{key: "fastcgi-params-configmap", scope: ofLocation, risk: riskMedium, effect: ignored, doc: "FastCGI, which is not spoken here"},
	}
}

func upstreamTLS() []option {
	return []option{
		{key: "proxy-ssl-secret", scope: ofIngress, risk: riskMedium, effect: applied, parse: parseUpstreamSecret,
			doc: "our certificate and authorities towards the backend", differ: "a missing Secret, or one of another namespace, closes the route"},
		{key: "proxy-ssl-verify", scope: ofIngress, unset: "off", risk: riskLow, effect: applied, parse: parseUpstreamVerify, guard: true,
			doc: "verify the backend's certificate", differ: "without proxy-ssl-secret by the authorities of the system", matters: isOn},
		{key: "proxy-ssl-verify-depth", scope: ofIngress, unset: "1", risk: riskLow, effect: applied, parse: parseUpstreamDepth, guard: true,
			doc: "how many authorities may stand between the backend's certificate and one that is trusted", differ: "any number by default; counts with proxy-ssl-verify only"},
		{key: "proxy-ssl-name", scope: ofIngress, risk: riskHigh, effect: applied, parse: parseUpstreamName, guard: true,
			doc: "name in the backend's certificate", differ: "the Service's name in the cluster by default; of variables $host and $server_name, where that is one name"},
		{key: "proxy-ssl-server-name", scope: ofIngress, unset: "off", risk: riskLow, effect: applied, parse: parseUpstreamSNI,
			doc: "send that name", matters: isOn},
		{key: "proxy-ssl-ciphers", scope: ofIngress, unset: "DEFAULT", risk: riskMedium, effect: applied, parse: parseUpstreamCiphers,
			doc: "cipher suites towards the backend before TLS 1.3", differ: "those that Go has, in its own order; of groups DEFAULT, HIGH and ALL; those of TLS 1.3 are not for choosing"},
		{key: "proxy-ssl-protocols", scope: ofIngress, unset: "TLSv1.2", risk: riskLow, effect: applied, parse: parseUpstreamProtocols,
			doc: "TLS versions towards the backend", differ: "1.2 and 1.3 by default; without a gap between them; no SSL"},
	}
}

func rewrites() []option {
	return []option{
		{key: "rewrite-target", scope: ofHost, risk: riskMedium, effect: applied, guard: true, parse: parseRewriteTarget,
			doc: "path sent to the backend", differ: "the pattern is RE2; of slashes that it begins with, one is sent"},
		{key: "answered-requests", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseAnsweredRequests,
			doc: "requests that are answered here, whoever asks, in lines that begin as those of denied-requests, and of paths, too; behind that a status, and perhaps a text with nginx's variables (\\n is a new line), in double quotes where its media type comes before it, such as " +
				"$uri = /robots.txt 200 User-agent: *\\nDisallow: /"},
		{key: "rewritten-paths", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseRewrittenPaths,
			doc: "paths that the backend is asked under another, in lines of a pattern (RE2), in double quotes if it has blanks, and what replaces every path in which that is found, with its groups and nginx's variables, such as ^/api/(.*)$ /$1; " +
				"the first line counts, and rewrite-target where none does; of slashes that the path begins with, one is sent"},
		{key: "use-regex", scope: ofHost, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parseUseRegex,
			doc: "paths are regular expressions", differ: "patterns are RE2; one that is refused closes what it may have meant; Exact paths stay exact, where in ingress-nginx all of the host become patterns", matters: isOn},
		{key: "app-root", scope: ofLocation, risk: riskMedium, effect: applied, parse: parseAppRoot,
			doc: "where / of the host redirects to, whether the Ingress has a rule for that or not", differ: "not where another namespace has the path /"},
		{key: "permanent-redirect", scope: ofLocation, risk: riskMedium, effect: applied, guard: true,
			parse: parseRedirectTo(func(o *redirectOptions) **filter.Target { return &o.permanent }),
			doc:   "answer every request by a 301", differ: "of variables, only those for the host may stand in the host"},
		{key: "permanent-redirect-code", scope: ofLocation, unset: "301", risk: riskLow, effect: applied,
			parse: parseRedirectCode(func(o *redirectOptions) *int { return &o.permanentCode }),
			doc:   "status instead of that 301"},
		{key: "temporal-redirect", scope: ofLocation, risk: riskMedium, effect: applied, guard: true,
			parse: parseRedirectTo(func(o *redirectOptions) **filter.Target { return &o.temporal }),
			doc:   "answer every request by a 302", differ: "of variables, only those for the host may stand in the host"},
		{key: "temporal-redirect-code", scope: ofLocation, unset: "302", risk: riskLow, effect: applied,
			parse: parseRedirectCode(func(o *redirectOptions) *int { return &o.temporalCode }),
			doc:   "status instead of that 302"},
		{key: "redirected-requests", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseRedirectedRequests,
			doc: "requests that are sent elsewhere, in lines that begin as those of denied-requests, and of paths, too; behind that the address, with the groups of the pattern and nginx's variables, and perhaps a status, by default 302, such as " +
				"$uri ~ ^(/docs)$ $1/ 301; $http_x_forwarded_proto is what came, whoever sent it"},
		{key: "direct-response", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, guard: true, parse: parseDirectResponse,
			doc: "status, and behind it the text with nginx's variables, that every request is answered which passes the guards; no backend is needed; redirects have options of their own"},
		{key: "from-to-www-redirect", scope: ofHost, unset: "false", risk: riskLow, effect: applied, parse: parseWWW,
			doc: "redirect between a host and its www name", matters: isOn},
		{key: "relative-redirects", scope: ofLocation, unset: "false", risk: riskLow, effect: noOp,
			doc: "redirects of nginx without scheme and host; none of ours depends on it"},
		{key: "use-port-in-redirects", scope: ofLocation, unset: "false", risk: riskLow, effect: applied, parse: parsePortInRedirects,
			doc: "redirects to https name the port", differ: "the one that --redirect-port says, and 443 too"},
		{key: "proxy-redirect-from", scope: ofLocation, unset: "off", risk: riskMedium, effect: applied, parse: parseLocationFrom, doc: "part of the backend's Location to replace", differ: "default is off; patterns are RE2"},
		{key: "proxy-redirect-to", scope: ofLocation, unset: "off", risk: riskMedium, effect: applied, parse: parseLocationTo, doc: "what replaces it", differ: "a path stays a path, which nginx makes an address of"},
		{key: "proxy-cookie-domain", scope: ofLocation, unset: "off", risk: riskMedium, effect: applied, parse: parseCookiePair(true, cookieDomain), doc: "replace Domain of the backend's cookies", differ: "patterns are RE2"},
		{key: "proxy-cookie-path", scope: ofLocation, unset: "off", risk: riskMedium, effect: applied, parse: parseCookiePair(false, cookiePath), doc: "replace Path of the backend's cookies", differ: "patterns are RE2; attributes behind it, as in \"/; Secure\", come behind the rest of the path"},
		{key: "proxy-cookie-flags", scope: ofLocation, risk: riskLow, effect: applied, ours: true, parse: parseCookieFlags,
			doc: "flags of the backend's cookies, in lines as of nginx's directive of that name: a name, or ~ and a pattern, and secure, httponly, samesite=lax, nosecure and so on; ~ alone means every cookie"},
		{key: "server-alias", scope: ofHost, risk: riskHigh, effect: applied, parse: parseAliases, doc: "further names of the host", differ: "for all paths that the namespace has under the first host of this Ingress; no patterns"},
		{key: "custom-headers", scope: ofLocation, risk: riskMedium, effect: applied, parse: parseCustomHeaders,
			doc: "ConfigMap of response headers", differ: "any field may be set that does not frame the message; a missing ConfigMap, or one of another namespace, closes the route"},
		{key: "response-headers", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, parse: parseResponseHeaders,
			doc: "fields of every response, in lines of NAME: VALUE, with variables of nginx; one without a value is taken out; on top of custom-headers, and of what global-allowed-response-headers lets Ingresses set"},
		{key: "success-headers", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, parse: parseSuccessHeaders,
			doc: "the same for responses with status 200, 201, 204, 206, 301 to 304, 307 and 308 alone, as add_header of nginx has it: what caches may keep"},
		{key: "request-headers", scope: ofLocation, risk: riskMedium, effect: applied, ours: true, parse: parseRequestHeaders,
			doc: "fields that the backend is sent, in lines of NAME: VALUE, with variables of nginx; one without a value is taken out; on top of proxy-set-headers of the ConfigMap"},
	}
}

func observers() []option {
	return []option{
		{key: "enable-access-log", scope: ofLocation, unset: "true", risk: riskLow, effect: applied, parse: parseAccessLog,
			doc: "write a line per request", differ: "where the proxy keeps a log, see --access-log"},
		{key: "enable-rewrite-log", scope: ofLocation, unset: "false", risk: riskLow, effect: noOp, doc: "log of nginx's rewrite engine"},
		{key: "enable-opentelemetry", scope: ofLocation, unset: "false", risk: riskLow, effect: applied, parse: parseToggle(func(s *settings) *bool { return &s.trace.on }),
			doc: "trace requests", differ: "by W3C Trace Context and OTLP over gRPC only; without otlp-collector-host requests get a traceparent and no spans are made; attributes are those of the present semantic conventions for HTTP, without the query, and the names of namespace, Ingress and Service"},
		{key: "opentelemetry-operation-name", scope: ofLocation, risk: riskMedium, effect: applied, parse: parseSpanName,
			doc: "name of the span, by default the path of the rule", differ: "variables are allowed, simple ones only"},
		{key: "opentelemetry-trust-incoming-span", scope: ofLocation, unset: "true", risk: riskLow, effect: applied, parse: parseToggle(func(s *settings) *bool { return &s.trace.trust }),
			doc: "continue the client's trace", differ: "false replaces its traceparent and tracestate, with enable-opentelemetry"},
	}
}

// snippets are raw nginx configuration, of which all is understood or nothing obeyed.
func snippets() []option {
	return []option{
		{key: "auth-snippet", scope: ofLocation, risk: riskCritical, effect: applied, guard: true, parse: parseAuthSnippet,
			doc: "raw nginx configuration for auth-url", differ: "proxy_set_header is obeyed, and auth_request_set of fields for auth-signin; anything else closes the route"},
		{key: "configuration-snippet", scope: ofLocation, risk: riskCritical, effect: applied, parse: parseSnippet("configuration-snippet", false),
			doc: "raw nginx configuration", differ: "obeyed as a whole or not at all, save for what it can do without, which is told: set, if, rewrite, return and break, as nginx does them, fields of requests and responses, texts of pages (sub_filter), flags of cookies and the like, addresses that may pass or not, error_page, auth_request and auth_request_set, mirror, limits of the proxy's zones, compression, proxy_pass in an if, and locations that refuse or answer by themselves; another has no effect: it closes the route where it guards access, and is told elsewhere"},
		{key: "server-snippet", scope: ofHost, risk: riskCritical, effect: applied, parse: parseSnippet("server-snippet", true),
			doc: "raw nginx configuration", differ: "obeyed as a whole or not at all, save for what it can do without, for all paths that the namespace has on the hosts of its rules, except those of Ingresses with another server-snippet: set, if, rewrite, return and break, as nginx does them, fields of responses, error_page, auth_request, mirror, compression, and locations that refuse, as denied-paths, answer by themselves, move the path, or have others asked by proxy_pass; another has no effect: it closes these paths where it guards access, and is told elsewhere"},
		{key: "stream-snippet", scope: ofIngress, risk: riskCritical, effect: ignored, doc: "raw nginx configuration, which is never executed"},
	}
}
