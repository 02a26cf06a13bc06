package proxy_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDrawnAuthSameAsNginx draws guards of an Ingress, what the service says that is asked, and
// who asks, beside the directives that ingress-nginx makes of them.
//
// Not drawn is more than one cookie or challenge of the service, of which Debian's nginx passes
// the first on; a service in trouble where a password would be enough, upon which nginx says 500
// to whoever has named none; fields of a response on what ingress-nginx makes of another
// location or before it looks at any; and what clients say in fields of the question, which nginx
// lets through.
func TestDrawnAuthSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := authDrawer{parts}
	cases := draw.cases(count*2, draw.options, draw.request)
	for i, c := range cases {
		if c.with["satisfy"] != "" && c.with["auth-type"] != "" {
			cases[i].requests = slices.DeleteFunc(c.requests, func(r string) bool { return noVerdict.MatchString(r) })
		}
	}
	compareWithNginx(t, cases)
}

// TestUsersSameAsNginx asks as each user, by passwords right and wrong.
func TestUsersSameAsNginx(t *testing.T) {
	c := sameCase{with: map[string]string{}}
	c.say("auth-type=basic")
	for _, name := range []string{"ann", "bea", "cat", "dan", "eve", "fay", "gus", "hal", "ida", "#jo", "jo", "kay", "a b", "b", "", "Ann", "ann ", "nobody", "# people"} {
		for _, password := range []string{"test", "other", "Test", "", "test:x", "test:in the clear", "test ", "{PLAIN}test"} {
			c.requests = append(c.requests, "/x\nAuthorization: Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
		}
	}
	compareWithNginx(t, []sameCase{c})
}

// noVerdict is a question that is neither answered yes nor no.
var noVerdict = regexp.MustCompile(`X-Judge: (400|404|302|500|503)`)

// authDrawer draws guards.
type authDrawer struct{ snippetDrawer }

// The targets that are asked for: nginx escapes them by a module that Debian's has not got.
var authTargets = []string{"/x", "/x?a=b&c=d", "/a%20b/c?x=/y", "/status/404", "/status/302?a=1", "/status/500", "/q;r=~_-.!*'()?%41"}

func (d authDrawer) options() sameCase {
	c := sameCase{with: map[string]string{}}
	kind := d.IntN(5)
	for _, extra := range d.some(4,
		[]string{"whitelist-source-range=127.0.0.0/8", "whitelist-source-range=10.0.0.0/8", "denylist-source-range=127.0.0.1"},
		[]string{"satisfy=any"}, []string{"enable-cors=true"},
		[]string{"permanent-redirect=https://new.test/at", "rewrite-target=/fixed", "upstream-vhost=inner.test", "response-headers=X-Own: yes"},
	) {
		c.say(extra)
	}
	if kind > 0 {
		d.external(&c, kind > 1 && c.with["response-headers"] == "" && d.IntN(2) == 0)
	}
	if kind < 2 {
		c.say("auth-type=basic")
	}
	return c
}

// say adds an option to a case, and what ingress-nginx makes of it.
func (c *sameCase) say(option string) {
	name, value, _ := strings.Cut(option, "=")
	c.with[name] = value
	switch name {
	case "auth-type":
		c.with["auth-secret"], c.with["auth-realm"] = "users", "Staff"
		c.inside += `auth_basic "Staff"; auth_basic_user_file USERS; proxy_set_header Authorization ""; `
	case "whitelist-source-range":
		c.inside += "allow " + value + "; deny all; "
	case "denylist-source-range":
		c.inside += "deny " + value + "; "
	case "satisfy":
		c.inside += "satisfy " + value + "; "
	case "permanent-redirect":
		c.inside += "return 301 " + value + "; "
	case "rewrite-target":
		c.inside += `rewrite "(?i)/" ` + value + " break; "
	case "enable-cors":
		c.inside += corsDirectives(corsDefaults())
	case "upstream-vhost":
		c.inside += "proxy_set_header Host " + value + "; "
	case "response-headers":
		c.inside += "more_set_headers '" + value + "'; "
	}
}

// external draws auth-url and what belongs to it.
func (d authDrawer) external(c *sameCase, signin bool) {
	place := "/check" + d.of("", "", "?of=$request_uri", "/$host", "/in?m=$request_method&from=$http_referer")
	c.with["auth-url"] = "http://gate.default.svc.cluster.local" + place
	asks := `internal; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Forwarded-Proto ""; proxy_set_header X-Request-ID $name; proxy_set_header Host gate.default.svc.cluster.local;
		proxy_set_header X-Original-URL $scheme://$http_host$request_uri; proxy_set_header X-Original-Method $request_method; proxy_set_header X-Sent-From "nginx-ingress-controller";
		proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $remote_addr; `
	redirect := "$request_uri"
	for _, one := range d.some(3, []string{"auth-method=POST", "auth-method=HEAD", "auth-method=GET"}, []string{"auth-request-redirect=https://$host/back?m=$request_method", "auth-request-redirect=/own"},
		[]string{"auth-snippet=proxy_set_header X-Snippet $scheme,$http_cookie;"}, []string{"auth-always-set-cookie=true"}) {
		name, value, _ := strings.Cut(one, "=")
		c.with[name] = value
		switch name {
		case "auth-method":
			asks += "proxy_method " + value + "; proxy_set_header X-Original-URI $request_uri; proxy_set_header X-Scheme $scheme; "
		case "auth-request-redirect":
			redirect = value
		case "auth-snippet":
			asks += value + " "
		}
	}
	c.server += fmt.Sprintf("location = /_ask { %s proxy_set_header X-Auth-Request-Redirect %s; set $target http://GATE%s; proxy_pass $target; } ", asks, redirect, place)
	c.inside += "auth_request /_ask; auth_request_set $auth_cookie $upstream_http_set_cookie; add_header Set-Cookie $auth_cookie" + map[bool]string{true: " always"}[c.with["auth-always-set-cookie"] != ""] + "; "
	fields := d.some(2, []string{"X-Asked"}, []string{"X-User", "X-Groups, X-User"}, []string{"x-own"})
	if len(fields) > 0 {
		c.with["auth-response-headers"] = strings.Join(fields, ",")
	}
	for i, name := range strings.FieldsFunc(strings.Join(fields, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		c.inside += fmt.Sprintf("auth_request_set $field%d_N $upstream_http_%s; proxy_set_header %s $field%d_N; ", i, strings.ToLower(strings.ReplaceAll(name, "-", "_")), name, i)
	}
	if signin {
		d.signin(c)
	}
}

// signin draws where clients are sent that the service refuses.
func (d authDrawer) signin(c *sameCase) {
	cors := ""
	if c.with["enable-cors"] != "" {
		cors = corsDirectives(corsDefaults())
	}
	place := d.of("https://login.test/start", "https://login.test/start?app=a", "https://login.test/?rd=$escaped_request_uri", "http://$host/oauth2/start?rd=x", "/own")
	param := "rd"
	c.with["auth-signin"] = place
	if d.IntN(3) == 0 {
		param = "back"
		c.with["auth-signin-redirect-param"] = param
	}
	_, query, asked := strings.Cut(place, "?")
	switch {
	case !asked:
		place += "?" + param + "=$scheme://$http_host$escaped_request_uri"
	case !strings.HasPrefix(query, param+"="):
		place += "&" + param + "=$scheme://$http_host$escaped_request_uri"
	}
	c.http = "map $request_uri $escaped_request_uri { "
	for _, target := range slices.Concat(authTargets, sameRequests()) {
		target, _, _ = strings.Cut(target, "\n")
		target = target[strings.Index(target, "/"):]
		if escaped := strings.ReplaceAll(url.QueryEscape(target), "+", "%20"); !strings.Contains(c.http, " "+escaped+";") {
			c.http += fmt.Sprintf(`"~^%s$" %s; `, regexp.QuoteMeta(target), escaped)
		}
	}
	c.http += "}\n"
	c.inside += "error_page 401 = /_login; "
	c.server += "absolute_redirect off; location = /_login { internal; add_header Set-Cookie $auth_cookie; " + cors + "return 302 " + place + "; } "
}

func (d authDrawer) request() string {
	lines := []string{d.of("GET ", "GET ", "HEAD ", "OPTIONS ", "POST ", "DELETE ") + d.of(authTargets...)}
	verdict := []string{d.of("200", "200", "200", "204", "201", "299", "401", "401", "403", "400", "404", "302", "500", "503")}
	verdict = append(verdict, d.some(2, []string{"X-User: bob", "X-User:  bob\tb  ", "X-User:"}, []string{"X-Groups: a, b"}, []string{"Set-Cookie: s=1; Path=/", "Set-Cookie: s="},
		[]string{"WWW-Authenticate: Bearer realm=\"x\"", "WWW-Authenticate: Basic"}, []string{"Location: https://elsewhere.test/"}, []string{"Cache-Control: no-store", "X-Own: told"})...)
	lines = append(lines, "X-Judge: "+strings.Join(verdict, "|"))
	if d.IntN(2) == 0 {
		lines = append(lines, "Authorization: "+d.of("Basic YW5uOnRlc3Q=", "Basic YW5uOnRlc3Q=", "basic YW5uOnRlc3Q=", "BASIC   YW5uOnRlc3Q=", "Basic YW5uOnRlc3Q= ", "Basic YW5uOndyb25n", "Basic YW5u", "Basic YW5uOg==", "Basic OnRlc3Q=", "Basic", "Basic ", "Basic !", "BasicYW5uOnRlc3Q=", "Bearer YW5uOnRlc3Q=",
			"Basic\tYW5uOnRlc3Q=", "Basic YW5uOnRlc3Q6eA==", "Basic QW5uOnRlc3Q="))
	}
	lines = append(lines, d.some(3, []string{"X-User: root"}, []string{"X-Groups: wheel"}, []string{"X-Asked: never"}, []string{"Origin: https://a.test"}, []string{"Cookie: a=b"},
		[]string{"X-Original-URL: /public", "X-Original-Method: TRACE", "X-Sent-From: me", "X-Auth-Request-Redirect: /evil", "X-Scheme: https"},
		[]string{"X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https", "X-Real-IP: 9.9.9.9", "X-Forwarded-Host: evil.test"}, []string{"Accept-Encoding: gzip"})...)
	text := strings.Join(lines, "\n")
	if strings.HasPrefix(text, "POST") {
		text += "\n\n" + d.of("body", "body5")
	}
	return text
}
