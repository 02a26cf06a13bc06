package balance_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

// visit sends a request with the cookie, if any, and returns the endpoint and
// the cookie to send next time.
func visit(s *balance.Set, p *balance.Picker, cookie string, random uint64, tried ...int) (netip.AddrPort, string) {
	r := get("/")
	if cookie != "" {
		r.Header.Add("Cookie", "a=b; "+cookie)
	}
	ses := s.Session(r, random)
	i := p.Pick(s, epoch, &ses, tried)
	var h exchange.Header
	s.TellClient(&ses, i, r, &h, epoch)
	if set := h.Get("Set-Cookie"); set != nil {
		cookie, _, _ = strings.Cut(string(set), ";")
	}
	return s.Endpoints[i].Addr, cookie
}

func sticky(c balance.Cookie) balance.Policy {
	c.Name = "session"
	return balance.Policy{Cookie: c}
}

// A client stays where it is: with a balanced cookie as far as joining endpoints
// leave it there, with a persistent one always.
func TestStickySessions(t *testing.T) {
	const clients, n = 20_000, 8
	for _, persistent := range []bool{false, true} {
		policy := sticky(balance.Cookie{Persistent: persistent})
		s, larger := arranged(n, policy), arranged(n+1, policy)
		smaller := without(s, 3, policy)
		gone := s.Endpoints[3].Addr
		var p, first balance.Picker
		counts := map[netip.AddrPort]int{}
		moved, left := 0, 0
		for k := range uint64(clients) {
			home, cookie := visit(s, &first, "", k)
			counts[home]++
			if again, same := visit(s, &p, cookie, k+clients); again != home || same != cookie {
				t.Fatalf("client %d was at %s, then at %s (%q, %q)", k, home, again, cookie, same)
			}
			if there, _ := visit(larger, &p, cookie, k); there != home {
				moved++
			}
			there, _ := visit(smaller, &p, cookie, k)
			switch {
			case home == gone:
				left++
			case there != home:
				t.Fatalf("client %d moved from %s to %s, though only %s left", k, home, there, gone)
			}
		}
		if ideal := clients / (n + 1); persistent && moved != 0 || !persistent && (float64(moved) > 1.2*float64(ideal) || moved == 0) {
			t.Errorf("persistent %v: %d of %d clients moved when one of %d endpoints joined", persistent, moved, clients, n+1)
		}
		if float64(left) > 1.2*clients/n {
			t.Errorf("persistent %v: %d of %d clients were on one of %d endpoints", persistent, left, clients, n)
		}
		if len(counts) != n {
			t.Errorf("persistent %v: clients are on %d endpoints", persistent, len(counts))
		}
	}
}

// TestAnotherPodAtAnAddressKnowsNoSessions, and another backend of the same pods shares them
// out in another way.
func TestAnotherPodAtAnAddressKnowsNoSessions(t *testing.T) {
	policy := sticky(balance.Cookie{Persistent: true})
	s := set(5)
	was := s.Arrange(policy, []byte("uid"), balance.CookieKey{})
	next := &balance.Set{Endpoints: slices.Clone(s.Endpoints)}
	next.Endpoints[2].Pod.Name = "the next"
	is := next.Arrange(policy, []byte("uid"), balance.CookieKey{})
	var p balance.Picker
	for k := range uint64(100) {
		home, cookie := visit(was, &p, "", k)
		if _, kept := visit(is, &p, cookie, k); (kept == cookie) == (home == s.Endpoints[2].Addr) {
			t.Fatalf("a client of %s gets the cookie %q for %q", home, kept, cookie)
		}
	}
	hash := balance.Policy{Algorithm: balance.Hash, HashBy: "$request_uri"}
	a, b := set(5).Arrange(hash, []byte("a"), balance.CookieKey{}), set(5).Arrange(hash, []byte("b"), balance.CookieKey{})
	same := 0
	for k := range 100 {
		if at(a, &p, get(fmt.Sprint("/", k))) == at(b, &p, get(fmt.Sprint("/", k))) {
			same++
		}
	}
	if same > 50 {
		t.Errorf("%d of 100 keys are at the same pod of two backends", same)
	}
}

// No client can make a cookie: what we have not sealed is as none.
func TestForgedCookies(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		policy := sticky(balance.Cookie{Persistent: persistent})
		s := arranged(6, policy)
		elsewhere := set(6).Arrange(policy, []byte("another uid"), balance.CookieKey{})
		otherKey := set(6).Arrange(policy, []byte("uid"), balance.CookieKey{1})
		var p balance.Picker
		rapid.Check(t, func(t *rapid.T) {
			_, cookie := visit(s, &p, "", rapid.Uint64().Draw(t, "random"))
			name, value, _ := strings.Cut(cookie, "=")
			forged := []byte(value)
			at := rapid.IntRange(0, len(forged)-1).Draw(t, "at")
			to := rapid.SampledFrom([]byte("0123456789abcdefgG-")).Draw(t, "to")
			if forged[at] == to {
				t.Skip("unchanged")
			}
			forged[at] = to
			if _, next := visit(s, &p, name+"="+string(forged), 5); next == name+"="+string(forged) {
				t.Fatalf("the forged cookie %s was taken", forged)
			}
			if _, next := visit(elsewhere, &p, cookie, 5); next == cookie {
				t.Fatalf("a cookie of another Service was taken")
			}
			if _, next := visit(otherKey, &p, cookie, 5); next == cookie {
				t.Fatalf("a cookie was taken that is sealed with another key")
			}
		})
	}
}

// When its endpoint fails, a client is answered by another and comes back,
// unless its cookie is to change.
func TestSessionsAfterAFailure(t *testing.T) {
	for _, c := range []balance.Cookie{{}, {Persistent: true}, {ChangeOnFailure: true}, {Persistent: true, ChangeOnFailure: true}} {
		s := arranged(5, sticky(c))
		var p balance.Picker
		for k := range uint64(50) {
			home, cookie := visit(s, &p, "", k)
			failed := 0
			for s.Endpoints[failed].Addr != home {
				failed++
			}
			other, next := visit(s, &p, cookie, k+1000, failed)
			if other == home || (next != cookie) != c.ChangeOnFailure {
				t.Fatalf("%+v: from %s to %s, the cookie went from %q to %q", c, home, other, cookie, next)
			}
			if after, _ := visit(s, &p, next, k); c.ChangeOnFailure && after != other || !c.ChangeOnFailure && after != home {
				t.Fatalf("%+v: the next request went to %s; home is %s, the other %s", c, after, home, other)
			}
		}
	}
}

func TestClientIP(t *testing.T) {
	svc, list := cluster(t, strings.Replace(service, "spec:", "spec:\n  sessionAffinity: ClientIP", 1)+
		slice("s", "- {addresses: [10.0.0.1]}\n- {addresses: [10.0.0.2]}\n- {addresses: [10.0.0.3]}\n"))
	compile := func(o balance.Options) *balance.Set {
		return balance.Compile(svc, list, balance.PortRef{Number: 80}, "", "", o)
	}
	s := compile(balance.Options{})
	var p balance.Picker
	seen := map[netip.AddrPort]bool{}
	for k := range 40 {
		r := get("/")
		r.Client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(k)}), uint16(k))
		first := at(s, &p, r)
		r.Client = netip.AddrPortFrom(r.Client.Addr(), uint16(k+1000))
		if again := at(s, &p, r); again != first {
			t.Errorf("%s went to %s, then to %s", r.Client, first, again)
		}
		seen[first] = true
	}
	if len(seen) != 3 {
		t.Errorf("40 clients are on %d endpoints", len(seen))
	}
	if s.Equal(compile(balance.Options{AnyNode: true})) || !s.Equal(compile(balance.Options{})) {
		t.Error("Equal is blind to sessionAffinity, or AnyNode does not ignore it")
	}
}

func TestCookieAttributes(t *testing.T) {
	const safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.1 Safari/605.1.15"
	for _, c := range []struct {
		cookie balance.Cookie
		tls    bool
		agent  string
		want   string
	}{
		{balance.Cookie{Domain: "path.test"}, false, "", "; Domain=path.test; Path=/of/rule; HttpOnly"},
		{balance.Cookie{}, false, "", "; Path=/; HttpOnly"},
		{balance.Cookie{}, true, "", "; Path=/; Secure; HttpOnly"},
		{balance.Cookie{Secure: balance.SecureOff}, true, "", "; Path=/; HttpOnly"},
		{balance.Cookie{Secure: balance.SecureOn, Path: "/shop", Domain: "example.com"}, false, "", "; Domain=example.com; Path=/shop; Secure; HttpOnly"},
		{balance.Cookie{MaxAge: time.Hour, Expires: 48 * time.Hour}, false, "",
			"; Expires=Sun, 17 Jan 2027 08:00:00 GMT; Max-Age=3600; Path=/; HttpOnly"},
		{balance.Cookie{SameSite: "None", ConditionalNone: true}, false, "curl/8", "; Path=/; HttpOnly; SameSite=None"},
		{balance.Cookie{SameSite: "None", ConditionalNone: true}, false, safari, "; Path=/; HttpOnly"},
		{balance.Cookie{SameSite: "None"}, false, safari, "; Path=/; HttpOnly; SameSite=None"},
		{balance.Cookie{SameSite: "Lax", ConditionalNone: true}, false, safari, "; Path=/; HttpOnly; SameSite=Lax"},
	} {
		s := arranged(2, sticky(c.cookie))
		r := get("/")
		r.TLS = c.tls
		if c.cookie.Domain != "" {
			r.CookiePath = "/of/rule"
		}
		r.Header.Add("User-Agent", c.agent)
		ses := s.Session(r, 1)
		var h exchange.Header
		s.TellClient(&ses, 0, r, &h, epoch)
		name, rest, _ := strings.Cut(string(h.Get("Set-Cookie")), "=")
		if len(rest) < 32 || name != "session" || rest[32:] != c.want {
			t.Errorf("%+v: %s=%s, want the attributes %q", c.cookie, name, rest, c.want)
		}
	}
}

func TestPolicyCheck(t *testing.T) {
	for _, c := range []struct {
		policy balance.Policy
		want   string
	}{
		{balance.Policy{}, ""},
		{sticky(balance.Cookie{Path: "/a b"}), "no path that a cookie can have"},
		{sticky(balance.Cookie{Path: "/a; Domain=evil"}), "no path that a cookie can have"},
		{sticky(balance.Cookie{Domain: "a\r\nX: y"}), "is no domain"},
		{sticky(balance.Cookie{Domain: "*.example"}), "is no domain"},
		{sticky(balance.Cookie{Domain: ".a-1.Example"}), ""},
		{balance.Policy{Cookie: balance.Cookie{Name: "a b"}}, "not the name of a cookie"},
		{sticky(balance.Cookie{SameSite: "none"}), "SameSite"},
		{sticky(balance.Cookie{MaxAge: -1}), "expire"},
		{balance.Policy{Algorithm: balance.Hash}, "names no variable"},
		{balance.Policy{Algorithm: balance.Hash, HashBy: "$nonsense"}, "$nonsense is not known"},
		{balance.Policy{Algorithm: balance.Hash, HashBy: "a$"}, "no variable name"},
		{balance.Policy{Algorithm: balance.Hash, HashBy: "${uri"}, "no variable name"},
		{balance.Policy{Algorithm: balance.Hash, HashBy: "$http_"}, "not known"},
		{balance.Policy{Subset: 17}, "at most 16"},
		{balance.Policy{Subset: 16}, ""},
		{balance.Policy{Subset: -1}, "at most 16"},
		{sticky(balance.Cookie{Path: "/~a", Domain: "a.example"}), ""},
		{sticky(balance.Cookie{Path: "/a\x7f"}), "no path that a cookie can have"},
		{balance.Policy{HealthCheck: balance.HealthCheck{Failures: 1}}, "no path"},
		{balance.Policy{SlowStart: -1}, "negative"},
		{balance.Policy{MaxRequests: -1}, "negative"},
	} {
		if err := c.policy.Check(); fmt.Sprint(err) != c.want && (c.want == "" || err == nil || !strings.Contains(err.Error(), c.want)) {
			if c.want != "" || err != nil {
				t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
			}
		}
	}
}

// What the variables stand for; requests that agree in them share a hash.
func TestHashKey(t *testing.T) {
	request := func(target, host, user, cookie string, client string) *exchange.Request {
		path, _, _ := strings.Cut(target, "?")
		r := &exchange.Request{Method: []byte("GET"), Target: []byte(target), Path: []byte(path), Host: []byte(host)}
		r.Client = netip.MustParseAddrPort(client)
		r.Header.Add("X-User-Id", user)
		r.Header.Add("Cookie", "x=1; Sid="+cookie)
		r.Header.Add("X-Forwarded-For", client)
		r.Header.Add("X-Original-Forwarded-For", user)
		return r
	}
	a := request("/a?q=1&r=2", "h", "u", "s", "192.0.2.1:1")
	for _, c := range []struct {
		key  string
		b    *exchange.Request
		same bool
	}{
		{"$request_uri", request("/a?q=1&r=2", "h2", "u2", "s2", "192.0.2.2:1"), true},
		{"$request_uri", request("/a?q=1&r=3", "h", "u", "s", "192.0.2.1:1"), false},
		{"$uri", request("/a?q=9", "h2", "u2", "s2", "192.0.2.2:1"), true},
		{"$args", request("/b?q=1&r=2", "h2", "u2", "s2", "192.0.2.2:1"), true},
		{"$arg_q", request("/b?r=7&q=1", "h2", "u2", "s2", "192.0.2.2:1"), true},
		{"$arg_q", request("/a?q=2&r=2", "h", "u", "s", "192.0.2.1:1"), false},
		{"$remote_addr", request("/b", "h2", "u2", "s2", "192.0.2.1:77"), true},
		{"$binary_remote_addr", request("/a?q=1&r=2", "h", "u", "s", "192.0.2.3:1"), false},
		{"$http_x_user_id", request("/b", "h2", "u", "s2", "192.0.2.2:1"), true},
		{"$http_x_forwarded_for", request("/b", "h2", "u", "s2", "192.0.2.2:1"), true}, // as it came
		{"${cookie_sid}", request("/b", "h2", "u2", "s", "192.0.2.2:1"), true},
		{"$cookie_sid", request("/a?q=1&r=2", "h", "u", "s2", "192.0.2.1:1"), false},
		{"$cookie_SID", request("/b", "h2", "u2", "s", "192.0.2.2:1"), true},
		{"$cookie_SID", request("/a?q=1&r=2", "h", "u", "s2", "192.0.2.1:1"), false},
		{"$host-$scheme-$request_method", request("/b", "h", "u2", "s2", "192.0.2.2:1"), true},
		{"$host$uri", request("/b", "h", "u", "s", "192.0.2.1:1"), false},
	} {
		key, err := balance.ParseHashKey(c.key)
		if err != nil {
			t.Errorf("%s: %v", c.key, err)
			continue
		}
		x, okX := key.Hash(a)
		y, okY := key.Hash(c.b)
		if !okX || !okY || (x == y) != c.same {
			t.Errorf("%s: %x (%v) and %x (%v), want them equal: %v", c.key, x, okX, y, okY, c.same)
		}
	}
	safe := *a
	safe.TLS = true
	for _, c := range [][2]string{{"$scheme", "$scheme"}, {"a$host", "b$host"}, {"$host", "$host/"}} {
		x, _ := balance.ParseHashKey(c[0])
		y, _ := balance.ParseHashKey(c[1])
		hash, _ := x.Hash(a)
		if other, _ := y.Hash(&safe); hash == other {
			t.Errorf("%s over HTTP and %s over HTTPS are the same", c[0], c[1])
		}
	}
	key, _ := balance.ParseHashKey("user=$http_x_user_id")
	if _, ok := key.Hash(get("/")); ok {
		t.Error("a request without the header has a hash, so all of them would meet on one endpoint")
	}
}
