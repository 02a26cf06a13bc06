package proxy_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// TestSnippetsSameAsNginx draws snippets of conditions, redirects, rewrites and refusals, and
// gives those that are obeyed to nginx, too. What differs on purpose is not drawn: a refusal
// behind a redirect (so no location of a host), $uri in a Location that return makes, in which
// nginx leaves blanks, and slashes that a path begins with.
func TestSnippetsSameAsNginx(t *testing.T) {
	count, draw := drawn(t)
	var cases []sameCase
	for len(cases) < count {
		c := sameCase{requests: []string{"/docs", "/docs?a=b&c", "/old/a%20b/c?x=1", "/adm/y", "/x?a=b\nX-Forwarded-Proto: http", "/x\nX-Forwarded-Proto: https", "POST /old/x?a=b\nCookie: c=1\n\nbody5", "//docs"}}
		text, locations, err := draw.snippet(), 0, error(nil)
		if draw.IntN(3) > 0 {
			_, err = snippet.Script(text, false, &snippet.Known{})
			c.with, c.inside, locations = map[string]string{"configuration-snippet": text}, "absolute_redirect off; "+text, 1 // nginx takes none twice
		} else {
			text = strings.TrimPrefix(text, ownField)
			_, err = snippet.Script(text, true, &snippet.Known{})
			c.with, c.server = map[string]string{"server-snippet": text}, "absolute_redirect off; "+text
		}
		if err == nil && strings.Count(text, "location ") <= locations {
			cases = append(cases, c)
		}
	}
	compareWithNginx(t, cases)
}

// ownField is what the places of a host would not take over.
const ownField = "proxy_set_header X-Own $request_uri;"

// drawn returns how many are drawn, by what: the same always, or in soak many others.
func drawn(t *testing.T) (count int, draw snippetDrawer) {
	t.Helper()
	seed, count := uint64(1), 60
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		seed, count = rand.Uint64(), 600
	}
	t.Logf("seed %d", seed)
	return count, snippetDrawer{rand.New(rand.NewPCG(seed, 0))}
}

// snippetDrawer draws parts of snippets.
type snippetDrawer struct{ *rand.Rand }

// some draws one of each list, where a draw in so many says so.
func (d snippetDrawer) some(in int, lists ...[]string) (drawn []string) {
	for _, list := range lists {
		if d.IntN(in) == 0 {
			drawn = append(drawn, d.of(list...))
		}
	}
	return drawn
}

// cases draws so many, each with options and twelve requests.
func (d snippetDrawer) cases(count int, options func() sameCase, request func() string) (all []sameCase) {
	for range count {
		c := options()
		for range 12 {
			c.requests = append(c.requests, request())
		}
		all = append(all, c)
	}
	return all
}

func (d snippetDrawer) of(list ...string) string { return list[d.IntN(len(list))] }

// snippet draws what refuses, and behind that what goes elsewhere or is answered, on a way that
// ends with the first path that is rewritten.
func (d snippetDrawer) snippet() string {
	lines := []string{ownField}
	for range d.IntN(3) {
		lines = append(lines, d.refusal())
	}
	for range d.IntN(3) {
		lines = append(lines, d.redirect())
	}
	for range d.IntN(2) {
		lines = append(lines, d.of("if ($request_method = OPTIONS) { return 204; }", `if ($arg_a = b) { return 200 "a b\n"; }`, "location = /api { default_type a/b; return 201 x; }", "if ($cookie_c) { return 200; }"))
	}
	for range d.IntN(3) {
		lines = append(lines, "rewrite "+d.of("^/x$ /other?a=b", "^/old/(.*)$ /new/$1", "^/(?:a|abc)/(.+)$ /k/$1?", "(?i)^/API/ /v2", "^/docs /$arg_a")+" break;")
	}
	return strings.Join(lines, " ")
}

func (d snippetDrawer) refusal() string {
	refuses := d.of("return 403;", "return 404;", "return 405;", "return 410;")
	switch d.IntN(3) {
	case 0:
		return "location " + d.of("/adm", "= /x", "~ ^/old", "~* /DOCS$") + " { deny all; " + refuses + " }"
	case 1:
		return "if (" + d.of("$request_method = POST", "$request_method !~ ^(GET|POST|HEAD)$", "$arg_a", "$cookie_c = 1", `$http_referer ~* "R\.test"`, `$args = ""`) + ") { " + refuses + " }"
	}
	return "if ($request_uri " + d.of("~", "~*", "!~") + " " + d.of("^/X", "b$", `"a%20b"`, "^/[a-z/]+$") + ") { " + refuses + " }"
}

func (d snippetDrawer) redirect() string {
	back := " return " + d.of("301", "302", "303", "307", "308") + " " + d.of("https://new.test$request_uri", "https://$host$request_uri", "/new", "$scheme://new.test/?a=$arg_a") + "; "
	switch d.IntN(4) {
	case 0:
		return "rewrite " + d.of("^/x", "^(/docs)$", "^/old/(.*)$", "/b", `\.php$`, `"a b"`) + " " + d.of("/new", "/new/$1", "https://new.test/$1", "/z?", "$scheme://new.test/") + " " + d.of("redirect", "permanent") + ";"
	case 1:
		return "if (" + d.of("$http_x_forwarded_proto = http", "$http_x_forwarded_proto != https", "$scheme = http", "$uri = /x", "$uri ~ ^/a", "$cookie_c", "$arg_a = b") + ") {" + back + "}"
	case 2:
		return "if (" + d.of("$request_uri ~* ^/API", "$http_user_agent", "$is_args = ?", "$host ~ ^case-1") + ") { rewrite " + d.of("^", "^/(.*)$", "^(.*)$") + " https://new.test/in " + d.of("redirect", "permanent") + "; }"
	}
	return d.of("location = /x {"+back+"}", "if ($host ~ ^case-(.*)$) { return 302 https://$1$request_uri; }")
}

// TestVariablesSameAsNginx has each variable told to clients and to backends. Of the fields that
// this proxy replaces, and of which it does not keep what came, it has what it says itself: that
// is not compared.
func TestVariablesSameAsNginx(t *testing.T) {
	text := ""
	for name := range strings.FieldsSeq(`scheme host http_host server_name request_uri uri document_uri args query_string is_args remote_addr remote_user request_method content_type content_length server_protocol
		https request http_x_own http_referer http_cookie cookie_c arg_a arg_none http_x_forwarded_for http_x_forwarded_host http_authorization http_user_agent http_accept http_connection proxy_add_x_forwarded_for`) {
		text += "proxy_set_header V-" + name + " <$" + name + ">; add_header V-" + name + " \"<$" + name + ">\" always; "
	}
	c := ofSnippet(text)
	c.requests = []string{"/a%20b?a=b&A=c&a", "/?", "/x?a=%20", "POST /x\nContent-Type: a/b; c\n\nbody", "/x\nX-Own: \nReferer: é", "/a/../b//c;d=e", "/%41?a", "/x\nCookie: C=2; c=1",
		"/x\nAuthorization: Basic YW5uOnRlc3Q=", "/x\nAuthorization: Bearer x", "DELETE /x\nX-Own: a,b", "/é?é", "/%C3%A9?%C3%A9"}
	compareWithNginx(t, []sameCase{c})
}
