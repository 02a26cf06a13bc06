package stapler

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ocsp"

	"quayside.io/test/certificate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func leafOf(t testing.TB, root *certificate.Issued, responder string) *certificate.Issued {
	return root.Client(t, pkix.Name{CommonName: "web"}, func(c *x509.Certificate) {
		c.ExtKeyUsage, c.OCSPServer = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []string{responder}
	})
}

// pair is a certificate as it comes out of a Secret.
func pair(t testing.TB, leaf, root *certificate.Issued) *tls.Certificate {
	s := leaf.Secret(t, "n", "s", root)
	c, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestResponses(t *testing.T) {
	root, other := certificate.Root(t, "root"), certificate.Root(t, "root")
	leaf := leafOf(t, root, "http://responder.test/")
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	signs := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} }
	delegate := root.Client(t, pkix.Name{CommonName: "responder"}, signs)
	late := root.Client(t, pkix.Name{CommonName: "late"}, func(c *x509.Certificate) { signs(c); c.NotAfter = time.Now().Add(-time.Minute) })
	for _, c := range []struct {
		what string
		raw  []byte
		says string // of the error; empty: it is good
	}{
		{"good", root.Status(t, leaf, root, ocsp.Good, until), ""},
		{"by a delegate", root.Status(t, leaf, delegate, ocsp.Good, until), ""},
		{"nonsense", []byte("nonsense"), "asn1"},
		{"a refusal", ocsp.TryLaterErrorResponse, "try later"},
		{"of another authority", other.Status(t, leaf, other, ocsp.Good, until), ""},
		{"of another certificate", root.Status(t, delegate, root, ocsp.Good, until), "no response matching"},
		{"unknown", root.Status(t, leaf, root, ocsp.Unknown, until), "does not know"},
		{"revoked", root.Status(t, leaf, root, ocsp.Revoked, until), "revoked"},
		{"over", root.Status(t, leaf, root, ocsp.Good, time.Now().Add(-time.Second)), "for the time"},
		{"by who may not", root.Status(t, leaf, leaf, ocsp.Good, until), "is not for that"},
		{"by who has expired", root.Status(t, leaf, late, ocsp.Good, until), "expired"},
	} {
		if c.what == "of another authority" {
			c.says = "x509"
		}
		got, err := read(c.raw, leaf.Certificate, root.Certificate, time.Now())
		if c.says == "" {
			if err != nil || !got.until.Equal(until) || !bytes.Equal(got.raw, c.raw) {
				t.Errorf("%s: %v until %v", c.what, err, got.until)
			}
			continue
		}
		if err == nil || got.raw != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
		if got.revoked != (c.what == "revoked") {
			t.Errorf("%s: revoked %v", c.what, got.revoked)
		}
	}
}

// What is learnt from one question to the next.
func TestLearn(t *testing.T) {
	root := certificate.Root(t, "root")
	c := pair(t, leafOf(t, root, "http://responder.test/"), root)
	s := New(Options{})
	s.Set([]*tls.Certificate{c, nil, {}, pair(t, leafOf(t, root, ""), root)})
	if len(s.entries) > 2 {
		t.Errorf("%d certificates are asked for", len(s.entries))
	}
	name, now := idOf(c), time.Now()
	failed := errors.New("no answer")
	if s.With(c) != c || s.With(nil) != nil {
		t.Error("a response of nobody")
	}
	wait := func() time.Duration { return s.entries[name].due.Sub(now) }
	for i, step := range []struct {
		got     response
		err     error
		stapled string
		wait    time.Duration
	}{
		{response{}, failed, "", time.Minute},
		{response{}, failed, "", 2 * time.Minute},
		{response{raw: []byte("one"), until: now.Add(4 * time.Hour)}, nil, "one", 2 * time.Hour},
		{response{}, failed, "one", time.Minute},
		{response{revoked: true}, failed, "", 2 * time.Minute},
		{response{raw: []byte("brief"), until: now.Add(-time.Second)}, nil, "", time.Minute},
		{response{raw: []byte("two"), until: now.Add(time.Hour)}, nil, "two", 30 * time.Minute},
	} {
		s.learn(name, step.got, step.err, now)
		if got := s.With(c); string(got.OCSPStaple) != step.stapled || wait() != step.wait || c.OCSPStaple != nil {
			t.Errorf("step %d: %q for %v, want %q for %v", i, got.OCSPStaple, wait(), step.stapled, step.wait)
		}
	}
	again := *c // the same in another value, as after a change of all routes
	s.Set([]*tls.Certificate{&again})
	if string(s.With(&again).OCSPStaple) != "two" || s.With(c) != c {
		t.Error("a certificate in another value has another response")
	}
	s.Set(nil)
	s.learn(name, response{raw: []byte("late"), until: now.Add(time.Hour)}, nil, now)
	if s.With(&again) != &again {
		t.Error("a response for what is not wanted")
	}
}

// A responder cannot lead us where we may not go, nor make us read or wait for ever.
func TestHostileResponders(t *testing.T) {
	root := certificate.Root(t, "root")
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer away.Close()
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		case "/huge":
			w.Header().Set("Content-Type", "application/ocsp-response")
			w.Write(make([]byte, maxResponse+1))
		case "/page":
			w.Write([]byte("hello"))
		}
	}))
	defer responder.Close()
	s := New(Options{})
	for path, says := range map[string]string{"/redirect": "answered 307", "/huge": "longer than", "/page": "text/plain"} {
		if _, err := s.fetch(t.Context(), pair(t, leafOf(t, root, responder.URL+path), root)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	strict := New(Options{Refuse: func(a netip.Addr) string {
		if a.IsLoopback() {
			return "loopback is refused"
		}
		return ""
	}})
	for _, at := range []string{responder.URL, strings.Replace(responder.URL, "127.0.0.1", "localhost", 1)} {
		if _, err := strict.fetch(t.Context(), pair(t, leafOf(t, root, at), root)); err == nil || !strings.Contains(err.Error(), "loopback is refused") {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, at := range []string{"ldap://responder.test/", "http://", "file:///etc/passwd", "http://me@responder.test/", "%"} {
		if _, err := s.fetch(t.Context(), pair(t, leafOf(t, root, at), root)); err == nil || !strings.Contains(err.Error(), "no address of http") {
			t.Errorf("%s: %v", at, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	root := certificate.Root(f, "root")
	leaf := leafOf(f, root, "http://responder.test/")
	f.Add(root.Status(f, leaf, root, ocsp.Good, time.Now().Add(time.Hour)))
	f.Add(ocsp.UnauthorizedErrorResponse)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := read(raw, leaf.Certificate, root.Certificate, time.Now()); (err == nil) != (got.raw != nil) {
			t.Errorf("%v with %d bytes", err, len(got.raw))
		}
	})
}
