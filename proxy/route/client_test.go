package route

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/test/certificate"
)

// TestWhoIsAskedForCertificates: an Ingress asks for its own paths. In adopted
// classes what it asks holds for others of its namespace too, as it did in
// ingress-nginx, and for nobody else's.
func TestWhoIsAskedForCertificates(t *testing.T) {
	c := newCrime().others
	add := func(namespace, name, class string, with map[string]string, paths ...string) {
		ing := fuzzIngress(namespace, "clients.test", with, paths...)
		ing.Name, ing.Spec.IngressClassName = name, &class
		if namespace == "n" && class == "nginx" && name == "default" {
			ing.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service}
		}
		c = c.With(ing)
	}
	secret := map[string]string{NginxPrefix + "auth-tls-secret": "ca"}
	c = c.With(certificate.Authorities("n", "ca", certificate.Root(t, "root").PEM()))
	add("n", "guarded", "nginx", secret, "/admin")
	add("n", "beside", "nginx", nil, "/beside", "/.well-known/acme-challenge/token")
	add("n", "default", "nginx", nil, "/x")
	add("n", "off", "nginx", map[string]string{NginxPrefix + "auth-tls-secret": "ca", NginxPrefix + "auth-tls-verify-client": "off"}, "/off")
	add("n", "ours", ingressclass.DefaultName, nil, "/ours")
	add("evil", "theirs", "nginx", nil, "/theirs")
	table := Compile(c, nil, crimeOptions())
	got := map[string]bool{}
	for r := range table.Routes() {
		if r.Host == "clients.test" {
			got[r.Path] = r.Filters != nil && r.Filters.Clients.Asks()
			if got[r.Path] != r.guards() {
				t.Errorf("%s asks %v, guards %v", r.Path, got[r.Path], r.guards())
			}
		}
	}
	want := map[string]bool{"/admin": true, "/beside": true, "/.well-known/acme-challenge/token": false, "/x": true, "": true, "/off": false, "/ours": false, "/theirs": false}
	if !maps.Equal(got, want) {
		t.Errorf("asked are %v, want %v", got, want)
	}
}

// TestNobodyIsAsked: what an Ingress of an adopted class says that asks for no certificate holds
// for others of its namespace, too, as in ingress-nginx: backends are told that there is none, and
// nobody has the subject that is wanted. An Ingress that asks comes before it.
func TestNobodyIsAsked(t *testing.T) {
	off := map[string]string{NginxPrefix + "auth-tls-secret": "ca", NginxPrefix + "auth-tls-verify-client": "off"}
	named := maps.Clone(off)
	named[NginxPrefix+"auth-tls-match-cn"] = "CN=good"
	for _, c := range []struct {
		name           string
		first, second  map[string]string
		asked, guarded bool
	}{
		{"off", off, nil, false, false},
		{"off, with a subject", named, nil, false, true},
		{"another asks", off, map[string]string{NginxPrefix + "auth-tls-secret": "ca"}, true, true},
	} {
		cluster := newCrime().others.With(certificate.Authorities("n", "ca", certificate.Root(t, "root").PEM()))
		for i, given := range []map[string]string{c.first, c.second, nil} {
			ing, class := fuzzIngress("n", "clients.test", given, fmt.Sprint("/", i)), "nginx"
			ing.Name, ing.Spec.IngressClassName = fmt.Sprint("i", i), &class
			cluster = cluster.With(ing)
		}
		r, _ := Compile(cluster, nil, crimeOptions()).Match(&exchange.Request{Host: []byte("clients.test"), Path: []byte("/2")})
		if r.Filters == nil || r.Filters.Clients == nil || r.Filters.Clients.Asks() != c.asked || r.guards() != c.guarded || r.Closed != "" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestAskedInVain: where it is not understood which certificates an Ingress of an adopted class
// asks for, those that share that are as closed as its own paths, and told. What else closes it
// keeps nobody from asking.
func TestAskedInVain(t *testing.T) {
	root := certificate.Root(t, "root").PEM()
	for _, test := range []struct {
		name    string
		with    map[string]string
		unclear bool
	}{
		{"no Secret", map[string]string{"auth-tls-secret": "none"}, true},
		{"no authority", map[string]string{"auth-tls-secret": "empty"}, true},
		{"a pattern of PCRE", map[string]string{"auth-tls-secret": "ca", "auth-tls-match-cn": "CN=(?=a)"}, true},
		{"no mode", map[string]string{"auth-tls-secret": "ca", "auth-tls-verify-client": "sometimes"}, true},
		{"no name of a Secret", map[string]string{"auth-tls-verify-client": "on"}, true},
		{"closed by another option", map[string]string{"auth-tls-secret": "ca", "auth-type": "digest"}, false},
	} {
		c := newCrime().others.With(certificate.Authorities("n", "ca", root)).With(certificate.Authorities("n", "empty", nil))
		add := func(namespace, name string, with map[string]string) {
			given := map[string]string{}
			for key, value := range with {
				given[NginxPrefix+key] = value
			}
			ing := fuzzIngress(namespace, "clients.test", given, "/"+name)
			class := "nginx"
			ing.Name, ing.Spec.IngressClassName = name, &class
			c = c.With(ing)
		}
		add("n", "asks", test.with)
		add("n", "beside", nil)
		add("n", "itself", map[string]string{"auth-tls-secret": "ca"})
		add("evil", "theirs", nil)
		table := Compile(c, nil, crimeOptions())
		for r := range table.Routes() {
			switch asks := r.Filters != nil && r.Filters.Clients.Asks(); r.Path {
			case "/asks":
				if r.Closed == "" {
					t.Errorf("%s: it is not closed", test.name)
				}
			case "/beside":
				if !asks || r.Closed != "" != test.unclear || r.Backend < 0 != test.unclear {
					t.Errorf("%s: beside it clients are asked %v, closed %q", test.name, asks, r.Closed)
				}
			case "/itself":
				if !asks || r.Closed != "" || isUnclear(r.Filters.Clients) {
					t.Errorf("%s: who asks itself asks %v", test.name, asks)
				}
			case "/theirs":
				if asks {
					t.Errorf("%s: clients of another namespace are asked", test.name)
				}
			}
		}
		told := slices.ContainsFunc(table.Problems, func(p snapshot.Problem) bool {
			return p.Object.Name == "beside" && p.Reason == RouteClosed && strings.Contains(p.Message, "n/asks")
		})
		if told != test.unclear {
			t.Errorf("%s: told is %v: %v", test.name, told, table.Problems)
		}
	}
}

// TestAskedAuthorities: clients are asked where any request of the server name may
// need a certificate, and shown the authorities where there is one choice of them.
func TestAskedAuthorities(t *testing.T) {
	root, other := certificate.Root(t, "root"), certificate.Root(t, "other")
	c := newCrime().others.With(certificate.Authorities("n", "ca", root.PEM())).With(certificate.Authorities("n", "ca2", other.PEM()))
	add := func(name, host string, with ...string) {
		given := map[string]string{}
		for i := 0; i < len(with); i += 2 {
			given[NginxPrefix+with[i]] = with[i+1]
		}
		ing := fuzzIngress("n", host, given, "/"+name)
		ing.Name = name
		c = c.With(ing)
	}
	add("one", "one.test", "auth-tls-secret", "ca")
	add("open", "one.test")
	add("two", "two.test", "auth-tls-secret", "ca")
	add("deux", "two.test", "auth-tls-secret", "ca2")
	add("wild", "*.wild.test", "auth-tls-secret", "ca")
	add("below", "a.wild.test")
	add("both", "b.wild.test", "auth-tls-secret", "ca2")
	add("any", "any.test", "auth-tls-secret", "ca", "auth-tls-verify-client", "optional_no_ca")
	add("off", "off.test", "auth-tls-secret", "ca", "auth-tls-verify-client", "off")
	add("bad", "bad.test", "auth-tls-secret", "none")
	table := Compile(c, nil, crimeOptions())
	pool := x509.NewCertPool()
	pool.AddCert(root.Certificate)
	type answer struct {
		asked bool
		pool  *x509.CertPool
	}
	check := func(table *Table, wants map[string]answer) {
		t.Helper()
		for name, want := range wants {
			authorities, asked := table.ClientCAs(name)
			if asked != want.asked || (authorities == nil) != (want.pool == nil) || authorities != nil && !authorities.Equal(want.pool) {
				t.Errorf("%q: asked %v for %v", name, asked, authorities)
			}
		}
	}
	check(table, map[string]answer{
		"one.test": {true, pool}, "ONE.test.": {true, pool}, "two.test": {true, nil}, "a.wild.test": {true, pool}, "b.wild.test": {true, nil},
		"c.wild.test": {true, pool}, "wild.test": {}, "any.test": {true, nil}, "off.test": {}, "bad.test": {}, "nothing.test": {}, "": {},
	})
	if !slices.ContainsFunc(table.Problems, func(p snapshot.Problem) bool { return strings.Contains(p.Message, "n/none does not exist") }) {
		t.Errorf("nobody is told of the missing Secret: %v", table.Problems)
	}
	add("every", "", "auth-tls-secret", "ca") // whatever the host is, a request may be for it
	check(Compile(c, nil, crimeOptions()), map[string]answer{
		"nothing.test": {true, pool}, "": {true, pool}, "off.test": {true, pool}, "one.test": {true, nil}, "any.test": {true, nil},
	})
}
