package accesslog_test

import (
	"crypto/tls"
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
)

func record(target, agent string) *accesslog.Record {
	ex := &exchange.Exchange{Request: exchange.Request{
		Method: []byte("GET"), Protocol: "HTTP/1.1", Host: []byte("inner"), Target: []byte("/rewritten"), Path: []byte("/a"),
		Client: netip.MustParseAddrPort("192.0.2.7:0"), TLS: true, Size: 321,
	}}
	r := &ex.Request
	r.Asked.Host, r.Asked.Target = []byte("Shop.example:8443"), []byte(target)
	r.Header.Add("User-Agent", agent)
	r.Header.Add("Authorization", "Basic YW5uOnNlY3JldA==") // ann:secret
	r.Header.Add("X-Request-ID", "0123456789abcdef")
	r.Header.Add("Cookie", "a=1; lang=de")
	r.Header.Add("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ex.Response = exchange.Response{Status: 200, Sent: 1234}
	ex.Response.Header.Add("X-Served-By", "web")
	ex.Upstream = exchange.Upstream{Name: "n-web-80", Tries: []exchange.Try{
		{Endpoint: netip.MustParseAddrPort("10.0.0.1:80"), Failed: 504, Took: 2 * time.Second},
		{Endpoint: netip.MustParseAddrPort("[fd00::1]:80"), Status: 200, Header: 4 * time.Millisecond, Took: 5 * time.Millisecond, Received: 1234},
	}}
	return &accesslog.Record{
		Exchange: ex, Ended: time.Date(2026, 11, 2, 3, 4, 5, 678e6, time.UTC), Took: 2006 * time.Millisecond,
		Place: accesslog.Place{Namespace: "n", Ingress: "shop", Service: "web", Port: "80", Host: "shop.example", Path: "/", Upstream: "n-web-80"},
	}
}

func TestLines(t *testing.T) {
	const combined = `192.0.2.7 - ann [02/Nov/2026:03:04:05 +0000] "GET /a?q=1 HTTP/1.1" 200 1234 "-" "curl/8"`
	for format, want := range map[string]string{
		"combined":     combined,
		"upstreaminfo": combined + ` 321 2.006 [n-web-80] [-] 10.0.0.1:80, [fd00::1]:80 0, 1234 2.000, 0.005 504, 200 0123456789abcdef`,
		"$host ${scheme}s $http_host $arg_q$is_args$args $cookie_lang $sent_http_x_served_by $msec":  `shop.example httpss Shop.example:8443 1?q=1 de web 1793588645.678`,
		"$upstream_header_time|$opentelemetry_trace_id|$opentelemetry_span_id":                       "-, 0.004|0af7651916cd43dd8448eb211c80319c|b7ad6b7169203331",
		"$namespace/$ingress_name $service_name:$service_port $server_name$location_path $http_none": "n/shop web:80 shop.example/ -",
		"a\nb\x1fc\x7fd\x20$status":       "a b c d 200",
		"$request_completion $bytes_sent": "OK 1271",
	} {
		f, err := accesslog.Named(format, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.Line(record("/a?q=1", "curl/8"))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", format, got, want)
		}
	}
	for _, bad := range []string{"", "off", "common", "$", "$nonsense", "${status", "$http_", "$status $ssl_client_cert", "costs $5"} {
		if _, err := accesslog.Named(bad, nil); err == nil {
			t.Errorf("%q is a format", bad)
		}
	}
	for _, bad := range [][]string{nil, {"statuses"}, {`status":1,"x`}, {"status", ""}} {
		if _, err := accesslog.JSON(bad, nil); err == nil {
			t.Errorf("%q are fields", bad)
		}
	}
}

// What has no value is a dash, save in JSON; what is empty is empty. Names of parameters and of
// cookies are written as they are, those of fields with underscores.
func TestWhatIsThere(t *testing.T) {
	const names = "$http_x_empty|$http_x_none|$is_args|$args|$https|$arg_a_z|$cookie_a_b|$arg_aAzZ09!|$http_x_two|$upstream_http_x_served_by|$upstream_connect_time|$time_iso8601"
	r := record("/", "")
	head := &r.Exchange.Request.Header
	head.Add("X-Empty", "")
	head.Add("X-Two", "both")
	head.Add("Cookie", "a_b=c")
	for _, c := range []struct {
		json   bool
		target string
		change func()
		want   string
	}{
		{false, "/", func() {}, `|-||-|on|-|c|-!|both|web|0.000, 0.007|2026-11-02T03:04:05+00:00`},
		{true, "/", func() {}, `||||on||c|!|both|web|0.000, 0.007|2026-11-02T03:04:05+00:00`},
		{false, "/?a_z=1&aAzZ09=2", func() { r.Exchange.Request.TLS = false }, `|-|?|a_z=1&aAzZ09=2||1|c|2!|both|web|0.000, 0.007|2026-11-02T03:04:05+00:00`},
		{false, "/", func() { r.Exchange.Upstream.Tries = nil }, `|-||-||-|c|-!|both|-|-|2026-11-02T03:04:05+00:00`},
	} {
		c.change()
		r.Exchange.Request.Asked.Target = []byte(c.target)
		for i := range r.Exchange.Upstream.Tries {
			r.Exchange.Upstream.Tries[i].Connect = time.Duration(i) * 7 * time.Millisecond
		}
		f, err := accesslog.Parse(names, c.json, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.Line(r)); got != c.want {
			t.Errorf("%s, json %t:\ngot  %s\nwant %s", c.target, c.json, got, c.want)
		}
	}
}

// Numbers of JSON are numbers, and what others know is asked for last.
func TestVariablesOfOthers(t *testing.T) {
	asked := []string{}
	more := func(name string) func(r *accesslog.Record) []byte {
		asked = append(asked, name)
		if name == "geo" {
			return func(*accesslog.Record) []byte { return []byte("\"DE\"") }
		}
		return nil
	}
	f, err := accesslog.JSON([]string{"status", "geo", "request_time", "host"}, more)
	if err != nil {
		t.Fatal(err)
	}
	r := record("/", "")
	if got, want := string(f.Line(r)), `{"status":200,"geo":"\"DE\"","request_time":2.006,"host":"shop.example"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f, err = accesslog.Named("$geo-$status", more); err != nil || string(f.Line(r)) != `\x22DE\x22-200` {
		t.Errorf("%v, %s", err, f.Line(r))
	}
	if _, err := accesslog.Named("$geography", more); err == nil || !slices.Equal(asked, []string{"geo", "geo", "geography"}) {
		t.Errorf("%v, asked for %q", err, asked)
	}
}

// Of a record that is used again only the memory of its line is left.
func TestNothingIsLeftOfTheRequestBefore(t *testing.T) {
	f, _ := accesslog.Named("combined", nil)
	r := record("/", "")
	first := f.Line(r)
	r.Reset()
	if r.Exchange != nil || r.Place != (accesslog.Place{}) || !r.Ended.IsZero() || r.Took != 0 {
		t.Errorf("left: %+v", r)
	}
	r.Exchange = &exchange.Exchange{}
	if again := f.Line(r); &again[0] != &first[0] {
		t.Error("the line's memory is not used again")
	}
}

// TestWhatIsLoggedOfConnections: who came by TLS, and what nginx has a variable for that means
// nothing here, so that a format of nginx's is taken as it is.
func TestWhatIsLoggedOfConnections(t *testing.T) {
	f, err := accesslog.Named(`$remote_port $proxy_protocol_port $https $pipe $ssl_protocol $ssl_cipher $ssl_server_name $ssl_client_verify "$ssl_client_s_dn" $server_addr $connection $connection_requests $upstream_http_x_served_by $hostname $http2 $realip_remote_addr $upstream_cookie_a`, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := record("/", "")
	r.Exchange.Request.Client, r.Hostname = netip.MustParseAddrPort("192.0.2.7:4711"), "pod-1"
	if got := string(f.Line(r)); got != `4711 4711 on . - - - - "-" - - - web pod-1 - - -` {
		t.Errorf("without a handshake: %s", got)
	}
	h := exchange.NewHandshake("Shop.example", nil)
	h.Version, h.Cipher = tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
	r.Exchange.Request.Handshake, r.Exchange.Request.Certificate = h, &exchange.Certificate{Verify: "SUCCESS", Subject: "CN=a\"b\n"}
	if got := string(f.Line(r)); got != `4711 4711 on . TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305 shop.example SUCCESS "CN=a\x22b\x0A" - - - web pod-1 - - -` {
		t.Errorf("with one: %s", got)
	}
	h.Version, h.Cipher, r.Exchange.Request.Protocol = tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, "HTTP/2.0"
	if got := string(f.Line(r)); !strings.Contains(got, " TLSv1.3 TLS_AES_128_GCM_SHA256 ") || !strings.HasSuffix(got, " pod-1 h2 - -") {
		t.Errorf("with TLS 1.3: %s", got)
	}
}

// A client that did not wait is no fault of the endpoint's.
func TestNoStatusOfWhoWasLeft(t *testing.T) {
	f, _ := accesslog.Named("$status $upstream_status", nil)
	r := record("/", "")
	r.Exchange.Response.Status = exchange.StatusClientGone
	r.Exchange.Upstream.Tries[1].Status = 0
	if got := string(f.Line(r)); got != "499 504, -" {
		t.Error(got)
	}
}

// A canary's backend is the alternative of the route's own.
func TestAlternative(t *testing.T) {
	f, _ := accesslog.Named("[$proxy_upstream_name] [$proxy_alternative_upstream_name]", nil)
	r := record("/", "")
	r.Place.Split = true
	r.Exchange.Upstream.Name = "n-new-80"
	if got := string(f.Line(r)); got != "[n-web-80] [n-new-80]" {
		t.Error(got)
	}
}

// What was refused before it could be read has a line all the same.
func TestNothingIsKnown(t *testing.T) {
	f, _ := accesslog.Named("upstreaminfo", nil)
	r := &accesslog.Record{Exchange: &exchange.Exchange{Response: exchange.Response{Status: 400}}, Ended: time.Unix(0, 0).UTC()}
	if got, want := string(f.Line(r)), `- - - [01/Jan/1970:00:00:00 +0000] "-" 400 0 "-" "-" 0 0.000 [-] [-] - - - - -`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func combinedPattern() *regexp.Regexp {
	return regexp.MustCompile(`^192\.0\.2\.7 - ann \[[^]]*\] "([^"]*)" 200 1234 "([^"]*)" "([^"]*)"$`)
}

// checkHostile puts bytes of a client everywhere, and wants lines that nobody can
// mistake for others.
func checkHostile(t *testing.T, target, value string) {
	plain, _ := accesslog.Named("combined", nil)
	r := record(target, value)
	r.Exchange.Request.Header.Add("Referer", value)
	line := string(plain.Line(r))
	m := combinedPattern().FindStringSubmatch(line)
	if m == nil || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' }) {
		t.Fatalf("%q, %q: %q", target, value, line)
	}
	if m[2] != m[3] || unescape(t, m[3]) != value || unescape(t, m[1]) != "GET "+target+" HTTP/1.1" {
		t.Fatalf("%q, %q cannot be told from %q", target, value, line)
	}
	object, _ := accesslog.Named("json", nil)
	line = string(object.Line(r))
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil || strings.ContainsAny(line, "\n\r\u0085\u2028\u2029") || len(fields) != 22 || !utf8.ValidString(line) {
		t.Fatalf("%q, %q: %d fields, %v: %s", target, value, len(fields), err, line)
	}
	if want := string([]rune(target)); fields["request_uri"] != want {
		t.Fatalf("%q became %q", target, fields["request_uri"])
	}
}

// unescape is what a reader of nginx's logs does.
func unescape(t *testing.T, s string) string {
	return regexp.MustCompile(`\\x[0-9A-F]{2}`).ReplaceAllStringFunc(s, func(e string) string {
		const digits = "0123456789ABCDEF"
		return string([]byte{byte(strings.IndexByte(digits, e[2])<<4 | strings.IndexByte(digits, e[3]))})
	})
}

func FuzzHostileBytes(f *testing.F) {
	for _, s := range []string{
		"/", "/a\"b", `/\x22`, "/\n192.0.2.7 - ann", "/\r\n", "\x00\x7f\x80\xff", "/ü€\U0001f600", "\xed\xa0\x80", "\u2028\u2029\u0085", `","status":200,"x":"`, "]", "\t", "%0a",
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, target, value string) { checkHostile(t, target, value) })
}

func TestLinesCostNoAllocation(t *testing.T) {
	for _, name := range []string{"combined", "upstreaminfo", "json"} {
		f, _ := accesslog.Named(name, nil)
		r := record("/a?q=1", "curl/8 \"\xff")
		f.Line(r)
		if n := testing.AllocsPerRun(100, func() { f.Line(r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	for _, name := range []string{"combined", "upstreaminfo", "json"} {
		b.Run(name, func(b *testing.B) {
			f, _ := accesslog.Named(name, nil)
			r := record("/a/b/c?q=1", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
			b.ReportAllocs()
			for b.Loop() {
				f.Line(r)
			}
		})
	}
}
