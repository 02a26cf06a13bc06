package house

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suite is a suite of the end-to-end tests of ingress-nginx (docs/e2e-tests.md there),
// or a bug that others met who imitate it, and where the same is asserted here.
type suite struct {
	name string
	// tests are "folder TestName", with the start of a text in that folder's tests
	// after a colon, or scenario files.
	tests []string
	// differs is what we do otherwise; missing is what is not there yet.
	differs, missing string
}

// here are tests, or scenarios of package route.
func here(tests ...string) []string {
	for i, test := range tests {
		if strings.HasSuffix(test, ".txt") {
			tests[i] = "test/scenario/route/" + test
		}
	}
	return tests
}

// nginxSuites are those about annotations and about what Ingresses mean.
func nginxSuites() []suite {
	const raw = "raw nginx configuration is never executed; migrate names what replaces it"
	option := func(key string) string { return "proxy TestOptions: " + key }
	answer := func(key string) string { return "proxy TestResponseOptions: " + key }
	const same = "proxy TestSameAsNginx"
	return []suite{
		{name: "admission", tests: here("duplicates.txt", "invalid.txt", "proxy/route TestGateRefuses"), differs: "no webhook stands in the way of writing; what is wrong is told on the object"},
		{name: "annotations/affinity", tests: here(option("affinity"), option("session-cookie-path"), "proxy/balance TestStickySessions", "proxy/balance TestCookieAttributes")},
		{name: "annotations/affinitymode", tests: here("proxy/balance TestStickySessions")},
		{name: "annotations/alias", tests: here("proxy TestServerAlias")},
		{name: "annotations/approot", tests: here(option("app-root"), same)},
		{name: "annotations/auth", tests: here(option("auth-secret"), option("satisfy"), "proxy TestAuthURL", "proxy TestAuthCache", "proxy TestWhatAuthServicesAreAsked", same)},
		{name: "annotations/authtls", tests: here("proxy TestAuthTLS", "proxy TestSameClientsAsNginx")},
		{name: "annotations/backendprotocol", tests: here(option("backend-protocol"), "proxy TestGRPC"), differs: "FCGI and AUTO_HTTP close the route"},
		{name: "annotations/canary", tests: here("proxy TestCanariesOverHTTP", "canaries.txt", "proxy TestAffinityCanaryBehavior", "proxy/route TestCanarySessions", same)},
		{name: "annotations/clientbodybuffersize", tests: here("proxy TestBodiesGoToFiles")},
		{name: "annotations/connection", tests: here("proxy TestConnectionProxyHeader")},
		{name: "annotations/cors", tests: here(option("enable-cors"), option("cors-allow-origin"), "proxy/filter TestCORS", same)},
		{name: "annotations/customheaders", tests: here("proxy TestCustomHeaders")},
		{name: "annotations/customhttperrors", tests: here(answer("custom-http-errors"), same)},
		{name: "annotations/default_backend", tests: here(answer("default-backend"), same)},
		{name: "annotations/disableaccesslog", tests: here("proxy TestAccessLogOverTheWire")},
		{name: "annotations/disableproxyintercepterrors", tests: here(answer("disable-proxy-intercept-errors"))},
		{name: "annotations/fastcgi", tests: here(option("backend-protocol")), differs: "FastCGI is not spoken, and closes the route"},
		{name: "annotations/forcesslredirect", tests: here(option("force-ssl-redirect"), same)},
		{name: "annotations/fromtowwwredirect", tests: here("redirects.txt", same)},
		{name: "annotations/grpc", tests: here("proxy TestGRPC", "proxy TestGRPCErrors")},
		{name: "annotations/http2pushpreload", tests: here("proxy/route TestOptionTableIsSound"), differs: "browsers removed HTTP/2 push; accepted in silence"},
		{name: "annotations/ipallowlist", tests: here(option("allowlist-source-range"), option("whitelist-source-range"), same)},
		{name: "annotations/ipdenylist", tests: here(option("denylist-source-range"), same)},
		{name: "annotations/limitconnections", tests: here("proxy/filter TestConnectionLimit", "proxy/serve TestOptionLimits")},
		{name: "annotations/limitrate", tests: here("proxy TestLimitRate")},
		{name: "annotations/log", tests: here("proxy TestAccessLogOverTheWire")},
		{name: "annotations/mirror", tests: here("proxy TestMirror")},
		{name: "annotations/modsecurity", tests: here("proxy TestFirewall", "proxy TestFirewallThatIsNotAllowed")},
		{name: "annotations/preservetrailingslash", tests: here(option("force-ssl-redirect")), differs: "the slash is always kept"},
		{name: "annotations/proxy", tests: here(option("proxy-body-size"), option("proxy-read-timeout"), option("proxy-next-upstream"), "proxy TestBodiesThatAreStreamed", answer("proxy-cookie-path"), "proxy/upstream TestForwardingOfARoute", "proxy TestProxyHTTPVersion")},
		{name: "annotations/proxyssl", tests: here("proxy TestUpstreamTLS", option("proxy-ssl-secret"))},
		{name: "annotations/redirect", tests: here(option("permanent-redirect"), option("temporal-redirect"), same)},
		{name: "annotations/relativeredirects", tests: here("proxy/route TestOptionTableIsSound"), differs: "no redirect of ours is made relative"},
		{name: "annotations/rewrite", tests: here(option("rewrite-target"), "rewrites.txt", same)},
		{name: "annotations/satisfy", tests: here(option("satisfy"), same)},
		{name: "annotations/serversnippet, snippet, streamsnippet", tests: here("proxy/route TestSnippetsThatGuardClose"), differs: raw},
		{name: "annotations/serviceupstream", tests: here(answer("service-upstream"))},
		{name: "annotations/sslciphers", tests: here("proxy TestTLSPolicy")},
		{name: "annotations/upstreamhashby", tests: here("proxy TestUpstreamHashBySubset", "proxy/balance TestHashSubset")},
		{name: "annotations/upstreamvhost", tests: here(option("upstream-vhost"), same)},
		{name: "annotations/xforwardedprefix", tests: here(option("x-forwarded-prefix"), same)},
		{name: "dbg", tests: here("test/e2e TestTraceInTheCluster"), differs: "status, trace and /state tell"},
		{name: "defaultbackend", tests: here("default-backends.txt", "proxy/dispatch TestAnswersOfItsOwn"), differs: "there is no default backend unless an Ingress has one"},
		{name: "endpointslices", tests: here("proxy/balance TestCompile", "proxy/balance TestPortsOfSlices")},
		{name: "gracefulshutdown", tests: here("proxy/serve TestDrain", "test/e2e TestADrainAsksClientsToComeAgain")},
		{name: "ingress", tests: here("conformance-path-rules.txt", "conformance-host-rules.txt", "precedence.txt", "proxy TestConformance", "proxy/route TestThousandMaliciousValues")},
		{name: "leaks", tests: here("proxy/route TestBackendsDoNotPileUp", "proxy TestRoutesChangeUnderLoad")},
		{name: "loadbalance", tests: here("proxy/balance TestRoundRobinIsExact", "proxy/balance TestPeakEWMA", option("load-balance"))},
		{name: "lua/dynamic_certificates", tests: here("proxy TestCertificateByServerName", "proxy TestCertificatesComeAndGo", "tls.txt")},
		{name: "lua/dynamic_configuration", tests: here("proxy TestRoutesAndEndpointsFollowTheCluster", "proxy TestPodsComeAndGoUnderLoad")},
		{name: "metrics", tests: here("proxy/serve TestMetrics", "proxy/dispatch TestWhoseTimeItWas"), differs: "our names"},
		{name: "security/request_smuggling", tests: here("proxy/serve TestSmuggling")},
		{name: "servicebackend", tests: here("missing.txt", "proxy TestExternalName")},
		{name: "ssl", tests: here("proxy TestCertificateByServerName", "proxy TestCertificatesComeAndGo", "tls-default-broken.txt")},
		{name: "status", tests: here("test/e2e TestStatusOfTheCluster", "test/e2e TestSourceOutlivesAnOutage")},
		{name: "tcpudp", tests: here("command/migrate TestStreams", "command/migrate/testdata/streams.out.yaml"), differs: "a Service of type LoadBalancer does it, which migrate prints"},
		{name: "disableleaderelection", tests: here("command TestLeaderElection")},
		{name: "cgroups, nginx", differs: "they ask nginx how it runs"},
	}
}

// nginxSettings are the suites about the ConfigMap and about flags.
func nginxSettings() []suite {
	wide := func(key string) string { return "proxy TestGlobalOptions: " + key }
	return []suite{
		{name: "settings/access_log", tests: here("proxy TestAccessLogOverTheWire")},
		{name: "settings/badannotationvalues", tests: here(wide("annotation-value-word-blocklist"), wide("annotations-risk-level"), "proxy/route TestGateRefuses")},
		{name: "settings/brotli", tests: here(wide("enable-brotli"), "proxy TestCompression")},
		{name: "settings/configmap_change", tests: here("proxy TestGlobalOptions", "test/e2e TestOptionsOfTheConfigMap")},
		{name: "settings/custom_header", tests: here("proxy TestGlobalHeaders", wide("global-allowed-response-headers"))},
		{name: "settings/default_ssl_certificate", tests: here("tls.txt", "tls-default-broken.txt")},
		{name: "settings/disable_catch_all", tests: here("proxy/route TestHostOwnership")},
		{name: "settings/disable_service_external_name", tests: here("proxy TestExternalName")},
		{name: "settings/enable_real_ip, forwarded_headers", tests: here(wide("enable-real-ip"), wide("use-forwarded-headers"), "proxy/filter TestForwarded", "proxy/filter TestNobodyLies")},
		{name: "settings/global_access_block", tests: here(wide("block-cidrs"), wide("block-user-agents"), wide("block-referers"))},
		{name: "settings/global_external_auth, no_auth_locations", tests: here("proxy TestGlobalAuth")},
		{name: "settings/gzip", tests: here(wide("use-gzip"), wide("gzip-types"), "proxy TestCompression")},
		{name: "settings/ingress_class", tests: here("classes.txt", "classes-taken.txt", "classes-second.txt", "test/e2e TestTwoControllersTwoClasses")},
		{name: "settings/keep-alive", tests: here("proxy TestKeepAliveRequests", "proxy TestUpstreamKeepalive", "proxy TestClientTimeouts: keep-alive")},
		{name: "settings/limit_rate", tests: here("proxy TestLimitRateOfAll")},
		{name: "settings/listen_nondefault_ports", tests: here("proxy TestOptions: use-port-in-redirects", wide("use-port-in-redirects"))},
		{name: "settings/log-format", tests: here("proxy TestLogsAsNginx", "proxy TestAccessLogOverTheWire")},
		{name: "settings/no_tls_redirect_locations", tests: here(wide("no-tls-redirect-locations"))},
		{name: "settings/ocsp", tests: here("proxy TestEnableOCSP")},
		{name: "settings/proxy_connect_timeout, proxy_read_timeout, proxy_send_timeout", tests: here(wide("proxy-read-timeout"), "proxy/upstream TestForwardingOfARoute", "proxy/upstream TestTimeouts")},
		{name: "settings/proxy_next_upstream", tests: here("proxy/upstream TestForwardingOfARoute", "proxy TestGatheredBodiesAreSentAgain")},
		{name: "settings/proxy_protocol", tests: here("proxy TestUseProxyProtocol", "proxy/serve TestProxyProtocol", "proxy/serve TestProxyProtocolIsStrict")},
		{name: "settings/ssl_ciphers, tls", tests: here("proxy TestTLSPolicy", wide("hsts"), wide("hsts-max-age"))},
		{name: "settings/ssl_passthrough", tests: here("proxy TestSSLPassthrough")},
		{name: "settings/ssl_session", tests: here("proxy TestSessionsAreResumedByOtherReplicas")},
		{name: "settings/modsecurity", tests: here("proxy TestFirewallForAll")},
		{name: "settings/namespace_selector", tests: here("proxy TestNamespacesBySelector", "proxy/route TestNamespacesBySelector", "controller TestNamespacesBySelector", "test/chart TestControllerAndProxyWatchTheSame")},
		{name: "settings/opentelemetry", tests: here("proxy TestSpans", wide("enable-opentelemetry"))},
		{name: "settings/disable_sync_events", differs: "events are told on edges only"},
		{name: "settings/main_snippet, server_snippet, stream_snippet", tests: here("proxy/route TestGlobalIsTold"), differs: "raw nginx configuration is never executed"},
		{name: "settings/geoip2", tests: here("proxy TestUseGeoIP2", "proxy TestPlacesSameAsNginx"), differs: "a broken database leaves the one before in use"},
		{name: "settings/aio, global_options, hash-size, lua_shared_dicts, multi_accept, reuse-port, server_tokens", differs: "they ask how nginx itself runs"},
	}
}

// traefikBugs are what Traefik's imitation of ingress-nginx got wrong at first, by
// the numbers of its changelog.
func traefikBugs() []suite {
	const same = "proxy TestSameAsNginx"
	option := func(key string) string { return "proxy TestOptions: " + key }
	return []suite{
		{name: "#12531 use-regex: paths are patterns", tests: here("rewrites.txt", option("use-regex"))},
		{name: "#12773 use-regex: for the whole host, in any case", tests: here("rewrites.txt", same)},
		{name: "#13476 use-regex: redirects keep to the pattern", tests: here(option("use-regex"))},
		{name: "#12730 rewrite-target", tests: here("rewrites.txt", "proxy/filter TestRewrite", same)},
		{name: "#12832 rewrite-target: an empty one is none", tests: here("rewrites.txt", "redirects.txt", option("rewrite-target"))},
		{name: "#12854 rewrite-target: a whole URL redirects", tests: here("rewrites.txt", "proxy/filter TestRewrite")},
		{name: "#12905 rewrite-target: no path, and one without a pattern", tests: here("redirects.txt", option("rewrite-target"))},
		{name: "#12977 rewrite-target: nothing but a whole URL redirects", tests: here("rewrites.txt", "proxy/filter TestRewrite")},
		{name: "#12992 rewrite-target: a whole URL for a path without a pattern", tests: here("redirects.txt")},
		{name: "#13506 rewrite-target: what comes out is clean", tests: here("proxy/filter TestRewrite")},
		{name: "#12361 ssl-redirect: by default where TLS is", tests: here("redirects.txt")},
		{name: "#12387 ssl-redirect: false", tests: here("redirects.txt", option("ssl-redirect"))},
		{name: "#13028 ssl-redirect: on hosts, not Ingresses", tests: here("redirects.txt")},
		{name: "#13386 force-ssl-redirect: TLS ended before", tests: here(option("force-ssl-redirect"))},
		{name: "#12736 from-to-www-redirect: 308, with and without a port", tests: here("redirects.txt", "proxy TestLimitsOverHTTP", same)},
		{name: "#12986 app-root: with a query", tests: here(option("app-root"), same)},
		{name: "#13398 app-root: variables", tests: here(option("app-root")), differs: "variables are refused"},
		{name: "#12738 custom-http-errors", tests: here("proxy TestResponseOptions: custom-http-errors", same)},
		{name: "#12969 custom-headers: with a 503, too", tests: here("proxy TestCustomHeaders")},
		{name: "#12996 503 without endpoints", tests: here("missing.txt", "proxy TestRoutesAndEndpointsFollowTheCluster")},
		{name: "#13019 server-alias: twice", tests: here("proxy TestServerAlias")},
		{name: "#12973 canary-by-cookie: a name is no pattern", tests: here("canaries.txt", same)},
		{name: "#12978 upstream-vhost: variables", tests: here(option("upstream-vhost")), differs: "variables are refused"},
		{name: "#12856 auth-response-headers: spaces", tests: here("proxy TestAuthURL")},
		{name: "#12351 proxy-ssl-verify: on and off", tests: here("proxy TestUpstreamTLS", option("proxy-ssl-verify"))},
		{name: "#12825 proxy-ssl-verify: off by default", tests: here("proxy TestUpstreamTLS", option("backend-protocol"))},
		{name: "#13033 ExternalName without a port", tests: here("proxy TestExternalName")},
		{name: "#12528 TLS on the wrong port", tests: here("proxy/serve TestPlainHTTPOnTheTLSPort", "tls.txt")},
		{name: "#13290 endpoints that drain", tests: here("proxy/balance TestCompile", "proxy/upstream TestRemovedEndpointFinishesItsRequests")},
		{name: "#13205 two controllers write one status", tests: here("controller TestContest")},
		{name: "#12757 an Ingress of another's class", tests: here("classes.txt", "classes-second.txt")},
		{name: "#12546 an Ingress taken by two", tests: here("classes.txt", "classes-taken.txt", "test/e2e TestTwoControllersTwoClasses")},
		{name: "#12348 annotations lost among many Ingresses", tests: here("proxy/route TestStepByStepIsFromScratch")},
		{name: "#13323 auth-secret that is missing", tests: here(option("auth-secret"), "proxy/route TestGuardsThatAreNotUnderstoodClose")},
		{name: "#13260 forged ssl-client-*", tests: here("proxy TestAuthTLS", "proxy TestSameClientsAsNginx")},
		{name: "#13066 a default backend without rules", tests: here("default-backends.txt", "conformance-default-backend.txt")},
		{name: "#13088 cors-allow-headers: the default", tests: here(option("enable-cors"), same)},
	}
}

// Every suite says where it is asserted here, and what it names is there.
func TestSuitesOfIngressNginxAreTested(t *testing.T) {
	source := map[string]string{}
	read := func(dir string) string {
		if text, ok := source[dir]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source[dir] += string(text)
		}
		return source[dir]
	}
	missing := 0
	for _, s := range slices.Concat(nginxSuites(), nginxSettings(), traefikBugs()) {
		if len(s.tests) == 0 && s.differs == "" && s.missing == "" {
			t.Errorf("%s: no test, and no reason", s.name)
		}
		if s.missing != "" {
			missing++
			t.Logf("%s lacks %s", s.name, s.missing)
		}
		for _, test := range s.tests {
			name, part, _ := strings.Cut(test, ": ")
			dir, function, isTest := strings.Cut(name, " ")
			if !isTest {
				if _, err := os.Stat(filepath.Join("../..", test)); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
				continue
			}
			if text := read(dir); !strings.Contains(text, "func "+function+"(t *testing.T)") || !strings.Contains(text, `"`+part) {
				t.Errorf("%s: no %s in %s", s.name, test, dir)
			}
		}
	}
	t.Logf("%d suites have something missing", missing)
}

// Every option that acts is asked for over HTTP by a test that has its name.
func TestEveryOptionIsAskedForOverHTTP(t *testing.T) {
	page, err := os.ReadFile("../../docs/ingress-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	files, _ := filepath.Glob("../../proxy/*_test.go")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	acting := 0
	for line := range strings.Lines(string(page)) {
		key, row, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if !ok || !strings.HasPrefix(line, "| `") || !strings.Contains(row, "| same |") && !strings.Contains(row, "| differs: ") && !strings.Contains(row, "| ours |") {
			continue
		}
		acting++
		if !strings.Contains(tests.String(), key+`"`) {
			t.Errorf("no test of package proxy has the name of %s", key)
		}
	}
	if acting < 200 {
		t.Errorf("only %d options were found to act", acting)
	}
}
