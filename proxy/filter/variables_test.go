package filter

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
)

func TestTemplates(t *testing.T) {
	at := &Place{Namespace: "shop", Ingress: "web", Service: "front", Port: "http", Host: "*.example.com", Path: "/a", Pattern: regexp.MustCompile("^/(x)(.*)")}
	for _, c := range []struct{ text, url, field string }{
		{"plain", "plain", "plain"},
		{"https://$host$request_uri", "https://a.example.com/x%20y?q=1&r", "https://a.example.com/x%20y?q=1&r"},
		{"${host}_", "a.example.com_", "a.example.com_"},
		{"$http_host $best_http_host", "A.example.com.:8443%20A.example.com.:8443", "A.example.com.:8443 A.example.com.:8443"},
		{"$escaped_request_uri", "%2Fx%2520y%3Fq%3D1%26r", "%2Fx%2520y%3Fq%3D1%26r"},
		{"$uri$is_args$args", "/x%20y?q=1&r", "/x y?q=1&r"},
		{"$arg_q-$arg_none-$cookie_b-$cookie_c", "1--2-", "1--2-"},
		{"$http_x_tea", "gr%23een%0Aleaf", "gr#eenleaf"},
		{"$scheme:$request_method:$remote_addr", "http:GET:192.0.2.1", "http:GET:192.0.2.1"},
		{"$namespace/$ingress_name/$service_name/$service_port$location_path $server_name", "shop/web/front/http/a%20*.example.com", "shop/web/front/http/a *.example.com"},
		{"$remote_user", "Al%20ice", "Al ice"},
		{"$http_again", "$host", "$host"}, // what comes in is not read again
		{"$msec $time_iso8601", "1700000000.123%202023-11-14T22:13:20+00:00", "1700000000.123 2023-11-14T22:13:20+00:00"},
		{"[$time_local]", "[14/Nov/2023:22:13:20%20+0000]", "[14/Nov/2023:22:13:20 +0000]"},
		{"$request|$https|$remote_port|$ssl_server_name|", "GET%20/x%20y?q=1&r%20HTTP/1.1%7C%7C5%7C%7C", "GET /x%20y?q=1&r HTTP/1.1||5||"},
		{"$proxy_upstream_name", "shop-front-http", "shop-front-http"},
		{"$Host$ARG_q", "a.example.com1", "a.example.com1"},
		{"$1-$2x${1}0$9", "x-%20yxx0", "x- yxx0"},
		{"5$ and $$host ${", "5$%20and%20$a.example.com%20$%7B", "5$ and $a.example.com ${"},
	} {
		ex := ask("GET A.example.com.:8443 /x%20y?q=1&r", "Cookie: a=1; b=2", "X-Tea: gr#een\nleaf", "Again: $host", "Authorization: basic QWwgaWNlOnNlOmNyZXQ=")
		ex.Request.Path, ex.Request.Protocol, ex.Request.Received = []byte("/x y"), "HTTP/1.1", time.UnixMilli(1_700_000_000_123).UTC()
		p, err := ParseTemplate(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := string(p.appendURL(nil, ex, at)); got != c.url {
			t.Errorf("%s as a URL: %q, want %q", c.text, got, c.url)
		}
		if got := string(p.appendField(nil, ex, at)); got != c.field {
			t.Errorf("%s as a field: %q, want %q", c.text, got, c.field)
		}
	}
	user := authTemplate(t, "$remote_user")
	for _, none := range []string{"", "Bearer QWxpY2U6eA==", "Basic QWxpY2U=", "Basic !", "Basic " + strings.Repeat("QUFB", 1000)} {
		if got := user.appendField(nil, ask("GET a /", "Authorization: "+none), at); len(got) > 0 {
			t.Errorf("%.20q names the user %.20q", none, got)
		}
	}
	for _, unknown := range []string{"$nothing", "$http_", "$0"} {
		if _, err := ParseTemplate(unknown); err == nil {
			t.Errorf("%s is understood", unknown)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, byHost := range map[string]bool{
		"http://auth.test/": false, "https://auth.test:8443": false, "https://$host/oauth2/auth": true, "$scheme://$http_host/x": true,
		"http://$service_name.$namespace.svc/check": false, "http://auth.test$request_uri": false, "http://auth.test/$http_x?$arg_y": false,
		"http://auth.test?x=$arg_y": false, "http://login.$host/": true,
	} {
		a, err := ParseAddress(text)
		if err != nil || a.ByHost != byHost {
			t.Errorf("%s: %+v %v", text, a, err)
		}
	}
	for _, text := range []string{
		"", "/", "auth.test", "ftp://auth.test/", "http://", "http:///x", "http://$request_uri", "http://$http_x/", "http://a$arg_b", "http://$cookie_c.test/",
		"http://a@b/", "http://a%40b/", "http://auth.test/\r\nX: y", "http://auth.test/#x", "http://auth.test/ x", "$host://auth.test/", "$scheme$host/",
		"https://" + strings.Repeat("a", 5000),
	} {
		if _, err := ParseAddress(text); err == nil {
			t.Errorf("%q is understood", text)
		}
	}
}

// FuzzTemplate: whatever a template says and whatever a client sends, neither a
// field nor a request line ends early, and the host of an address is not the
// client's to choose.
func FuzzTemplate(f *testing.F) {
	f.Add("https://$host$request_uri", "/a?b", "evil.test")
	f.Add("http://auth.test/${http_x}#$uri", "/%0d%0a", "\r\nX: y")
	f.Add("http://auth.test$uri", "//@evil.test/", "x")
	f.Fuzz(func(t *testing.T, text, target, value string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		ex := &exchange.Exchange{}
		ex.Request.Host, ex.Request.Target, ex.Request.Path = []byte("honest.test"), []byte("/"+target), []byte("/"+target)
		ex.Request.Header.Add("X", value)
		url := string(a.appendURL(nil, ex, &Place{}))
		if strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
			t.Errorf("%q became %q", text, url)
		}
		ex.Request.Target, ex.Request.Path = []byte("/"), []byte("/")
		plain := string(a.appendURL(nil, ex, &Place{}))
		if hostOf(url) != hostOf(plain) {
			t.Errorf("%q leads to %q with one target and to %q with another", text, hostOf(url), hostOf(plain))
		}
	})
}

// FuzzTarget: the same of where clients are sent, and what begins as a path stays one.
func FuzzTarget(f *testing.F) {
	f.Add("https://new.test/$1#$arg_a", "/%0d%0a?a=%23", "evil.test")
	f.Add("/$arg_to", "/?to=//evil.test", "x")
	f.Add("/$http_x$1", "//a", "/evil.test")
	at := Place{Namespace: "n", Ingress: "i", Service: "s", Port: "80", Pattern: regexp.MustCompile("^(.*)$")}
	f.Fuzz(func(t *testing.T, text, target, value string) {
		to, err := ParseTarget(text)
		if err != nil {
			return
		}
		fill := to.filler(at)
		ex := &exchange.Exchange{}
		ex.Request.Host, ex.Request.Target, ex.Request.Path = []byte("honest.test"), []byte("/"+target), []byte("/"+target)
		ex.Request.Header.Add("X", value)
		url := string(fill(ex))
		if strings.ContainsFunc(url, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q became %q", text, url)
		}
		ex.Request.Target, ex.Request.Path = []byte("/"), []byte("/")
		ex.Request.Header.Del("X")
		plain := string(fill(ex))
		switch {
		case !to.IsPath() && hostOf(url) != hostOf(plain):
			t.Errorf("%q leads to %q with one target and to %q with another", text, hostOf(url), hostOf(plain))
		case !to.IsPath(), len(to.text.parts) == 1: // the operator's own words
		case strings.HasPrefix(url, "//") || !strings.HasPrefix(url, "/"):
			t.Errorf("%q leads to %q", text, url)
		}
	})
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// TestPortBehindHost: the port that a client came by may stand behind the host where it is sent,
// though not where a service is asked, and is a number whatever a proxy in front of us says.
func TestPortBehindHost(t *testing.T) {
	const text = "https://$host:$server_port/x"
	if _, err := ParseAddress(text); err == nil {
		t.Error("a client chooses the port of a service")
	}
	to, err := ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[string]string{"8443": "https://a.test:8443/x", "80@evil.test": "https://a.test:/x", "": "https://a.test:/x"} {
		if got := string(to.fill(ask("GET a.test /", "X-Forwarded-Port: "+port), &Place{})); got != want {
			t.Errorf("%q: %s, want %s", port, got, want)
		}
	}
}

// TestVariablesOfResponses: what is known behind the backends' answers stands in fields of
// responses, and nowhere else.
func TestVariablesOfResponses(t *testing.T) {
	ex := ask("GET a.test /")
	ex.Response.Status = 200
	ex.Response.Header.Add("X-User", "ann")
	ex.Request.Received = time.UnixMilli(1_700_000_000_000)
	ex.Upstream.Began = ex.Request.Received.Add(5 * time.Millisecond)
	ex.Upstream.Tries = []exchange.Try{
		{Endpoint: netip.MustParseAddrPort("10.0.0.1:80"), Failed: 502, Took: time.Millisecond},
		{Endpoint: netip.MustParseAddrPort("[fd00::1]:80"), Status: 200, Connect: 2 * time.Millisecond, Header: 30 * time.Millisecond, Took: 1234 * time.Millisecond},
	}
	for text, want := range map[string]string{
		"$upstream_addr":                    "10.0.0.1:80, [fd00::1]:80",
		"$upstream_status|$status":          "502, 200|200",
		"$upstream_response_time":           "0.001, 1.234",
		"${upstream_connect_time}":          "0.000, 0.002",
		"$upstream_header_time":             "0.000, 0.030",
		"$upstream_http_x_user $scheme":     "ann http",
		"<$Upstream_Http_None$sent_http_x>": "<>",
		"<$upstream_cache_status>":          "<>",
		"$request_time":                     "0.036",
	} {
		p, err := new(Names).ParseOfResponse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(p.appendField(nil, ex, &Place{})); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if _, err := new(Names).ParseTemplate(text); err == nil {
			t.Errorf("%s is known before there is a response", text)
		}
	}
	for _, text := range []string{"$upstream_http_", "$sent_http_", "$upstream_bytes", "$upstream_addr$nothing"} {
		if _, err := new(Names).ParseOfResponse(text); err == nil {
			t.Errorf("%s is known", text)
		}
	}
}
