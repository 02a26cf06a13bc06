package route

import (
	"slices"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// globalTable returns every key of the ConfigMap of ingress-nginx that this product
// knows, ordered. It is the one place where such an option is defined.
func globalTable() []globalOption {
	table := slices.Concat(globalGuards(), globalFirewalls(), globalTLS(), globalForwarding(), globalUpstreams(), globalClients(), globalResponses(), globalCompression(), globalAnnotations(), globalSnippets(), globalTraces(), globalProcess())
	slices.SortFunc(table, func(a, b globalOption) int { return strings.Compare(a.key, b.key) })
	return table
}

func globalGuards() []globalOption {
	return []globalOption{
		{key: "whitelist-source-range", effect: applied, guard: true, parse: forEach(parseGlobalAllow), doc: "CIDRs that may pass, others get 403; an annotation replaces it"},
		{key: "denylist-source-range", effect: applied, guard: true, parse: forEach(parseDeny), doc: "CIDRs that get 403; an annotation replaces it"},
		{key: "block-cidrs", effect: applied, guard: true, parse: forFront(parseBlockCIDRs), doc: "CIDRs that get 403 for every host"},
		{key: "block-user-agents", effect: applied, guard: true, parse: forFront(parsePatterns(func(f *filter.Front) *filter.Patterns { return &f.BlockAgents })),
			doc: "User-Agents that get 403: values, or patterns behind ~ or ~*", differ: "patterns are RE2"},
		{key: "block-referers", effect: applied, guard: true, parse: forFront(parsePatterns(func(f *filter.Front) *filter.Patterns { return &f.BlockReferers })),
			doc: "Referers that get 403: values, or patterns behind ~ or ~*", differ: "patterns are RE2"},
		{key: "global-auth-url", effect: applied, guard: true, parse: forGlobalAuth(parseAuthURL), doc: "service that is asked whether a request may pass",
			differ: "as auth-url; what is asked for by no rule gets its 404 unasked"},
		{key: "global-auth-method", effect: applied, guard: true, parse: forGlobalAuth(parseAuthMethod), doc: "method of the request to global-auth-url"},
		{key: "global-auth-signin", effect: applied, guard: true, parse: forGlobalAuth(parseGlobalSignin), doc: "where a 401 of global-auth-url sends the client"},
		{key: "global-auth-signin-redirect-param", effect: applied, guard: true, unset: "rd", parse: forGlobalAuth(parseAuthParam), doc: "parameter that carries the original address"},
		{key: "global-auth-response-headers", effect: applied, guard: true, parse: forGlobalAuth(parseAuthCopy), doc: "headers copied from the answer of global-auth-url"},
		{key: "global-auth-request-redirect", effect: applied, guard: true, parse: forGlobalAuth(parseAuthRedirect), doc: "value of X-Auth-Request-Redirect"},
		{key: "global-auth-request-headers", effect: applied, ours: true, guard: true, parse: forGlobalAuth(parseAuthLines),
			doc: "fields that global-auth-url is asked with, as auth-request-headers"},
		{key: "global-auth-snippet", effect: applied, guard: true, parse: forGlobalAuth(parseAuthSnippet),
			doc: "raw nginx configuration for global-auth-url", differ: "as auth-snippet"},
		{key: "global-auth-cache-key", effect: applied, guard: true, parse: forGlobalAuth(parseAuthCacheKey), doc: "what answers of global-auth-url are remembered by"},
		{key: "global-auth-cache-duration", effect: applied, guard: true, unset: "200 202 401 5m", parse: forGlobalAuth(parseAuthCacheFor), doc: "how long they are"},
		{key: "global-auth-always-set-cookie", effect: applied, guard: true, unset: "false", parse: forGlobalAuth(parseAuthCookie), doc: "pass Set-Cookie of global-auth-url with every status"},
		{key: "no-auth-locations", effect: applied, guard: true, unset: acmePath, parse: forEach(parsePaths(func(s *settings) *[]string { return &s.global.Except })),
			doc: "paths without authentication", differ: "without global-auth-url alone, what annotations ask for stays; they are those of requests, with all below, and in adopted classes of their rules, too"},
	}
}

func globalTLS() []globalOption {
	return []globalOption{
		{key: "ssl-redirect", unset: "true", effect: applied, parse: forEach(parseSSLRedirect), doc: "send requests without TLS to https if the host has a tls entry",
			differ: "false by default for classes of our own"},
		{key: "force-ssl-redirect", unset: "false", effect: applied, parse: forEach(parseForceSSLRedirect), doc: "the same without a tls entry"},
		{key: "http-redirect-code", unset: "308", effect: applied, parse: forEach(parseTLSCode), doc: "status of redirects to https and between www and apex"},
		{key: "no-tls-redirect-locations", unset: acmePath, effect: applied, parse: forEach(parsePaths(func(s *settings) *[]string { return &s.tls.plain })),
			doc: "paths that are not sent to https", differ: "they are those of requests, with all below, and in adopted classes of their rules, too"},
		{key: "hsts", unset: "true", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.tls.hsts.on })),
			doc: "send Strict-Transport-Security over TLS", differ: "for hosts with a tls entry; false by default for classes of our own"},
		{key: "hsts-max-age", unset: "31536000", effect: applied, parse: forEach(parseHSTSMaxAge), doc: "seconds that browsers remember it"},
		{key: "hsts-include-subdomains", unset: "true", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.tls.hsts.subdomains })), doc: "for names below, too"},
		{key: "hsts-preload", unset: "false", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.tls.hsts.preload })), doc: "browsers may know it beforehand"},
		{key: "ssl-protocols", unset: "TLSv1.2 TLSv1.3", effect: applied, parse: parseVersions, doc: "TLS versions towards clients", differ: "without a gap between them"},
		{key: "ssl-ciphers", effect: applied, parse: parseCiphers, doc: "cipher suites towards clients before TLS 1.3", differ: "those that Go has, in its own order; of groups DEFAULT, HIGH and ALL"},
		{key: "ssl-ecdh-curve", unset: "auto", effect: noOp, doc: "curves towards clients, which Go chooses"},
		{key: "ssl-dh-param", effect: noOp, doc: "Diffie-Hellman parameters, which are not used here"},
		{key: "ssl-buffer-size", unset: "4k", effect: noOp, doc: "size of TLS records, which adapts here"},
		{key: "ssl-session-cache", unset: "true", effect: noOp, doc: "sessions on the server; tickets here"},
		{key: "ssl-session-cache-size", unset: "10m", effect: noOp, doc: "sessions on the server; tickets here"},
		{key: "ssl-session-tickets", unset: "false", effect: applied, parse: parseTickets, doc: "tickets for short handshakes",
			differ: "on by default, sealed by keys that all proxies share and that are rotated every 8 hours; false makes every handshake a full one, since sessions are not kept on the server"},
		{key: "ssl-session-ticket-key", effect: applied, parse: parseTicketKey, doc: "key of those tickets, which is not rotated then", differ: "tickets of nginx with the same key are not opened"},
		{key: "ssl-session-timeout", unset: "10m", effect: noOp, doc: "time of those sessions"},
		{key: "ssl-early-data", unset: "false", effect: ignored, doc: "data before the handshake has ended"},
		{key: "ssl-reject-handshake", unset: "false", effect: applied, parse: parseRejectUnknown, doc: "end handshakes for names that nobody has"},
		{key: "enable-ocsp", unset: "false", effect: applied, parse: parseStaple, doc: "OCSP stapling, for certificates that name a responder and have their issuer behind them",
			differ: "responders at addresses of nodes, of the API server, of the machine and of its cloud are not asked; responses are fetched beforehand, no handshake waits"},
	}
}

func globalForwarding() []globalOption {
	return []globalOption{
		{key: "use-forwarded-headers", unset: "false", effect: applied, parse: parseForwardedHeaders, doc: "believe X-Forwarded-* of the proxies in proxy-real-ip-cidr: backends are asked for the host in X-Forwarded-Host, to which redirects lead, too (upstream-vhost: $host keeps that of the request)",
			differ: "nobody is believed unless named there or by --trusted-proxies; from others Forwarded and X-Forwarded-Prefix do not pass either"},
		{key: "enable-real-ip", unset: "false", effect: applied, parse: parseTrusting, doc: "believe them who the client is", differ: "as use-forwarded-headers, but for the host"},
		{key: "proxy-real-ip-cidr", unset: "0.0.0.0/0", effect: applied, parse: forFront(parseTrusted), doc: "proxies that are believed", differ: "nobody by default"},
		{key: "forwarded-for-header", unset: "X-Forwarded-For", effect: applied, parse: forFront(parseForwardedFor), doc: "field in which they name the client", differ: "X-Forwarded-For for the backend is made of it, not of what came under that name"},
		{key: "compute-full-forwarded-for", unset: "false", effect: noOp, doc: "append to X-Forwarded-For", differ: "always, where a trusted proxy sent one; others are replaced"},
		{key: "use-proxy-protocol", unset: "false", effect: applied, parse: parseProxyProtocol, doc: "connections of clients begin with a PROXY header",
			differ: "only those in proxy-real-ip-cidr and --trusted-proxies have to send it, and are believed; false leaves what the flag --proxy-protocol says"},
		{key: "proxy-protocol-header-timeout", unset: "5s", effect: applied, parse: parseHeaderTimeout, doc: "time for the PROXY header", differ: "with the flag --proxy-protocol alone it is client-header-timeout's 60s"},
		{key: "generate-request-id", unset: "true", effect: applied, parse: parseRequestID, doc: "make X-Request-ID where a client sends none"},
		{key: "proxy-add-original-uri-header", unset: "false", effect: applied, parse: forEach(parseOriginalURI), doc: "send X-Original-URI to backends"},
		{key: "proxy-set-headers", effect: applied, parse: parseFields("proxy-set-headers", setRequestHeaders), doc: "ConfigMap of headers sent to backends", differ: "Host and what frames the message may not be set"},
		{key: "enable-underscores-in-headers", unset: "false", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.names.underscores })), doc: "pass fields with underscores", differ: "classes of our own always do, unless ignore-invalid-headers is true; those that imitate X-Forwarded-* and what the proxy sets are never passed"},
		{key: "ignore-invalid-headers", unset: "true", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.names.ignore })), doc: "drop fields whose names have more than letters, digits and dashes", differ: "false by default for classes of our own; a request with a name that is no token is refused"},
		{key: "service-upstream", unset: "false", effect: applied, parse: forEach(parseServiceAddress), doc: "use the address of Services instead of their endpoints"},
	}
}

func globalUpstreams() []globalOption {
	return []globalOption{
		{key: "proxy-connect-timeout", unset: "5", effect: applied, parse: forEach(parseConnectTimeout), doc: "seconds to connect to a backend"},
		{key: "proxy-read-timeout", unset: "60", effect: applied, parse: forEach(parseReadTimeout), doc: "seconds of a backend's silence"},
		{key: "proxy-send-timeout", unset: "60", effect: applied, parse: forEach(parseSendTimeout), doc: "seconds in which a backend takes nothing"},
		{key: "proxy-next-upstream", unset: "error timeout", effect: applied, parse: forEach(parseNext), doc: "when another endpoint is tried", differ: "error by default"},
		{key: "proxy-next-upstream-timeout", unset: "0", effect: applied, parse: forEach(parseTriesTimeout), doc: "seconds for all tries"},
		{key: "proxy-next-upstream-tries", unset: "3", effect: applied, parse: forEach(parseTries), doc: "number of tries"},
		{key: "retry-non-idempotent", unset: "false", effect: applied, parse: forEach(parseRetryAll), doc: "try again what may not be idempotent",
			differ: "an annotation proxy-next-upstream says that itself"},
		{key: "load-balance", unset: "round_robin", effect: applied, parse: forEach(parseLoadBalance), doc: "algorithm", differ: "least_requests is known too"},
		{key: "proxy-body-size", unset: "1m", effect: applied, parse: forEach(parseBodySize), doc: "largest request body", differ: "no limit by default for classes of our own"},
		{key: "proxy-buffer-size", unset: "4k", effect: applied, parse: forEach(parseHeadSize), doc: "largest response header", differ: "256k whatever it says; more than that is told"},
		{key: "proxy-buffering", unset: "off", effect: noOp, doc: "gather responses; they are streamed here"},
		{key: "proxy-request-buffering", unset: "on", effect: applied, parse: forEach(parseGather), doc: "gather a request before it is sent on", differ: "as the annotation"},
		{key: "proxy-max-temp-file-size", unset: "1024m", effect: noOp, doc: "disk for one response; none is used here"},
		{key: "proxy-buffers-number", unset: "4", effect: noOp, doc: "buffers of one response"},
		{key: "proxy-busy-buffers-size", effect: noOp, doc: "buffers of one response that may be busy"},
		{key: "proxy-http-version", unset: "1.1", effect: applied, parse: forEach(parseHTTPVersion), doc: "HTTP version that backends are asked in", differ: "as the annotation"},
		{key: "proxy-redirect-from", unset: "off", effect: applied, parse: forEach(parseLocationFrom), doc: "part of a backend's Location to replace"},
		{key: "proxy-redirect-to", unset: "off", effect: applied, parse: forEach(parseLocationTo), doc: "what replaces it"},
		{key: "proxy-cookie-domain", unset: "off", effect: applied, parse: forEach(parseCookiePair(true, cookieDomain)), doc: "replace Domain of backends' cookies"},
		{key: "proxy-cookie-path", unset: "off", effect: applied, parse: forEach(parseCookiePair(false, cookiePath)), doc: "replace Path of backends' cookies"},
		{key: "proxy-ssl-location-only", unset: "false", effect: noOp, doc: "where proxy-ssl-* hold; always by route here"},
		{key: "upstream-keepalive-connections", unset: "320", effect: applied, parse: parseIdle, doc: "idle connections that are kept", differ: "to each endpoint; more are kept for a second"},
		{key: "upstream-keepalive-timeout", unset: "60", effect: applied, parse: parseKeptFor(func(c *Connections) *time.Duration { return &c.IdleFor }), doc: "seconds that they stay"},
		{key: "upstream-keepalive-requests", unset: "10000", effect: applied, parse: parseKept(1, maxRequests, func(c *Connections) *int { return &c.Uses }), doc: "requests on one connection", differ: "not over HTTP/2"},
		{key: "upstream-keepalive-time", unset: "1h", effect: applied, parse: parseKeptFor(func(c *Connections) *time.Duration { return &c.Life }), doc: "life of one connection"},
		{key: "upstream-max-connections", unset: "0", effect: applied, ours: true, parse: parseKept(0, maxToPods, func(c *Connections) *int { return &c.Endpoints }),
			doc: "connections to all endpoints together, over which idle ones are closed, and requests that need another get 503 at once; 0, and at most: as many as there are descriptors beside those of clients and a sixteenth"},
		{key: "grpc-buffer-size-kb", effect: noOp, doc: "buffer of gRPC responses"},
		{key: "proxy-stream-timeout", unset: "600s", effect: ignored, doc: "silence of TCP and UDP services"},
		{key: "proxy-stream-next-upstream", unset: "true", effect: ignored, doc: "other endpoints of TCP and UDP services"},
		{key: "proxy-stream-responses", unset: "1", effect: ignored, doc: "answers of UDP services"},
	}
}

func globalClients() []globalOption {
	return []globalOption{
		{key: "limit-req-status-code", unset: "503", effect: applied, parse: forEach(parseStatusOf(func(s *settings) *int { return &s.limitCode })),
			doc: "status of limit-rps and limit-rpm"},
		{key: "limit-conn-status-code", unset: "503", effect: applied, parse: forEach(parseStatusOf(func(s *settings) *int { return &s.limitConnCode })),
			doc: "status of limit-connections"},
		{key: "limit-conn-zone-variable", unset: "$binary_remote_addr", effect: applied, parse: forEach(parseLimitKey),
			doc: "what clients are counted by, for limit-connections, limit-rps and limit-rpm; who has nothing there is not limited, so it should be something that they cannot change", differ: "addresses of IPv6 by their first 64 bits; simple variables only"},
		{key: "limit-rate", unset: "0", effect: applied, parse: forEach(parseRate(func(f *exchange.Forwarding) *int64 { return &f.Rate })),
			doc: "KiB per second of one response, whatever its documentation says of bytes", differ: "without proxy-buffering too; the backend is held up"},
		{key: "limit-rate-after", unset: "0", effect: applied, parse: forEach(parseRate(func(f *exchange.Forwarding) *int64 { return &f.RateAfter })), doc: "KiB before that limit begins"},
		{key: "keep-alive", unset: "75", effect: applied, parse: parseKeepAlive, doc: "seconds that a client's connection may wait for its next request, 0: it carries one alone", differ: "60 by default; over HTTP/2 0 is a second"},
		{key: "max-worker-connections", unset: "16384", effect: applied, parse: parseClients, doc: "connections that each of worker-processes may have; 0: as many as there are descriptors",
			differ: "of clients alone, and all in one process: so many for each worker, but never more than half of the descriptors; 65536 at least by default; those without a request are ended first"},
		{key: "worker-processes", unset: "auto", effect: applied, parse: parseWorkers, doc: "by how many max-worker-connections counts; auto: one for each processor", differ: "there is one process in any case"},
		{key: "keep-alive-requests", unset: "1000", effect: applied, parse: parseKept(1, maxRequests, func(c *Connections) *int { return &c.Requests }), doc: "requests on one connection of a client", differ: "no bound by default"},
		{key: "client-header-timeout", unset: "60", effect: applied, parse: parseKeptFor(func(c *Connections) *time.Duration { return &c.Waits.Head }), doc: "seconds for the head of a request", differ: "over HTTP/2 client-body-timeout"},
		{key: "client-body-timeout", unset: "60", effect: applied, parse: parseKeptFor(func(c *Connections) *time.Duration { return &c.Waits.Body }), doc: "seconds of silence within a body"},
		{key: "client-header-buffer-size", unset: "1k", effect: noOp, doc: "memory for a usual head"},
		{key: "large-client-header-buffers", unset: "4 8k", effect: applied, parse: parseHeadBuffers,
			doc: "NUMBER SIZE: longest request line, or else 414, and field; and with all of NUMBER the whole head", differ: "32k of both by default; 256k at most, which is told; 431 for fields; over HTTP/2 the head counts 32 bytes more for each"},
		{key: "client-body-buffer-size", unset: "8k", effect: applied, parse: forEach(parseGatherMemory), doc: "memory for a request body, before a file is used", differ: "as the annotation"},
		{key: "use-http2", unset: "true", effect: applied, parse: parseHTTP2, doc: "offer HTTP/2 to clients with TLS", differ: "never where the flag --http2 is off"},
		{key: "http2-max-concurrent-streams", unset: "128", effect: applied, parse: parseKept(1, maxStreams, func(c *Connections) *int { return &c.Streams }), doc: "requests at once on one connection", differ: "1000 at most; connections that are there keep what they were told"},
		{key: "reuse-port", unset: "true", effect: noOp, doc: "listeners per process"},
		{key: "bind-address", effect: ignored, doc: "addresses to listen on; here the flags --http and --https"},
		{key: "disable-ipv6", unset: "false", effect: ignored, doc: "do not listen on IPv6"},
		{key: "disable-ipv6-dns", unset: "false", effect: noOp, doc: "look names up for IPv4 addresses only", differ: "both are looked up, and an address that cannot be reached is passed over"},
	}
}

func globalResponses() []globalOption {
	return []globalOption{
		{key: "hide-headers", effect: applied, parse: forEach(parseHidden), doc: "fields of backends that clients are not sent"},
		{key: "add-headers", effect: applied, parse: parseFields("add-headers", addHeaders), doc: "ConfigMap of response headers", differ: "a variable that means nothing here is text; what frames the message may not be set"},
		{key: "global-allowed-response-headers", effect: applied, guard: true, parse: forEach(parseMayAnswer), doc: "names that custom-headers may set", differ: "any, where there is no list; another name closes the route"},
		{key: "custom-http-errors", effect: applied, parse: forEach(parseErrorStatuses), doc: "statuses that the default backend answers", differ: "without --default-backend-service the default-backend of an Ingress answers, if it has one"},
		{key: "disable-proxy-intercept-errors", unset: "false", effect: applied, parse: forEach(parseErrorsOff), doc: "leave backends' errors alone"},
		{key: "server-tokens", unset: "false", effect: applied, parse: forEach(parseServerTokens), doc: "send Server, which never says a version here", differ: "it is sent unless this says false, and with what no rule is for"},
		{key: "allow-backend-server-header", unset: "false", effect: applied, parse: forEach(parseBackendServer), doc: "pass the backend's Server", differ: "passed unless this says false; Server is quayside where it is not"},
		{key: "use-port-in-redirects", unset: "false", effect: applied, parse: forEach(parsePortInRedirects), doc: "redirects to https name the port", differ: "as the annotation"},
		{key: "relative-redirects", unset: "false", effect: noOp, doc: "redirects of nginx without scheme and host; none of ours depends on it"},
		{key: "default-type", unset: "text/html", effect: noOp, doc: "type of files, which are not served here"},
	}
}

func globalCompression() []globalOption {
	list := []globalOption{
		{key: "use-gzip", unset: "false", doc: "compress responses by gzip; where a page shows both a secret and what a client sent, its length tells of the secret (BREACH)",
			differ: "Cache-Control: no-transform is obeyed, a response that has a digest is left alone, and so is what comes while 256 others are compressed"},
		{key: "gzip-level", unset: "1", doc: "level of use-gzip, 1 to 9"},
		{key: "gzip-min-length", unset: "256", doc: "least length for use-gzip, where it is known"},
		{key: "gzip-types", doc: "media types for use-gzip beside text/html; * is any"},
		{key: "gzip-disable", doc: "patterns of User-Agents without use-gzip", differ: "patterns are RE2; msie6 is nobody any more"},
		{key: "enable-brotli", unset: "false", doc: "compress responses by brotli, which clients get that take both; BREACH as with use-gzip", differ: "as use-gzip"},
		{key: "brotli-level", unset: "4", doc: "level of enable-brotli, 0 to 11"},
		{key: "brotli-min-length", unset: "20", doc: "least length for enable-brotli, where it is known"},
		{key: "brotli-types", doc: "media types for enable-brotli beside text/html; * is any"},
	}
	parsers := compressParsers()
	for i := range list {
		list[i].effect, list[i].parse = applied, forEach(parsers[list[i].key])
	}
	return list
}

func globalAnnotations() []globalOption {
	return []globalOption{
		{key: "annotations-risk-level", unset: "High", effect: applied, parse: forEach(parseRiskLevel), doc: "the greatest risk that an annotation may have",
			differ: "one above it is refused alone, where ingress-nginx refuses the Ingress; a guard closes its route"},
		{key: "annotation-value-word-blocklist", effect: applied, parse: forEach(parseWordBlocklist), doc: "words that no annotation may contain",
			differ: "as annotations-risk-level; empty by default"},
		{key: "allow-snippet-annotations", unset: "false", effect: applied, parse: forEach(parseAllowSnippets), doc: "obey snippets",
			differ: "as far as each says; true by default; those that guard are obeyed anyway"},
		{key: "allow-cross-namespace-resources", unset: "false", effect: ignored, doc: "let annotations name Secrets of other namespaces, which is never done here"},
		{key: "strict-validate-path-type", unset: "true", effect: noOp, doc: "refuse Exact and Prefix paths with characters of patterns", differ: "any path of RFC 3986 is taken as it is"},
	}
}

func globalTraces() []globalOption {
	return []globalOption{
		{key: "enable-opentelemetry", unset: "false", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.trace.on })), doc: "trace requests", differ: "as the annotation"},
		{key: "opentelemetry-trust-incoming-span", unset: "true", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.trace.trust })), doc: "continue clients' traces"},
		{key: "otel-sampler", unset: samplerOn, effect: applied, parse: forEach(parseSampler), doc: "which traces that begin here are sampled: AlwaysOn, AlwaysOff or TraceIdRatioBased"},
		{key: "otel-sampler-ratio", unset: "0.01", effect: applied, parse: forEach(parseSamplerRatio), doc: "share that TraceIdRatioBased samples"},
		{key: "otel-sampler-parent-based", unset: "true", effect: applied, parse: forEach(parseToggle(func(s *settings) *bool { return &s.trace.parent })), doc: "leave it to the client that began a trace whether it is sampled"},
		{key: "opentelemetry-operation-name", effect: applied, parse: forEach(parseSpanName), doc: "name of the spans, by default the path of the rule", differ: "simple variables only"},
		{key: "otlp-collector-host", effect: applied, parse: parseCollectorHost, doc: "where spans are sent, by OTLP over gRPC without TLS", differ: "names of Services lead to their endpoints"},
		{key: "otlp-collector-port", unset: "4317", effect: applied, parse: parseCollectorPort, doc: "its port"},
		{key: "otel-service-name", unset: "nginx", effect: applied, parse: parseSpanService, doc: "service.name of the spans", differ: "quayside by default"},
		{key: "otel-max-queuesize", unset: "2048", effect: applied, parse: parseSpanCount(func(c *Collector) *int { return &c.Queue }), doc: "how many spans may wait; more are dropped", differ: "100000 at most, and 32 MiB"},
		{key: "otel-schedule-delay-millis", unset: "5000", effect: applied, parse: parseSpanDelay, doc: "how long a span waits for others, in milliseconds"},
		{key: "otel-max-export-batch-size", unset: "512", effect: applied, parse: parseSpanCount(func(c *Collector) *int { return &c.Batch }), doc: "how many spans travel together", differ: "1 MiB at most, and some 25 KiB more"},
	}
}

func globalProcess() []globalOption {
	const log = "the log of connections, which is not kept here"
	rows := []globalOption{
		{key: "log-format-upstream", effect: applied, parse: parseLogFormat, doc: "what the log says of each request", differ: "one with a variable that nginx does not have is refused, and $connection, $server_addr and others that mean nothing here are -; needs --access-log. A table of http-snippet for $loggable decides what is logged"},
		{key: "log-format-escape-json", unset: "false", effect: applied, parse: parseLogEscape, doc: "escape variables in it for JSON"},
		{key: "log-format-escape-none", unset: "false", effect: ignored, doc: "escape nothing, so that clients can forge lines"},
		{key: "log-format-stream", effect: ignored, doc: log},
		{key: "disable-access-log", unset: "false", effect: applied, parse: parseLogOff, doc: "no log of requests"},
		{key: "disable-http-access-log", unset: "false", effect: applied, parse: parseLogOff, doc: "no log of requests"},
		{key: "disable-stream-access-log", unset: "false", effect: noOp, doc: log},
		{key: "skip-access-log-urls", effect: applied, parse: forFront(parsePatterns(func(f *filter.Front) *filter.Patterns { return &f.Log.Skip })),
			doc: "targets that are not logged: values, or patterns behind ~ or ~*", differ: "patterns are RE2"},
		{key: "enable-access-log-for-default-backend", unset: "false", effect: noOp, doc: "log the requests that no rule is for; they always are"},
		{key: "use-geoip2", unset: "false", effect: applied, parse: parsePlaces, doc: "variables that say where clients are, such as $geoip2_country_code",
			differ: "they are known wherever --maxmind-edition-ids names the databases that have them"},
		{key: "geoip2-autoreload-in-minutes", unset: "0", effect: noOp, doc: "how often those databases are read again: here within a minute after they have changed"},
		{key: "use-geoip", unset: "false", effect: ignored, doc: "databases of a format that MaxMind has given up; see use-geoip2"},
		{key: "access-log-path", unset: "/var/log/nginx/access.log", effect: ignored, doc: "the file of the log, which is the standard output here"},
		{key: "http-access-log-path", unset: "/var/log/nginx/access.log", effect: ignored, doc: "the file of the log, which is the standard output here"},
	}
	for _, key := range []string{
		"access-log-params", "aio-write", "debug-connections", "enable-aio-write", "enable-multi-accept", "error-log-level", "error-log-path",
		"lua-shared-dicts", "map-hash-bucket-size", "max-worker-open-files", "nginx-status-ipv4-whitelist",
		"nginx-status-ipv6-whitelist", "opentelemetry-config", "plugins", "proxy-headers-hash-bucket-size", "proxy-headers-hash-max-size",
		"server-name-hash-bucket-size", "server-name-hash-max-size", "stream-access-log-path", "variables-hash-bucket-size", "variables-hash-max-size",
		"worker-cpu-affinity", "worker-serial-reloads", "worker-shutdown-timeout",
	} {
		rows = append(rows, globalOption{key: key, effect: noOp, doc: "how nginx itself runs"})
	}
	return rows
}
