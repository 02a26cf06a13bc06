package filter

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"quayside.io/proxy/exchange"
)

// ask returns an exchange: "METHOD host target", then fields as "Name: value".
func ask(line string, fields ...string) *exchange.Exchange {
	part := strings.Fields(line)
	ex := &exchange.Exchange{}
	r := &ex.Request
	r.Method, r.Host, r.Target = []byte(part[0]), []byte(part[1]), []byte(part[2])
	path, _, _ := strings.Cut(part[2], "?")
	r.Path = []byte(path)
	r.Client = netip.MustParseAddrPort("192.0.2.1:5")
	r.Received = time.Unix(1000, 0)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	return ex
}

// text is what every option makes of a text, and target what redirects do.
func text(s string) *Template {
	t, err := ParseTemplate(s)
	if err != nil {
		panic(err)
	}
	return t
}

func target(s string) *Target {
	t, err := ParseTarget(s)
	if err != nil {
		panic(err)
	}
	return t
}

func tools() Tools { return NewTools(maphash.MakeSeed()) }

// pass runs ex through what s asks for. A status of 200 is the backend's.
func pass(s *Settings, ex *exchange.Exchange) *exchange.Exchange {
	c := Compile(s, Host{}, tools())
	if c.Request(ex) {
		ex.Response.Status = 200
	}
	c.Response(ex)
	c.Finished(ex)
	return ex
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		line string
		tls  bool
		want string
	}{
		{Settings{DirectResponse: &DirectResponse{200, Literal("ok")}}, "POST a /y?q", false, "200 "},
		{Settings{Redirect: &Redirect{301, target("https://new.example/x")}}, "GET a /y?q", false, "301 https://new.example/x"},
		{Settings{AppRoot: target("/app")}, "GET a:8080 /?q", false, "302 http://a:8080/app"},
		{Settings{AppRoot: target("/app")}, "GET a /", true, "302 https://a/app"},
		{Settings{AppRoot: target("/app")}, "GET a /other", false, "200 "},
		{Settings{CanonicalHost: "www.a"}, "GET a /x?q", true, "308 https://www.a/x?q"},
		{Settings{CanonicalHost: "a", RedirectCode: 301}, "GET www.a:81 /x", false, "301 http://a:81/x"},
	} {
		ex := ask(c.line)
		ex.Request.TLS = c.tls
		pass(&c.s, ex)
		if got := fmt.Sprint(ex.Response.Status, " ", string(ex.Response.Header.Get("Location"))); got != c.want {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ pattern, to, target, want string }{
		{"", "/new", "/a/b?q=1", "/new?q=1"},
		{"(?i)^/api(/|$)(.*)", "/$2", "/API/v1/x?q", "/v1/x?q"},
		{"(?i)^/api(/|$)(.*)", "/$2", "/api", "/"},
		{"(?i)^/api(/|$)(.*)", "/$1$2", "/api/x", "/x"},
		{"^/a/(.*)", "$1", "/a/b", "/b"},
		{"^/a/(.*)", "/x?a=1", "/a/b?q", "/x?a=1&q"},
		{"^/a/(.*)", "/x?", "/a/b?q", "/x"},
		{"^/a/(.*)", "/x/$1/$9", "/a/b c%2Fd\u00e9", "/x/b%20c%2Fd%C3%A9/"},
		{"^/never", "/x", "/a/b?q", "/a/b?q"},
		{"^/a/(.*)", "/on/$host/$1", "/a/b?q", "/on/a/b?q"},
		{"^/a/(.*)", "/$arg_v/$1?", "/a/b?v=x%3Fy?z", "/x%3Fy%3Fz/b"},
		{"^/a/(.*)", "/to/$arg_v", "/a/b?v=../../x", "400 "},
		{"^/(.*)", "$scheme://b.example/$1?", "/a?q", "302 http://b.example/a"},
		{"^/(.*)", "https://b.example/$1", "/a?q", "302 https://b.example/a?q"},
		{"^/x(.)y(.)", "/$1$2/z", "/x.y.", "400 "},
		{"^/a(.*)", "$1", "/a//evil", "/evil"},
		{"^/a", "/b HTTP/1.1\r\nHost: evil", "/a", "/b%20HTTP/1.1%0D%0AHost:%20evil"},
	} {
		s := Settings{Rewrite: &Rewrite{Target: text(c.to)}}
		if c.pattern != "" {
			s.Rewrite.Pattern = regexp.MustCompile(c.pattern)
		}
		ex := ask("GET a /x")
		path, _, _ := strings.Cut(c.target, "?")
		ex.Request.Target, ex.Request.Path = []byte(c.target), []byte(path)
		pass(&s, ex)
		got := string(ex.Request.Target)
		if ex.Response.Status != 200 {
			got = fmt.Sprint(ex.Response.Status, " ", string(ex.Response.Header.Get("Location")))
		}
		if got != c.want {
			t.Errorf("%s -> %s of %s: %q, want %q", c.pattern, c.to, c.target, got, c.want)
		}
	}
}

func TestCORS(t *testing.T) {
	listed := &CORS{Origins: []string{"https://a.example", "https://*.b.example:8443"}, Methods: "GET, PUT", Headers: "X-A", Expose: "X-B", Credentials: true, MaxAge: 60}
	for _, c := range []struct {
		cors           *CORS
		method, origin string
		status         int
		allow          string
	}{
		{listed, "GET", "https://a.example", 200, "https://a.example"},
		{listed, "GET", "https://A.example", 200, "https://A.example"},
		{listed, "GET", "https://a.example.evil", 200, ""},
		{listed, "GET", "https://evil.a.example", 200, ""},
		{listed, "GET", "https://x.b.example:8443", 200, "https://x.b.example:8443"},
		{listed, "GET", "https://x.y.b.example:8443", 200, ""},
		{listed, "GET", "https://evil/.b.example:8443", 200, ""},
		{listed, "GET", "https://.b.example:8443", 200, ""},
		{listed, "GET", "", 200, ""},
		{listed, "OPTIONS", "https://a.example", 204, "https://a.example"},
		{listed, "OPTIONS", "https://evil", 200, ""},
		{&CORS{Origins: []string{"*"}}, "GET", "", 200, "*"},
		{&CORS{Origins: []string{"*"}}, "OPTIONS", "https://x", 204, "*"},
	} {
		ex := ask(c.method + " a /")
		if c.origin != "" {
			ex.Request.Header.Add("Origin", c.origin)
		}
		pass(&Settings{CORS: c.cors}, ex)
		h := &ex.Response.Header
		if ex.Response.Status != c.status || string(h.Get("Access-Control-Allow-Origin")) != c.allow {
			t.Errorf("%s from %q: %d, allowed %q", c.method, c.origin, ex.Response.Status, h.Get("Access-Control-Allow-Origin"))
		}
		if c.cors == listed && (string(h.Get("Access-Control-Allow-Methods")) == "GET, PUT") != (c.allow != "") {
			t.Errorf("%s from %q: the other fields are %q", c.method, c.origin, h.Fields())
		}
	}
	// A cache that keeps what one origin was told does not tell it to another.
	for _, c := range []struct {
		cors         *CORS
		origin, vary string
	}{
		{listed, "https://a.example", "Origin"}, {listed, "https://evil", "Origin"}, {listed, "", "Origin"},
		{&CORS{Origins: []string{"*"}}, "https://a.example", ""},
	} {
		ex := ask("GET a /")
		if c.origin != "" {
			ex.Request.Header.Add("Origin", c.origin)
		}
		if got := string(pass(&Settings{CORS: c.cors}, ex).Response.Header.Get("Vary")); got != c.vary {
			t.Errorf("%q of %q: Vary %q, want %q", c.origin, c.cors.Origins, got, c.vary)
		}
	}
	// What a guard answers is marked too, and a preflight needs no password.
	s := &Settings{CORS: listed, Access: &Access{Allow: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}}
	if ex := pass(s, ask("GET a /", "Origin: https://a.example")); ex.Response.Status != 403 || ex.Response.Header.Get("Access-Control-Max-Age") == nil {
		t.Errorf("a refusal: %d %q", ex.Response.Status, ex.Response.Header.Fields())
	}
	if ex := pass(s, ask("OPTIONS a /", "Origin: https://a.example")); ex.Response.Status != 204 {
		t.Errorf("a preflight: %d", ex.Response.Status)
	}
}

const people = "# people\nbob:$apr1$qwertyui$qcBPTTk6hZB9dPkhlSvpd/\nsha:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n" +
	"eve:$2y$04$abcdefghijklmnopqrstuuVdVbUMvhw7rV3jiGFXFGg9DGbTDQLmO\nold:rqXexS6ZhobKA\n"

func TestGuards(t *testing.T) {
	users, unknown, err := ParseUsers([]byte(people))
	if err != nil || len(unknown) != 1 || unknown[0] != "old" {
		t.Fatalf("unknown %q, %v", unknown, err)
	}
	near, far := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("::ffff:198.51.100.0/120")
	basic := &Basic{Realm: `my "realm"`, Users: users}
	const sha = "Authorization: Basic c2hhOnBhc3N3b3Jk"       // sha:password
	const wrong = "Authorization: Basic c2hhOnBhc3N3b3JkMQ==" // sha:password1
	for _, c := range []struct {
		name   string
		s      Settings
		auth   string
		status int
	}{
		{"allowed", Settings{Access: &Access{Allow: []netip.Prefix{near}}}, "", 200},
		{"not allowed", Settings{Access: &Access{Allow: []netip.Prefix{far}}}, "", 403},
		{"denied", Settings{Access: &Access{Deny: []netip.Prefix{near}, Allow: []netip.Prefix{near}}}, "", 403},
		{"not denied", Settings{Access: &Access{Deny: []netip.Prefix{far}}}, "", 200},
		{"password", Settings{Basic: basic}, sha, 200},
		{"password again", Settings{Basic: basic}, sha, 200},
		{"no password", Settings{Basic: basic}, "", 401},
		{"wrong password", Settings{Basic: basic}, wrong, 401},
		{"unknown hash", Settings{Basic: basic}, "Authorization: Basic b2xkOnBhc3N3b3Jk", 401},
		{"unknown user", Settings{Basic: basic}, "Authorization: Basic bm9ib2R5OnBhc3N3b3Jk", 401},
		{"another scheme", Settings{Basic: basic}, "Authorization: Bearer c2hhOnBhc3N3b3Jk", 401},
		{"not base64", Settings{Basic: basic}, "Authorization: Basic ***", 401},
		{"too long", Settings{Basic: basic}, "Authorization: Basic " + strings.Repeat("c2hh", 300), 401},
		{"all, address wrong", Settings{Basic: basic, Access: &Access{Allow: []netip.Prefix{far}}}, sha, 403},
		{"any, address wrong", Settings{SatisfyAny: true, Basic: basic, Access: &Access{Allow: []netip.Prefix{far}}}, sha, 200},
		{"any, password wrong", Settings{SatisfyAny: true, Basic: basic, Access: &Access{Allow: []netip.Prefix{near}}}, wrong, 200},
		{"any, both wrong", Settings{SatisfyAny: true, Basic: basic, Access: &Access{Allow: []netip.Prefix{far}}}, wrong, 401},
	} {
		ex := ask("GET a /")
		if name, value, ok := strings.Cut(c.auth, ": "); ok {
			ex.Request.Header.Add(name, value)
		}
		pass(&c.s, ex)
		if ex.Response.Status != c.status {
			t.Errorf("%s: %d, want %d", c.name, ex.Response.Status, c.status)
		}
		if asks := ex.Response.Header.Get("WWW-Authenticate"); c.status == 401 && string(asks) != `Basic realm="my \"realm\""` {
			t.Errorf("%s: it asks %q", c.name, asks)
		}
	}
}

// Every kind of hash that ingress-nginx takes and we know lets its password pass, and
// no other. Those of apr1, SHA-256 and SHA-512 are openssl's.
func TestKindsOfHashes(t *testing.T) {
	cheap, err := bcrypt.GenerateFromPassword([]byte("password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for kind, hash := range map[string]string{
		"bcrypt":              string(cheap),
		"apr1":                "$apr1$qwertyui$HXk0FO.YSsj8U6p.rbeF./",
		"SHA":                 "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
		"SHA-256 with rounds": "$5$rounds=1000$saltsalt$azOwbpkvuuBKkE82dQPwTsQE8JyT9Fflpr9aKid3aT9",
		"SHA-512":             "$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnSq.qc.eoxqOmSuNp2xS0ktL3nh/",
	} {
		users, unknown, err := ParseUsers([]byte("u:" + hash + "\nu:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n"))
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown %q", kind, err, unknown)
			continue
		}
		for password, want := range map[string]int{"password": 0, "Password": 401, "": 401} {
			for range 2 { // checked, then remembered
				ex := ask("GET a /", "Authorization: bAsIc "+base64.StdEncoding.EncodeToString([]byte("u:"+password)))
				if got := users.guard(ex); got != want {
					t.Errorf("%s, %q: %d, want %d", kind, password, got, want)
				}
			}
		}
	}
}

// What stands behind a hash is a comment, as in nginx's auth_basic_user_file.
func TestCommentsOfUsers(t *testing.T) {
	cheap, err := bcrypt.GenerateFromPassword([]byte("password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{string(cheap), "$apr1$qwertyui$HXk0FO.YSsj8U6p.rbeF./", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="} {
		users, unknown, err := ParseUsers([]byte("u:" + hash + ":Ursula, 2nd floor\n"))
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown %q", hash, err, unknown)
			continue
		}
		for password, want := range map[string]int{"password": 0, "password:Ursula, 2nd floor": 401} {
			ex := ask("GET a /", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+password)))
			if got := users.guard(ex); got != want {
				t.Errorf("%s, %q: %d, want %d", hash, password, got, want)
			}
		}
	}
}

func TestParseUsersRefuses(t *testing.T) {
	for _, content := range []string{"", "\n#\n", "nobody", ":hash", "a:plain", "a:$2y$nonsense", "a:$2y$31$abcdefghijklmnopqrstuuVdVbUMvhw7rV3jiGFXFGg9DGbTDQLmO", "a:$6$rounds=999999999$abc$def", "a:$6$rounds=200001$abc$def", "a:$6$rounds=x$abc$def"} {
		if _, _, err := ParseUsers([]byte(content)); err == nil {
			t.Errorf("%q is a list of users", content)
		}
	}
}

func TestLimits(t *testing.T) {
	type at struct {
		client string
		ms     int
		ok     bool
	}
	for name, c := range map[string]struct {
		limits Limits
		asked  []at
	}{
		"burst, then as fast as it is paid": {Limits{PerSecond: 2, Burst: 1}, []at{
			{"192.0.2.1", 0, true}, {"192.0.2.1", 0, true}, {"192.0.2.1", 0, true}, {"192.0.2.1", 0, false}, {"192.0.2.1", 499, false},
			{"192.0.2.1", 500, true}, {"192.0.2.1", 501, false}, {"192.0.2.2", 501, true}, {"192.0.2.1", 5000, true}, {"192.0.2.1", 5000, true},
			{"192.0.2.1", 5000, true}, {"192.0.2.1", 5000, false}}},
		"a minute": {Limits{PerMinute: 1, Burst: 1}, []at{
			{"192.0.2.1", 0, true}, {"192.0.2.1", 0, true}, {"192.0.2.1", 59_999, false}, {"192.0.2.1", 60_000, true}}},
		"one host of IPv6 has many addresses": {Limits{PerMinute: 1, Burst: 1}, []at{
			{"2001:db8::1", 0, true}, {"2001:db8::2", 0, true}, {"2001:db8::3", 0, false}, {"2001:db8:0:1::1", 0, true}}},
		"exempt": {Limits{PerMinute: 1, Burst: 1, Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, []at{
			{"192.0.2.1", 0, true}, {"192.0.2.1", 0, true}, {"192.0.2.1", 0, true}}},
	} {
		c.limits.Status = 429
		chain := Compile(&Settings{Limits: &c.limits}, Host{}, tools())
		for i, a := range c.asked {
			ex := ask("GET a /")
			ex.Request.Client = netip.AddrPortFrom(netip.MustParseAddr(a.client), 1)
			ex.Request.Received = time.Unix(1000, 0).Add(time.Duration(a.ms) * time.Millisecond)
			if ok := chain.Request(ex); ok != a.ok || !ok && ex.Response.Status != 429 {
				t.Errorf("%s, request %d: passed %v, status %d", name, i, ok, ex.Response.Status)
			}
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	made := tools()
	chain := Compile(&Settings{Limits: &Limits{Connections: 2, Zone: "a"}}, Host{}, made)
	other := Compile(&Settings{Limits: &Limits{Connections: 2, Zone: "b"}}, Host{}, made)
	first, second, third := ask("GET a /"), ask("GET a /"), ask("GET a /")
	if !chain.Request(first) || !chain.Request(second) || chain.Request(third) || third.Response.Status != 503 {
		t.Error("two of three may pass")
	}
	chain.Finished(third) // was never counted
	if chain.Request(ask("GET a /")) {
		t.Error("a refusal freed a place")
	}
	if !other.Request(ask("GET a /")) {
		t.Error("another Ingress is counted with this one")
	}
	chain.Finished(first)
	if !chain.Request(ask("GET a /")) {
		t.Error("a place that is free is refused")
	}
}

// A table full of clients forgets those that owe least, and never grows.
func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter(maphash.MakeSeed(), ways)
	l.open()
	now := time.Unix(1000, 0)
	for range 3 {
		l.allow(2, now, time.Second, time.Second)
	}
	for key := range uint64(1000) {
		l.allow(key<<1+100, now, time.Millisecond, time.Second)
	}
	if l.allow(2, now, time.Second, time.Second) {
		t.Error("who owes most was forgotten")
	}
	if len(l.slots) != ways {
		t.Errorf("%d slots", len(l.slots))
	}
}

func TestBodySize(t *testing.T) {
	body := func(ex *exchange.Exchange, n int, length int64) *exchange.Exchange {
		ex.Request.Body, ex.Request.Length = io.NopCloser(strings.NewReader(strings.Repeat("x", n))), length
		return ex
	}
	s := &Settings{MaxBody: 10}
	if ex := pass(s, body(ask("POST a /"), 11, 11)); ex.Response.Status != 413 {
		t.Errorf("11 bytes: %d", ex.Response.Status)
	}
	for n, fits := range map[int]bool{0: true, 10: true, 11: false, 4000: false} {
		ex := pass(s, body(ask("POST a /"), n, -1))
		got, err := io.ReadAll(ex.Request.Body)
		if fits != (err == nil) || !fits && !errors.Is(err, exchange.ErrBodyTooLarge) || fits && len(got) != n {
			t.Errorf("%d bytes of unknown length: read %d, %v", n, len(got), err)
		}
	}
}

func TestWhatTheUpstreamIsSent(t *testing.T) {
	ex := pass(&Settings{UpstreamHost: text("inner\r\n"), ForwardedPrefix: text("/p\r\nX: y"), Headers: []Field{{Name: "X-A", Value: text("1\r\nX-B: 2")}, {Name: "bad name", Value: text("1")}}},
		ask("GET a /", "X-Forwarded-Prefix: /theirs"))
	if string(ex.Request.Host) != "inner" || string(ex.Request.Header.Get("X-Forwarded-Prefix")) != "/pX: y" {
		t.Errorf("sent to %q with %q", ex.Request.Host, ex.Request.Header.Fields())
	}
	if f := ex.Response.Header.Fields(); len(f) != 1 || string(f[0].Value) != "1X-B: 2" {
		t.Errorf("answered with %q", f)
	}
}

// All cheap filters at once cost no allocation.
func TestFiltersAllocateNothing(t *testing.T) {
	if racing {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	users, _, err := ParseUsers([]byte(people))
	if err != nil {
		t.Fatal(err)
	}
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	s := &Settings{
		DeniedPaths: []DeniedPath{{Path: "/x", Status: 403}, {Pattern: regexp.MustCompile(`(?i)\.(git|env)`), Status: 404}},
		DeniedRequests: []DeniedRequest{
			{Condition{Of: of(t, "$http_origin"), Pattern: regexp.MustCompile("evil")}, 403}, {Condition{Of: of(t, "$arg_q"), Text: "1", Not: true}, 403},
			{Condition{Of: of(t, "$cookie_a"), Text: "1"}, 403}, {Condition{Of: of(t, "$request_method"), Pattern: regexp.MustCompile("^(GET|HEAD)$"), Not: true}, 403},
		},
		RedirectedRequests: []RedirectedRequest{
			{Condition{Of: of(t, "$uri"), Pattern: regexp.MustCompile("^(/docs)$")}, Redirect{302, target("/$1/")}},
			{Condition{Of: of(t, "$http_x_forwarded_proto"), Text: "http"}, Redirect{301, target("https://a$request_uri")}},
		},
		AnsweredRequests: []AnsweredRequest{{Condition: Condition{Of: of(t, "$uri"), Text: "/up"}, DirectResponse: DirectResponse{200, text("up")}}},
		MaxBody:          10, AppRoot: target("/app"), UpstreamHost: text("inner"), ForwardedPrefix: text("/p"), Headers: []Field{{Name: "X-A", Value: text("1")}},
		CORS:   &CORS{Origins: []string{"https://*.b.example"}, Methods: "GET", Headers: "X"},
		Limits: &Limits{PerSecond: 1_000_000, PerMinute: 100_000_000, Connections: 5},
		Access: &Access{Allow: all}, Basic: &Basic{Users: users},
		Rewrite: &Rewrite{Pattern: regexp.MustCompile("(?i)^/a(/|$)(.*)"), Target: text("/$2")},
	}
	for name, s := range map[string]*Settings{"none": nil, "all": s} {
		chain := Compile(s, Host{ToTLS: func([]byte) bool { return false }, HSTS: "max-age=1"}, tools())
		ex := &exchange.Exchange{}
		like := ask("GET a /a/b?q=1", "Origin: https://x.b.example", "Authorization: Basic c2hhOnBhc3N3b3Jk")
		run := func() {
			again(ex, like)
			if !chain.Request(ex) {
				t.Fatalf("answered %d", ex.Response.Status)
			}
			chain.Response(ex)
			chain.Finished(ex)
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkFilters(b *testing.B) {
	users, _, _ := ParseUsers([]byte(people))
	for name, s := range map[string]*Settings{
		"nothing": {},
		"cors":    {CORS: &CORS{Origins: []string{"https://*.b.example"}, Methods: "GET", Headers: "X"}},
		"limits":  {Limits: &Limits{PerSecond: 1_000_000_000}},
		"access":  {Access: &Access{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.0.0/8")}}},
		"basic":   {Basic: &Basic{Users: users}},
		"rewrite": {Rewrite: &Rewrite{Pattern: regexp.MustCompile("^/a(/|$)(.*)"), Target: text("/$2")}},
		"headers": {Headers: []Field{{Name: "X-A", Value: text("1")}}, UpstreamHost: text("inner"), ForwardedPrefix: text("/p")},
	} {
		b.Run(name, func(b *testing.B) {
			chain := Compile(s, Host{}, tools())
			like := ask("GET a /a/b?q=1", "Origin: https://x.b.example", "Authorization: Basic c2hhOnBhc3N3b3Jk")
			ex := &exchange.Exchange{}
			b.ReportAllocs()
			for b.Loop() {
				again(ex, like)
				chain.Request(ex)
				chain.Response(ex)
			}
		})
	}
}

// again makes ex a request like another, as a front end does.
func again(ex, like *exchange.Exchange) {
	ex.Reset()
	h := ex.Request.Header
	ex.Request = like.Request
	ex.Request.Header = h
	for _, f := range like.Request.Header.Fields() {
		ex.Request.Header.AddBorrowed(f.Name, f.Value)
	}
}
