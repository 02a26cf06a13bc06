package filter

import (
	"regexp"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
)

// Whatever a path and a template are, what the upstream is sent begins with one
// slash, has no dot segment, and nothing in it ends the request line.
func FuzzRewrite(f *testing.F) {
	for _, seed := range [][2]string{
		{"/api/x", "/$2"}, {"/a", "$1"}, {"//", "$2$2"}, {"/a", "/x/$arg_q"}, {"/a", "$request_uri/$host"}, {"/.x./..", "/$1$2"}, {"/a%2Fb", "/?$1"}, {"/a", "/b HTTP/1.1\r\nHost: x"}, {"/x.", "/$3./"},
	} {
		f.Add(seed[0], seed[1])
	}
	pattern := regexp.MustCompile(`^/([^/]*)(/|$)?(.*)`)
	f.Fuzz(func(t *testing.T, path, template string) {
		to, err := ParseTemplate(template)
		if err != nil || to.IsURL() {
			return
		}
		ex := &exchange.Exchange{}
		ex.Request.Path, ex.Request.Target = []byte(path), []byte("/?q=/../x")
		if !rewrites([]Rewrite{{Pattern: pattern, Target: to}}, Place{}).Request(ex) {
			return
		}
		sent := ex.Request.Target
		if sent[0] != '/' || len(sent) > 1 && sent[1] == '/' || climbs(sent) {
			t.Fatalf("%q by %q is sent as %q", path, template, sent)
		}
		for _, c := range sent {
			if c <= ' ' || c >= 0x7f {
				t.Fatalf("%q by %q is sent as %q", path, template, sent)
			}
		}
	})
}

// No credentials make a guard panic, and only the right ones pass.
func FuzzBasic(f *testing.F) {
	users, _, err := ParseUsers([]byte("u:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"Basic dTpwYXNzd29yZA==", "basic  dTpwYXNzd29yZA==", "Basic", "Basic ", "Basic dQ==", "Basic Og==", "Bearer x", "Basic \x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ex := &exchange.Exchange{}
		ex.Request.Header.Add("Authorization", value)
		var buf [exchange.MaxCredentials]byte
		given, ok := exchange.BasicCredentials(buf[:0], []byte(value))
		if passes := users.guard(ex) == 0; passes != (ok && string(given) == "u:password") {
			t.Fatalf("%q: passes %v", value, passes)
		}
	})
}

func FuzzParseUsers(f *testing.F) {
	for _, seed := range []string{people, "", "a:b", "a:$2y$99$", "a:$6$rounds=9$", "a:$apr1$", ":", "a:{SSHA}", "a:{PLAIN}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if users, _, err := ParseUsers(content); err == nil && users.decoy == nil {
			t.Fatal("a list of users has no hash")
		}
	})
}

// Whatever an operator writes and a client asks, a redirect of some requests leads to a path
// of the host that was asked, or to a host that the path has no part in.
func FuzzRedirectedRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"/docs", "a.test", "$1/"}, {"//evil.test", "a.test", "/$1"}, {"/a%2Fb", "a.test", "https://new.test$1?x#y"}, {"/\\evil", "a.test", "$1$2"}, {"/x", "www.a.test", "https://$1/"},
		{"/x\r\nA: b", "a.test", "$scheme://$host$request_uri"}, {"/@evil.test", "a.test", "https://new.test$uri"}, {"/.evil.test", "a.test", "http://a$1"}, {"/", "a.test", "https://a.test:8$args"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	conditions := []Condition{{Of: Variable{part{variable: "uri"}}, Pattern: regexp.MustCompile(`^(.*)$`)}, {Of: Variable{part{variable: "host"}}, Pattern: regexp.MustCompile(`(?:www\.)?(.+)`)}}
	f.Fuzz(func(t *testing.T, path, host, target string) {
		if strings.ContainsAny(host, "/?#@%\\") { // no Host that gets here
			return
		}
		for _, c := range conditions {
			to, err := c.ParseTarget(target)
			if err != nil {
				continue
			}
			location := redirectedTo(c, to, host, "/"+path)
			if strings.ContainsFunc(location, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q of %q to %q: %q", path, host, target, location)
			}
			literal := len(to.text.parts) == 1 && to.text.parts[0].variable == ""
			if location != "" && to.IsPath() && !literal && (location[0] != '/' || strings.HasPrefix(location, "//") || strings.HasPrefix(location, "/\\")) {
				t.Fatalf("%q of %q to the path %q: %q", path, host, target, location)
			}
			if other := redirectedTo(c, to, host, "/other"); location != "" && !to.IsPath() && authority(location) != authority(other) {
				t.Fatalf("%q of %q to %q: %q, and /other to %q", path, host, target, location, other)
			}
		}
	})
}

// redirectedTo is where a request is sent, or nothing.
func redirectedTo(c Condition, to *Target, host, path string) string {
	ex := &exchange.Exchange{}
	ex.Request.Path, ex.Request.Target, ex.Request.Host = []byte(path), []byte(path), []byte(host)
	redirectedRequests([]RedirectedRequest{{c, Redirect{302, to}}}, Place{Host: "a.test"}).Request(ex)
	return string(ex.Response.Header.Get("Location"))
}

// authority is what a browser takes for the host of an address.
func authority(address string) string {
	_, after, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(after, "/?#\\"); i >= 0 {
		after = after[:i]
	}
	return after
}
