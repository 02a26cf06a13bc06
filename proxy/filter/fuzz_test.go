package filter

import (
	"regexp"
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
		if !rewrite(&Rewrite{Pattern: pattern, Target: to}, Place{}).Request(ex) {
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
	for _, seed := range []string{people, "", "a:b", "a:$2y$99$", "a:$6$rounds=9$", "a:$apr1$", ":", "a:{SSHA}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if users, _, err := ParseUsers(content); err == nil && users.decoy == nil {
			t.Fatal("a list of users has no hash")
		}
	})
}
