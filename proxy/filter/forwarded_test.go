package filter

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
)

const id = "X-Request-ID: 0000000000000001000000000000000f"

func apply(f *Forwarded, c Connection, lines ...string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Request.Host = []byte("shop.example.com:8080")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		ex.Request.Header.AddBorrowed([]byte(name), []byte(value))
	}
	f.Apply(ex, c, [2]uint64{1, 15})
	return ex
}

func TestForwarded(t *testing.T) {
	trusting := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	stranger := Connection{Peer: netip.MustParseAddr("192.0.2.7"), Port: []byte("8080")}
	friend := Connection{Peer: netip.MustParseAddr("10.0.0.1"), Port: []byte("8443"), TLS: true}
	for _, c := range []struct {
		name   string
		from   Connection
		in     []string
		want   []string
		client string
	}{
		{"nothing claimed", stranger, []string{"Accept: */*"}, []string{
			"Accept: */*", "X-Forwarded-For: 192.0.2.7", "X-Real-IP: 192.0.2.7", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8080", "X-Forwarded-Proto: http", "X-Forwarded-Scheme: http", "X-Scheme: http", id,
		}, "192.0.2.7"},
		{"a stranger's claims are replaced", stranger, []string{
			"x-forwarded-for: 1.1.1.1", "X-Real-Ip: 1.1.1.1", "X_Forwarded_Proto: https", "X-Forwarded-Host: evil", "Proxy: http://evil",
			"X-Forwarded-Port: 1", "X-Scheme: https", "X-Forwarded-Scheme: https", "X-Request-Id: abc-1", "X-Original-Forwarded-Host: worse",
		}, []string{
			"X-Forwarded-For: 192.0.2.7", "X-Real-IP: 192.0.2.7", "X-Original-Forwarded-For: 1.1.1.1", "X-Original-Forwarded-Host: evil", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8080", "X-Forwarded-Proto: http", "X-Forwarded-Scheme: http", "X-Scheme: http", "X-Request-ID: abc-1",
		}, "192.0.2.7"},
		{"nor does a stranger say more by other names", stranger, []string{
			"Forwarded: for=10.0.0.9;proto=https;host=evil", "forwarded: for=1.1.1.1", "X-Forwarded-Prefix: //evil", "x_forwarded_ssl: on",
			"X-Forwarded-Server: evil", "X-Forwarded-By: me", "Forwardable: 1", "X-Forward: 1",
		}, []string{
			"Forwardable: 1", "X-Forward: 1", "X-Forwarded-For: 192.0.2.7", "X-Real-IP: 192.0.2.7", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8080", "X-Forwarded-Proto: http", "X-Forwarded-Scheme: http", "X-Scheme: http", id,
		}, "192.0.2.7"},
		{"a friend may", friend, []string{"Forwarded: for=192.0.2.9", "X-Forwarded-Prefix: /shop"}, []string{
			"Forwarded: for=192.0.2.9", "X-Forwarded-Prefix: /shop", "X-Forwarded-For: 10.0.0.1", "X-Real-IP: 10.0.0.1", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8443", "X-Forwarded-Proto: https", "X-Forwarded-Scheme: https", "X-Scheme: https", id,
		}, "10.0.0.1"},
		{"a friend's claims are continued", friend, []string{
			"X-Forwarded-For: 6.6.6.6, 192.0.2.9", "X-Forwarded-For: 10.2.2.2:99", "X-Forwarded-Proto: http", "X-Forwarded-Host: a.example", "X-Forwarded-Port: 80",
		}, []string{
			"X-Forwarded-For: 6.6.6.6, 192.0.2.9, 10.2.2.2:99, 10.0.0.1", "X-Real-IP: 192.0.2.9", "X-Original-Forwarded-For: 6.6.6.6, 192.0.2.9, 10.2.2.2:99", "X-Original-Forwarded-Host: a.example", "X-Forwarded-Host: a.example",
			"X-Forwarded-Port: 80", "X-Forwarded-Proto: http", "X-Forwarded-Scheme: http", "X-Scheme: http", id,
		}, "192.0.2.9"},
		{"a friend with nothing to say", friend, nil, []string{
			"X-Forwarded-For: 10.0.0.1", "X-Real-IP: 10.0.0.1", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8443", "X-Forwarded-Proto: https", "X-Forwarded-Scheme: https", "X-Scheme: https", id,
		}, "10.0.0.1"},
		{"nonsense in the chain ends it", friend, []string{"X-Forwarded-For: 6.6.6.6, unknown, [2001:db8::1]:5", "X-Forwarded-Proto: ftp", "X-Request-ID: a b"}, []string{
			"X-Forwarded-For: 6.6.6.6, unknown, [2001:db8::1]:5, 10.0.0.1", "X-Real-IP: 2001:db8::1", "X-Original-Forwarded-For: 6.6.6.6, unknown, [2001:db8::1]:5", "X-Forwarded-Host: shop.example.com:8080",
			"X-Forwarded-Port: 8443", "X-Forwarded-Proto: https", "X-Forwarded-Scheme: https", "X-Scheme: https", id,
		}, "2001:db8::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ex := apply(NewForwarded(trusting), c.from, c.in...)
			var got []string
			for _, f := range ex.Request.Header.Fields() {
				got = append(got, string(f.Name)+": "+string(f.Value))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if got := ex.Request.Client.Addr().String(); got != c.client {
				t.Errorf("client %s, want %s", got, c.client)
			}
		})
	}
}

// TestForwardedHost: who is believed says which host upstreams are asked for, and whether the
// client has TLS.
func TestForwardedHost(t *testing.T) {
	const here = "shop.example.com:8080"
	f := NewForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	friend, stranger := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.7")
	for _, c := range []struct {
		peer      netip.Addr
		tls       bool
		lines     string
		host      string
		clientTLS bool
	}{
		{friend, false, "", here, false},
		{friend, true, "", here, true},
		{friend, false, "X-Forwarded-Host: a.example", "a.example", false},
		{friend, false, "X-Forwarded-Host:  a.example:444 , b.example|X-Forwarded-Proto: https", "a.example:444", true},
		{friend, true, "X-Forwarded-Host: a.example|X-Forwarded-Proto: http", "a.example", false},
		{friend, true, "X-Forwarded-Host: a example", here, true},
		{friend, true, "X-Forwarded-Host: , b.example|X-Forwarded-Proto: wss", here, true},
		{stranger, true, "X-Forwarded-Host: a.example|X-Forwarded-Proto: http", here, true},
		{stranger, false, "X-Forwarded-Host: a.example|X-Forwarded-Proto: https", here, false},
	} {
		r := apply(f, Connection{Peer: c.peer, TLS: c.tls, Port: []byte("80")}, strings.Split(c.lines, "|")...).Request
		if string(r.Host) != c.host || string(r.Header.Get("X-Forwarded-Host")) != c.host || r.TLS != c.clientTLS {
			t.Errorf("%+v: Host %s, X-Forwarded-Host %s, TLS %v", c, r.Host, r.Header.Get("X-Forwarded-Host"), r.TLS)
		}
	}
}

// Whatever a stranger writes, the upstream reads its real address, once.
func TestNobodyLies(t *testing.T) {
	names := []string{"X-Forwarded-For", "x_forwarded_for", "X-REAL-IP", "X_Real_IP", "X-Forwarded-Proto", "Accept", "Forwarded-For"}
	f := NewForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	rapid.Check(t, func(t *rapid.T) {
		var in []string
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			in = append(in, rapid.SampledFrom(names).Draw(t, "name")+": "+rapid.SampledFrom([]string{"10.0.0.9", "", "6.6.6.6,10.0.0.1"}).Draw(t, "value"))
		}
		ex := apply(f, Connection{Peer: netip.MustParseAddr("2001:db8::7"), Port: []byte("80")}, in...)
		seen := 0
		for _, field := range ex.Request.Header.Fields() {
			switch name := strings.ReplaceAll(strings.ToLower(string(field.Name)), "_", "-"); name {
			case "x-forwarded-for", "x-real-ip":
				if seen++; string(field.Value) != "2001:db8::7" {
					t.Fatalf("%q: the upstream reads %s: %s", in, name, field.Value)
				}
			}
		}
		if seen != 2 {
			t.Fatalf("%q: %d fields name the client, want 2", in, seen)
		}
	})
}

// TestTheFieldThatNamesTheClient may be one of those that are taken out.
func TestTheFieldThatNamesTheClient(t *testing.T) {
	friend := Connection{Peer: netip.MustParseAddr("10.0.0.1"), Port: []byte("80")}
	for _, c := range []struct{ field, line, peer, client string }{
		{"CF-Connecting-IP", "CF-Connecting-IP: 192.0.2.7", "10.0.0.1", "192.0.2.7"},
		{"X-Real-IP", "x-real-ip: 192.0.2.7", "10.0.0.1", "192.0.2.7"},
		{"X-Original-Forwarded-For", "X-Original-Forwarded-For: 6.6.6.6, 192.0.2.7", "10.0.0.1", "192.0.2.7"},
		{"X-Real-IP", "X-Forwarded-For: 192.0.2.7", "10.0.0.1", "10.0.0.1"},
		{"X-Real-IP", "X-Real-IP: 10.0.0.9", "192.0.2.8", "192.0.2.8"}, // a stranger is not believed
		// HAProxy adds a field of its own behind those that the client sent.
		{"X-Client-IP", "X-Client-IP: 10.9.9.9|X-Client-IP: 192.0.2.7", "10.0.0.1", "192.0.2.7"},
	} {
		f := NewForwarded(nil).With(&Front{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ForwardedFor: c.field})
		friend.Peer = netip.MustParseAddr(c.peer)
		ex := apply(f, friend, append(strings.Split(c.line, "|"), "Accept: */*")...)
		if got, told := ex.Request.Client.Addr().String(), string(ex.Request.Header.Get("X-Real-IP")); got != c.client || told != c.client {
			t.Errorf("%s, %q from %s: client %s, upstream told %s, want %s", c.field, c.line, c.peer, got, told, c.client)
		}
	}
}

// Proxies in a row make lists of what each of them saw. The first saw the client.
func TestClaimsOfProxiesInARow(t *testing.T) {
	f := NewForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	for _, c := range []struct {
		lines             string
		port              string // of the connection
		tls               bool
		proto, host, says string
	}{
		{"X-Forwarded-Proto: https,http", "8080", true, "https", "shop.example.com:8080", "8080"},
		{"X-Forwarded-Proto: https, https", "8080", true, "https", "shop.example.com:8080", "8080"},
		{"X-Forwarded-Proto: https|X-Forwarded-Proto: http", "8080", true, "https", "shop.example.com:8080", "8080"},
		{"X-Forwarded-Proto: http, https", "8080", false, "http", "shop.example.com:8080", "8080"},
		{"X-Forwarded-Proto: https|X-Forwarded-Host: a.example, b.example|X-Forwarded-Port: 443, 80", "80", true, "https", "a.example", "443"},
		// Who says nothing of the port does not mean that of plain HTTP.
		{"X-Forwarded-Proto: https", "80", true, "https", "shop.example.com:8080", "443"},
		{"X-Forwarded-Proto: http", "80", false, "http", "shop.example.com:8080", "80"},
	} {
		ex := apply(f, Connection{Peer: netip.MustParseAddr("10.0.0.1"), Port: []byte(c.port)}, strings.Split(c.lines, "|")...)
		h := &ex.Request.Header
		proto, host, port := string(h.Get("X-Forwarded-Proto")), string(h.Get("X-Forwarded-Host")), string(h.Get("X-Forwarded-Port"))
		if ex.Request.TLS != c.tls || proto != c.proto || host != c.host || port != c.says {
			t.Errorf("%s: TLS %v, upstream told %s, %s, %s; want %v, %s, %s, %s", c.lines, ex.Request.TLS, proto, host, port, c.tls, c.proto, c.host, c.says)
		}
	}
}

func TestForwardedAllocatesNothing(t *testing.T) {
	f := NewForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	c := Connection{Peer: netip.MustParseAddr("192.0.2.7"), Port: []byte("8080")}
	ex := &exchange.Exchange{}
	name, value := []byte("X-Forwarded-For"), []byte("6.6.6.6")
	pass := func() {
		ex.Reset()
		ex.Request.Host = value
		ex.Request.Header.AddBorrowed(name, value)
		f.Apply(ex, c, [2]uint64{1, 2})
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// A request's own ID is passed on up to 128 bytes, in the letters that logs bear.
func TestWhatMayBeAnID(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "a b": false, "a\x00": false, "é": false,
	} {
		if got := isID([]byte(value)); got != want {
			t.Errorf("isID of %d bytes %q is %v", len(value), value, got)
		}
	}
	for c := range 256 {
		want := c < 128 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=+/:", rune(c))
		if got := isID([]byte{byte(c)}); got != want {
			t.Errorf("isID(%q) is %v", rune(c), got)
		}
	}
}
