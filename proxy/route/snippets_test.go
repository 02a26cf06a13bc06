package route

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// TestServerSnippets: one that does nothing but refuse paths is obeyed; else what guards closes.
func TestServerSnippets(t *testing.T) {
	for _, c := range []struct {
		text, beside string // the other is a line of denied-paths
		denied       int
		closed       bool
		told         string
	}{
		{text: "location /metrics { deny all; } location ~ /\\.git { return 404; }", denied: 2},
		{text: "location /metrics { deny all; }", beside: "/own", denied: 2},
		{text: "location /metrics { deny all; } if ($x) { return 403; }", closed: true, told: "guards access by raw nginx configuration"},
		{text: "location ~ (?=x) { deny all; }", closed: true, told: "guards access by raw nginx configuration"},
		{text: "proxy_set_header X-A a; client_max_body_size 2g; grpc_read_timeout 1s;"},
		{text: "proxy_ssl_name inner.test; proxy_ssl_server_name on;"},
		{text: "access_log off; proxy_cookie_flags ~ secure;"},
		{text: "add_header X-A a; location /metrics { deny all; }", denied: 1},
		{text: "server_tokens off;"},
	} {
		annotations := map[string]string{NginxPrefix + "server-snippet": c.text}
		if c.beside != "" {
			annotations[OwnPrefix+"denied-paths"] = c.beside
		}
		s, findings := optionsOf(optionTable, annotations, defaults(ingressclass.Class{}), noRefs{})
		told := ""
		for _, f := range findings {
			told += f.message
		}
		if !c.closed && len(s.filters.DeniedPaths) != c.denied || (s.closed != "") != c.closed || (told == "") != (c.told == "") || !strings.Contains(told, c.told) {
			t.Errorf("%s: %v, closed %q, told %q", c.text, s.filters.DeniedPaths, s.closed, told)
		}
	}
}

// TestPlainSnippets: a configuration-snippet is obeyed whole or not at all; one that guards
// and is not obeyed closes the route, and any other is told of.
func TestPlainSnippets(t *testing.T) {
	for _, c := range []struct {
		text   string
		fields int // of responses
		closed bool
		told   string
	}{
		{text: `more_set_headers "X-A: a" "X-B: b";`, fields: 2},
		{text: "proxy_buffering off; # nothing else"},
		{text: `more_set_headers "X-A: a"; proxy_pass http://x;`, told: "has no effect: line 1, proxy_pass http://x: nothing does that here; quayside migrate"},
		{text: `more_set_headers "X-A: a"; satisfy any;`, fields: 1},
		{text: `more_set_headers "X-A: a"; satisfy some;`, closed: true, told: "guards access by raw nginx configuration that is not obeyed: its satisfy: \"some\" is neither all nor any"},
		{text: `more_set_headers "X-A: a"; satisfy any all;`, closed: true, told: "guards access by raw nginx configuration that is not obeyed: line 1, satisfy any all: nothing does that here"},
		{text: `more_set_headers "Content-Length: 1";`, told: "Content-Length may not be set"},
		{text: `proxy_set_header X-A a; proxy_cookie_flags ~ safest;`, told: "has no effect: its proxy-cookie-flags"},
		{text: "auth_request_set $u $upstream_http_x_user; add_header X-User $u;", fields: 1, told: "acts in part: nobody is asked who could answer what auth_request_set takes; set auth-url"},
		{text: "proxy_set_header X-User $u;", told: "variable $u is not known"},
		{text: "x", told: "does not end"},
	} {
		s, findings := optionsOf(optionTable, map[string]string{NginxPrefix + "configuration-snippet": c.text}, defaults(ingressclass.Class{}), noRefs{})
		told := ""
		for _, f := range findings {
			told += f.message
		}
		fields := 0
		for _, one := range s.filters.Scripts {
			fields += len(one.Fields[0])
		}
		if fields != c.fields || (s.closed != "") != c.closed || (told == "") != (c.told == "") || !strings.Contains(told, c.told) {
			t.Errorf("%s: %d fields, closed %q, told %q", c.text, fields, s.closed, told)
		}
		if c.told != "" && len(s.filters.RequestHeaders) > 0 {
			t.Errorf("%s: part of it is obeyed", c.text)
		}
	}
	// What guards stands beside the annotations of its kind, or closes.
	const refuses = "allow 10.0.0.0/8; deny all; if ($http_x_bad) { return 403; }"
	for _, c := range []struct {
		key, value string
		closed     bool
	}{
		{"enable-access-log", "true", false},
		{"denied-requests", "$http_x_worse = 1", false},
		{"denylist-source-range", "10.0.0.1", true}, // which is before, or behind, or instead: a wrong guess opens
		{"allowlist-source-range", "10.0.0.1", true},
		{"whitelist-source-range", "10.0.0.1", true},
	} {
		s, _ := optionsOf(optionTable, map[string]string{NginxPrefix + "configuration-snippet": refuses, OwnPrefix + c.key: c.value}, defaults(ingressclass.Class{}), noRefs{})
		holds := s.filters.Access != nil && len(s.filters.Access.Allow) == 1 && len(s.filters.Scripts) == 1 && s.filters.Scripts[0].Refuses
		if (s.closed != "") != c.closed || !c.closed && !holds || c.key == "denied-requests" && len(s.filters.DeniedRequests) != 1 {
			t.Errorf("beside %s: closed %q, %+v, %v", c.key, s.closed, s.filters.Access, s.filters.Scripts)
		}
	}
	for _, global := range []filter.Access{{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, {Deny: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}} {
		begin := defaults(ingressclass.Class{})
		begin.filters.Access = &global
		if s, _ := optionsOf(optionTable, map[string]string{NginxPrefix + "configuration-snippet": refuses}, begin, noRefs{}); s.closed == "" {
			t.Errorf("beside %+v of the proxy the route is open", global)
		}
	}
	parsers := snippetParsers()
	for _, key := range slices.Concat(snippet.PlainKeys(), []string{"allowlist-source-range", "denylist-source-range"}) {
		if ofScript := key == "response-headers" || key == "success-headers"; parsers[key] == nil && !ofScript {
			t.Errorf("nothing obeys %s", key)
		}
	}
}

// TestServerSnippetsOfSharedHosts: what a server-snippet sets holds for the paths of its namespace,
// but for Ingresses with another one, of which it is told. A redirect of it comes before those of a
// path.
func TestServerSnippetsOfSharedHosts(t *testing.T) {
	setting, refusing, other := deniedIngress("a", "setting", "/", ""), deniedIngress("a", "refusing", "/x", ""), deniedIngress("a", "other", "/y", "")
	setting.Annotations = map[string]string{
		OwnPrefix + "server-snippet":        "if ($http_x_forwarded_proto = http) { return 301 https://$host$request_uri; }",
		OwnPrefix + "configuration-snippet": "rewrite ^/a https://new.test/ redirect;",
	}
	refusing.Annotations = map[string]string{OwnPrefix + "server-snippet": "location /metrics { deny all; }"}
	o := Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}}
	alone := Compile(snapshot.Of(deniedService("a"), setting), nil, o)
	if len(alone.Problems) != 0 {
		t.Error(alone.Problems)
	}
	r, _ := alone.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte("/"), Path: []byte("/")})
	if list := r.Filters.Scripts; len(list) != 2 || !list[0].OfHost || list[1].OfHost {
		t.Errorf("of the host first, and then of the path: %+v", list)
	}
	shared := Compile(snapshot.Of(deniedService("a"), setting, refusing, other), alone, o)
	if p := shared.Problems; len(p) != 1 || p[0].Object.Key.Name != "setting" || !strings.Contains(p[0].Message, "acts in part: it does not hold for the paths that Ingress a/refusing has there, which has one of its own") {
		t.Errorf("told is %v", p)
	}
	for path, scripts := range map[string]int{"/": 2, "/x": 0, "/y": 1} {
		r, _ := shared.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte(path), Path: []byte(path)})
		if list := r.Filters.Scripts; len(list) != scripts || len(r.Filters.DeniedPaths) != 1 {
			t.Errorf("%s has %d scripts and denies %v", path, len(list), r.Filters.DeniedPaths)
		}
	}
	if again := Compile(snapshot.Of(deniedService("a"), setting), shared, o); len(again.Problems) != 0 {
		t.Error(again.Problems)
	}
}

// TestServerSnippetsThatDoNotHold: whose paths a server-snippet does not hold for, and why, is told
// to the Ingress that has it, and to nobody else.
func TestServerSnippetsThatDoNotHold(t *testing.T) {
	first := deniedIngress("a", "first", "/", "")
	first.Annotations = map[string]string{OwnPrefix + "server-snippet": "allow 10.0.0.0/8; deny all; add_header X-A a;"}
	listed := deniedIngress("a", "listed", "/x", "")
	listed.Annotations = map[string]string{OwnPrefix + "whitelist-source-range": "192.0.2.0/24"}
	same := deniedIngress("a", "same", "/x", "")
	same.Annotations = maps.Clone(first.Annotations)
	for want, second := range map[string]*networkingv1.Ingress{
		"which is of another namespace": deniedIngress("b", "second", "/x", ""),
		"whitelist-source-range is not": listed,
		"":                              same,
	} {
		table := Compile(snapshot.Of(deniedService("a"), deniedService("b"), first, second), nil, Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}})
		p := table.Problems
		if (len(p) > 0) != (want != "") || want != "" && (len(p) != 1 || p[0].Object != refTo(snapshot.Ingress, snapshot.KeyOf(first)) || !strings.Contains(p[0].Message, want)) {
			t.Errorf("%s: told is %v, want %q", second.Name, p, want)
		}
		r, _ := table.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte("/x"), Path: []byte("/x")})
		if holds := r.Filters != nil && len(r.Filters.Scripts) > 0; holds != (want == "") || r.Closed != "" {
			t.Errorf("%s: it holds: %v, closed %q", second.Name, holds, r.Closed)
		}
	}
}

// TestServerSnippetsThatShut: one that guards access and is not obeyed closes those of its
// namespace on the host, too, which have none, until it is mended.
func TestServerSnippetsThatShut(t *testing.T) {
	first, own, other, beside := deniedIngress("a", "first", "/", ""), deniedIngress("a", "own", "/own", ""), deniedIngress("b", "other", "/other", ""), deniedIngress("a", "beside", "/beside", "")
	own.Annotations = map[string]string{OwnPrefix + "server-snippet": "add_header X-A a;"}
	options := Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}}
	var table *Table
	for _, c := range []struct {
		snippet string
		shuts   bool
	}{
		{"deny 10.0.0.1; perl_set $x 'sub {}';", true}, {"add_header X-A b; perl_set $x 'sub {}';", false}, {"deny 10.0.0.1;", false}, {"auth_request /in; perl_set $x 'sub {}';", true}, {"", false},
	} {
		first = first.DeepCopy()
		first.Annotations = map[string]string{OwnPrefix + "server-snippet": c.snippet}
		table = Compile(snapshot.Of(deniedService("a"), deniedService("b"), first, own, other, beside), table, options)
		for path, shut := range map[string]bool{"/": c.shuts, "/beside": c.shuts, "/own": false, "/other": false} {
			r, _ := table.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte(path), Path: []byte(path)})
			if (r.Closed != "") != shut {
				t.Errorf("%q: %s is closed %q", c.snippet, path, r.Closed)
			}
		}
		told := slices.ContainsFunc(table.Problems, func(p snapshot.Problem) bool {
			return p.Object.Key.Name == "beside" && p.Reason == RouteClosed && strings.Contains(p.Message, "Ingress a/first")
		})
		if told != c.shuts {
			t.Errorf("%q: %v", c.snippet, table.Problems)
		}
	}
}

// TestServerSnippetsThatAreStoodFor: an Ingress has lists of addresses, or a service that is asked,
// in the place of those of a server-snippet. One that guards by something else as well closes it.
func TestServerSnippetsThatAreStoodFor(t *testing.T) {
	const asks = " auth_request /in; location = /in { internal; proxy_pass http://web.a.svc; }"
	for _, c := range []struct {
		snippet, key, value string
		closed              bool
	}{
		{"allow 10.0.0.0/8; deny all;", "whitelist-source-range", "192.0.2.0/24", false},
		{"allow 10.0.0.0/8; deny all; if ($http_x) { return 403; }", "whitelist-source-range", "192.0.2.0/24", true},
		{"allow 10.0.0.0/8; deny all;" + asks, "whitelist-source-range", "192.0.2.0/24", true},
		{asks, "auth-url", "http://auth.a.svc/", false},
		{asks + " if ($http_x) { return 404; }", "auth-url", "http://auth.a.svc/", true},
		{"if ($http_x) { return 403; }", "auth-url", "http://auth.a.svc/", false}, // both hold
		{"add_header X-A a;", "whitelist-source-range", "192.0.2.0/24", false},
	} {
		first, second := deniedIngress("a", "first", "/", ""), deniedIngress("a", "second", "/x", "")
		first.Annotations = map[string]string{OwnPrefix + "server-snippet": c.snippet}
		second.Annotations = map[string]string{OwnPrefix + c.key: c.value}
		table := Compile(snapshot.Of(deniedService("a"), first, second), nil, Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}})
		r, _ := table.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte("/x"), Path: []byte("/x")})
		told := slices.ContainsFunc(table.Problems, func(p snapshot.Problem) bool { return p.Object.Key.Name == "second" && p.Reason == RouteClosed })
		if closed := r.Closed != ""; closed != c.closed || told != c.closed {
			t.Errorf("%q beside %s: closed %q, %v", c.snippet, c.key, r.Closed, table.Problems)
		}
	}
}

// TestServerSnippetsWhereNoPathLeads: where a host is all of one class, the server-snippet acts on
// what no path leads to. A default backend comes before that.
func TestServerSnippetsWhereNoPathLeads(t *testing.T) {
	ing := deniedIngress("a", "one", "/x", "")
	ing.Annotations = map[string]string{OwnPrefix + "server-snippet": "location = /up { return 200 up; }"}
	other := deniedIngress("a", "other", "/z", "")
	other.Spec.DefaultBackend = &other.Spec.Rules[0].HTTP.Paths[0].Backend
	nginx := ingressclass.NginxName
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: nginx}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
	options := Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName, Adopt: []string{ingressclass.NginxController}}}
	for _, c := range []struct {
		class   string
		others  []snapshot.Object
		leads   bool
		scripts int
	}{
		{nginx, nil, false, 1}, {ingressclass.DefaultName, nil, false, 0}, {nginx, []snapshot.Object{other}, true, 1},
	} {
		ing.Spec.IngressClassName, other.Spec.IngressClassName = &c.class, &c.class
		table := Compile(snapshot.Of(append(c.others, class, deniedService("a"), ing)...), nil, options)
		r, _ := table.Match(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte("/up"), Path: []byte("/up")})
		scripts := 0
		if r != nil && r.Filters != nil {
			scripts = len(r.Filters.Scripts)
		}
		if scripts != c.scripts || r != nil && (r.Backend >= 0) != c.leads || (len(table.Problems) > 0) != (c.scripts == 0) {
			t.Errorf("%s, beside %d: %+v, told is %v", c.class, len(c.others), r, table.Problems)
		}
	}
}

// TestSnippetsForAll: what the ConfigMap says for every path, and what an Ingress says, nginx
// reads in one place: variables are of both, and neither changes those of other Ingresses.
func TestSnippetsForAll(t *testing.T) {
	w := globalOf(t, map[string]string{
		"location-snippet": "set $who all; add_header X-A a; proxy_set_header X-All $who; proxy_cookie_flags ~ secure;",
		"server-snippet":   "set $host_said $host; if ($arg_a) { return 410; }",
	})
	if len(w.problems) > 0 {
		t.Fatal(w.problems)
	}
	ing := func(text string) *settings {
		s, findings := optionsOf(optionTable, map[string]string{OwnPrefix + "configuration-snippet": text}, *w.settingsOf(ingressclass.Class{}), noRefs{})
		if len(findings) > 0 {
			t.Errorf("%s: %v", text, findings)
		}
		return s
	}
	for text, want := range map[string][4]int{ // steps, fields, fields of requests, flags, of which own ones replace the others
		"": {1, 1, 1, 1},
		`set $mine "$who-$host_said"; add_header X-B $mine; proxy_set_header X-Mine $mine;`: {2, 2, 2, 1},
		`if ($who = all) { return 403; }`: {2, 1, 1, 1},
		`proxy_set_header X-C c; proxy_cookie_flags a secure; proxy_cookie_flags b secure;`: {1, 1, 2, 2},
	} {
		s := ing(text)
		list := s.filters.Scripts
		if len(list) != 2 || !list[0].OfHost || !list[0].Refuses {
			t.Fatalf("%s: %+v", text, list)
		}
		if got := [4]int{len(list[1].Steps), len(list[1].Fields[0]), len(s.filters.RequestHeaders), len(s.filters.CookieFlags)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if s := ing(""); len(s.filters.Scripts) != 2 {
		t.Errorf("of an Ingress that says nothing: %+v", s.filters.Scripts)
	}
	for _, text := range []string{"add_header X-A $mine;", "set $a b; add_header X-A $a;" + strings.Repeat("set $a c;", 64)} {
		s, findings := optionsOf(optionTable, map[string]string{OwnPrefix + "configuration-snippet": text}, *w.settingsOf(ingressclass.Class{}), noRefs{})
		if len(findings) != 1 || len(s.filters.Scripts) != 2 || len(s.filters.Scripts[1].Steps) != 1 {
			t.Errorf("%s: %v, %+v", text, findings, s.filters.Scripts)
		}
	}
}

// TestPlacesThatNobodyAsks: an Ingress is told of a location that none of its paths leads to.
func TestPlacesThatNobodyAsks(t *testing.T) {
	ing := deniedIngress("a", "one", "/x", "")
	for text, told := range map[string]bool{
		`location = /x/y { return 200 a; }`: false, `location /x { return 200 a; }`: false, `location ~ y$ { return 200 a; }`: false, `location = /y { return 200 a; }`: true,
	} {
		ing.Annotations = map[string]string{OwnPrefix + "server-snippet": text}
		p := Compile(snapshot.Of(deniedService("a"), ing), nil, Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}}).Problems
		if (len(p) > 0) != told || told && !strings.Contains(p[0].Message, "no path leads to its location /y") {
			t.Errorf("%s: %v", text, p)
		}
	}
}
