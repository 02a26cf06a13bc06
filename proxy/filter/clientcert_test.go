package filter

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/test/certificate"
)

// asking returns the filter of c, whose only root is given.
func asking(c ClientCert, root *certificate.Issued) Filter {
	c.Roots = x509.NewCertPool()
	c.Roots.AddCert(root.Certificate)
	c.Depth = max(c.Depth, 1)
	return c.filter(Host{}, Tools{})
}

func crl(t *testing.T, der []byte) *CRL {
	t.Helper()
	c, err := NewCRL(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shows is a request for a host by a connection that was made for it.
func shows(t *testing.T, client *certificate.Issued, now time.Time) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Request.Host, ex.Request.Path, ex.Request.TLS, ex.Request.Received = []byte("a.test"), []byte("/"), true, now
	ex.Request.Handshake = exchange.NewHandshake("a.test", client.Chain(t))
	return ex
}

// Revocation lists count for as long as they are good, and every issuer needs one.
func TestRevocation(t *testing.T) {
	now := time.Now()
	soon := now.Add(10 * time.Minute)
	root := certificate.Root(t, "root")
	sub := root.Authority(t, "sub")
	ann, bob, low := root.Client(t, pkix.Name{CommonName: "ann"}, nil), root.Client(t, pkix.Name{CommonName: "bob"}, nil), sub.Client(t, pkix.Name{CommonName: "low"}, nil)
	other := certificate.Root(t, "root") // of the same name, with another key
	for name, c := range map[string]struct {
		lists  [][]byte
		client *certificate.Issued
		after  time.Duration
		passes bool
	}{
		"not on the list":                  {[][]byte{root.Revoking(t, soon, bob)}, ann, 0, true},
		"on the list":                      {[][]byte{root.Revoking(t, soon, bob)}, bob, 0, false},
		"on the second list":               {[][]byte{sub.Revoking(t, soon), root.Revoking(t, soon, bob)}, bob, 0, false},
		"an empty list":                    {[][]byte{root.Revoking(t, soon)}, ann, 0, true},
		"a list that has expired":          {[][]byte{root.Revoking(t, soon)}, ann, 11 * time.Minute, false},
		"a list of the future":             {[][]byte{root.Revoking(t, soon)}, ann, -2 * time.Hour, false},
		"a list by another":                {[][]byte{other.Revoking(t, soon)}, ann, 0, false},
		"an issuer without one":            {[][]byte{root.Revoking(t, soon)}, low, 0, false},
		"each issuer with one":             {[][]byte{root.Revoking(t, soon), sub.Revoking(t, soon)}, low, 0, true},
		"an issuer that is revoked itself": {[][]byte{root.Revoking(t, soon, sub), sub.Revoking(t, soon)}, low, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var lists []*CRL
			for _, der := range c.lists {
				lists = append(lists, crl(t, der))
			}
			ex := shows(t, c.client, now.Add(c.after))
			if passes := asking(ClientCert{CRLs: lists}, root).Request(ex); passes != c.passes || !passes && ex.Response.Status != 400 {
				t.Errorf("passes %v, %d", passes, ex.Response.Status)
			}
		})
	}
}

// What was good does not stay so on a connection after a list has ended.
func TestJudgementExpires(t *testing.T) {
	now := time.Now()
	root := certificate.Root(t, "root")
	f := asking(ClientCert{CRLs: []*CRL{crl(t, root.Revoking(t, now.Add(10*time.Minute)))}}, root)
	ex := shows(t, root.Client(t, pkix.Name{CommonName: "ann"}, nil), now)
	if !f.Request(ex) {
		t.Fatal("is refused from the beginning")
	}
	ex.Request.Received = now.Add(11 * time.Minute)
	if f.Request(ex) {
		t.Error("passes by a list that has ended")
	}
}

// Nor does one whose issuer's own certificate ends before it.
func TestJudgementExpiresWithAnIssuer(t *testing.T) {
	now := time.Now()
	root := certificate.Root(t, "root")
	client := root.Authority(t, "ends in an hour").Client(t, pkix.Name{CommonName: "ann"}, func(c *x509.Certificate) { c.NotAfter = now.Add(3 * time.Hour) })
	f := asking(ClientCert{}, root)
	ex := shows(t, client, now)
	if !f.Request(ex) {
		t.Fatal("is refused from the beginning")
	}
	ex.Request.Received = now.Add(61 * time.Minute)
	if f.Request(ex) {
		t.Error("passes by an issuer that has ended")
	}
}

// A request without TLS needs no certificate if it is sent to https, which the path decides that
// its route was found by, whatever a script has made of it since.
func TestNoCertificateOnTheWayToHTTPS(t *testing.T) {
	clients := &ClientCert{Mode: ClientRequired, Roots: x509.NewCertPool(), Depth: 1}
	chain := Compile(&Settings{Clients: clients}, Host{ToTLS: func(path []byte) bool { return string(path) != "/plain" }}, tools())
	for _, c := range []struct {
		routed, path string
		status       int
	}{{"/a", "/a", 308}, {"/a", "/plain", 308}, {"/plain", "/plain", 400}, {"/plain", "/a", 400}} {
		ex := &exchange.Exchange{}
		ex.Request.Host, ex.Request.Routed, ex.Request.Path = []byte("a.test"), []byte(c.routed), []byte(c.path)
		if chain.Request(ex) || ex.Response.Status != c.status {
			t.Errorf("%s, now %s: %d and not %d", c.routed, c.path, ex.Response.Status, c.status)
		}
	}
}

// A list that is for some certificates only is none that could be trusted to name
// all.
func TestPartialRevocationListsAreRefused(t *testing.T) {
	root := certificate.Root(t, "root")
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 0}}}}
	key, _ := root.TLS().PrivateKey.(crypto.Signer)
	der, err := x509.CreateRevocationList(rand.Reader, list, root.Certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{der, nil, []byte("x"), der[:len(der)-1]} {
		if _, err := NewCRL(data); err == nil {
			t.Errorf("%x is taken", data)
		}
	}
}

func TestDepth(t *testing.T) {
	root := certificate.Root(t, "root")
	chain := []*certificate.Issued{root}
	for range 4 {
		chain = append(chain, chain[len(chain)-1].Authority(t, "between"))
	}
	for between, by := range chain {
		client := by.Client(t, pkix.Name{CommonName: "ann"}, nil)
		for depth := 1; depth <= 4; depth++ {
			if passes := asking(ClientCert{Depth: depth}, root).Request(shows(t, client, time.Now())); passes != (between <= depth) {
				t.Errorf("with %d between and depth %d: %v", between, depth, passes)
			}
		}
	}
}

// Requests of one connection are judged once for each ClientCert, without
// allocations from then on.
func TestJudgementsAreRemembered(t *testing.T) {
	root, stranger := certificate.Root(t, "root"), certificate.Root(t, "other")
	ann := root.Client(t, pkix.Name{CommonName: "ann"}, nil)
	ex := shows(t, ann, time.Now())
	good, bad := asking(ClientCert{}, root), asking(ClientCert{}, stranger)
	for range 3 {
		if !good.Request(ex) || bad.Request(ex) {
			t.Fatal("one judgement is taken for another")
		}
	}
	fields := func() (all []string) {
		for _, f := range ex.Request.Header.Fields() {
			all = append(all, string(f.Name)+": "+string(f.Value))
		}
		return all
	}
	ex.Request.Header.Add("SSL_Client-Verify", "forged")
	good.Request(ex)
	if want := []string{"ssl-client-verify: SUCCESS", "ssl-client-subject-dn: CN=ann", "ssl-client-issuer-dn: CN=root"}; !slices.Equal(fields(), want) {
		t.Errorf("the upstream is sent %q, want %q", fields(), want)
	}
	request, handshake := ex.Request, ex.Request.Handshake
	allocs := testing.AllocsPerRun(100, func() {
		ex.Reset()
		header := ex.Request.Header
		ex.Request = request
		ex.Request.Header, ex.Request.Handshake = header, handshake
		good.Request(ex)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A request that a guard judges for another route's sake tells the upstream
// nothing.
func TestGuardTellsNothing(t *testing.T) {
	root := certificate.Root(t, "root")
	roots := x509.NewCertPool()
	roots.AddCert(root.Certificate)
	c := &ClientCert{Roots: roots, Depth: 1}
	ex := shows(t, root.Client(t, pkix.Name{CommonName: "ann"}, nil), time.Now())
	if !GuardsOf(&Settings{Clients: c}, Tools{}).Request(ex) || len(ex.Request.Header.Fields()) != 0 {
		t.Errorf("%d, %d fields", ex.Response.Status, len(ex.Request.Header.Fields()))
	}
	ex.Request.Handshake = nil
	if GuardsOf(&Settings{Clients: c, SatisfyAny: true}, Tools{}).Request(ex) {
		t.Error("lets pass without a certificate")
	}
	if GuardsOf(nil, Tools{}) != nil || (&Settings{Clients: &ClientCert{Mode: ClientOff}}).Guarded() {
		t.Error("guards where nothing is asked for")
	}
	off := &Settings{Clients: &ClientCert{Mode: ClientOff, Subject: regexp.MustCompile("CN=ann")}}
	if !off.Guarded() || GuardsOf(off, Tools{}).Request(ex) || ex.Response.Status != 403 {
		t.Error("lets pass without the subject")
	}
}

func TestReasons(t *testing.T) {
	root := certificate.Root(t, "root")
	self := certificate.Root(t, "self")
	ex := shows(t, self.Client(t, pkix.Name{CommonName: "x\r\ny"}, nil), time.Now())
	f := asking(ClientCert{Mode: ClientUnverified}, root)
	if !f.Request(ex) || string(ex.Request.Header.Get("ssl-client-verify")) != "FAILED:unable to verify the first certificate" ||
		!strings.HasPrefix(string(ex.Request.Header.Get("ssl-client-subject-dn")), `CN=x\0D\0A`) {
		t.Errorf("%d %q", ex.Response.Status, ex.Request.Header.Fields())
	}
	ex.Request.Handshake = exchange.NewHandshake("a.test", []*x509.Certificate{self.Certificate})
	if !f.Request(ex) || string(ex.Request.Header.Get("ssl-client-verify")) != "FAILED:self-signed certificate" {
		t.Errorf("%d %q", ex.Response.Status, ex.Request.Header.Fields())
	}
}
