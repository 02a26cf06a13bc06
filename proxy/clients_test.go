package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// known are clients of one authority, and some of others.
type known struct {
	root, ann, bob, near, far, late, server, stranger *certificate.Issued
}

func makeKnown(t *testing.T) *known {
	root := certificate.Root(t, "root")
	k := &known{
		root: root,
		ann:  root.Client(t, pkix.Name{CommonName: "ann", Organization: []string{"Shop"}}, nil),
		bob:  root.Client(t, pkix.Name{CommonName: "bob", Organization: []string{"CN=ann"}}, nil),
		late: root.Client(t, pkix.Name{CommonName: "late"}, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
		server: root.Client(t, pkix.Name{CommonName: "server"}, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}),
		stranger: certificate.Root(t, "root").Client(t, pkix.Name{CommonName: "ann"}, nil),
	}
	one := root.Authority(t, "one")
	k.near, k.far = one.Client(t, pkix.Name{CommonName: "near"}, nil), one.Authority(t, "two").Client(t, pkix.Name{CommonName: "far"}, nil)
	return k
}

// startClients serves the hosts of TestAuthTLS.
func startClients(t *testing.T, k *known) (*cluster.Files, *proxy.Proxy) {
	files, p := start(t, func(o *proxy.Options) {
		trusting(o)
		o.HTTP2 = true
	})
	backend := httptest.NewServer(listing())
	t.Cleanup(backend.Close)
	until := time.Now().Add(time.Hour)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(backend.URL, "http://")),
		certificate.Authorities("default", "ca", k.root.PEM()),
		certificate.Authorities("default", "revoking", k.root.PEM(), k.root.Revoking(t, until, k.bob)),
		certificate.Authorities("default", "bad", k.root.PEM(), []byte("no list")),
		certificate.Authorities("default", "empty", []byte("nothing")))
	with := func(pairs ...string) map[string]string {
		all := map[string]string{"auth-tls-secret": "default/ca"}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	files.Put(
		annotated("on", "on.test", with()),
		annotated("off", "off.test", with("auth-tls-verify-client", "off")),
		annotated("optional", "optional.test", with("auth-tls-verify-client", "optional")),
		annotated("noca", "noca.test", with("auth-tls-verify-client", "optional_no_ca")),
		annotated("deep", "deep.test", with("auth-tls-verify-depth", "2")),
		annotated("cn", "cn.test", with("auth-tls-match-cn", "CN=(ann|near)")),
		annotated("page", "page.test", with("auth-tls-error-page", "https://$host.errors.test/")),
		annotated("pass", "pass.test", with("auth-tls-pass-certificate-to-upstream", "true")),
		annotated("snippet", "snippet.test", with("auth-tls-verify-client", "optional", "configuration-snippet", "if ($ssl_client_verify != SUCCESS) { return 403; } proxy_set_header X-Who $ssl_client_s_dn;")),
		annotated("bare", "bare.test", map[string]string{"configuration-snippet": `add_header X-Verify "$ssl_client_verify<$ssl_client_s_dn>";`}),
		annotated("crl", "crl.test", with("auth-tls-secret", "default/revoking")),
		annotated("badcrl", "badcrl.test", with("auth-tls-secret", "default/bad")),
		annotated("missing", "missing.test", with("auth-tls-secret", "default/none")),
		annotated("empty", "empty.test", with("auth-tls-secret", "default/empty")),
		annotated("elsewhere", "elsewhere.test", with("auth-tls-secret", "kube-system/ca")),
		annotated("mode", "mode.test", with("auth-tls-verify-client", "perhaps")),
		annotated("wild", "*.wild.test", with()),
		annotated("redirects", "tls.test", with("force-ssl-redirect", "true")),
		annotated("satisfy", "satisfy.test", with("satisfy", "any", "allowlist-source-range", "0.0.0.0/0")),
		annotated("other", "on.test", map[string]string{"path": "/other"}),
		annotated("third", "on.test", with("path", "/third", "auth-tls-verify-client", "optional")),
		annotated("beside", "missing.test", map[string]string{"path": "/beside"}),
		annotated("plain", "plain.test", nil))
	return files, p
}

// by asks over TLS, with a certificate unless it is nil. sni may differ from host.
func by(t *testing.T, tr *http.Transport, sni, host, request string) (status int, said string) {
	t.Helper()
	lines := strings.Split(request, "\n")
	r, err := http.NewRequest("GET", "https://"+sni+lines[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header[name] = []string{value}
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var all strings.Builder
	resp.Header.Write(&all)
	return resp.StatusCode, all.String() + string(text)
}

// clientOf speaks TLS to addr, whatever it is asked for, and shows a certificate
// unless it is nil.
func clientOf(t *testing.T, addr string, http2 bool, with *certificate.Issued) *http.Transport {
	config := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	if with != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return with.TLS(), nil }
	}
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

type clientCase struct {
	key, host, request string
	with               *certificate.Issued
	status             int
	says, lacks        string
}

func clientCases(k *known) []clientCase {
	const forged = "/\nSsl-Client-Subject-Dn: CN=forged\nssl_client_verify: forged\nSSL-Client-Cert: forged"
	return []clientCase{
		{"auth-tls-secret", "on.test", "/", nil, 400, "no client certificate", ""},
		{"auth-tls-secret", "on.test", forged, k.ann, 200, "Ssl-Client-Subject-Dn: CN=ann,O=Shop\r\nSsl-Client-Verify: SUCCESS", "forged"},
		{"auth-tls-secret", "on.test", "/", k.ann, 200, "Ssl-Client-Issuer-Dn: CN=root\r\n", "Ssl-Client-Cert"},
		{"auth-tls-secret", "on.test", "/", k.stranger, 400, "not accepted", ""},
		{"auth-tls-secret", "on.test", "/", k.late, 400, "not accepted", ""},
		{"auth-tls-secret", "on.test", "/", k.server, 400, "not accepted", ""},
		{"auth-tls-secret", "on.test", "/third", nil, 200, "Ssl-Client-Verify: NONE", ""},
		{"auth-tls-secret", "on.test", "/other", nil, 200, "", "Ssl-Client"},
		{"auth-tls-secret", "on.test", "/other", k.ann, 200, "", "Ssl-Client"},
		{"auth-tls-secret", "missing.test", "/", k.ann, 503, "does not exist", ""},
		{"auth-tls-secret", "missing.test", "/beside", nil, 200, "", ""},
		{"auth-tls-secret", "empty.test", "/", k.ann, 503, "no certificate in ca.crt", ""},
		{"auth-tls-secret", "badcrl.test", "/", k.ann, 503, "a list in ca.crl", ""},
		{"auth-tls-secret", "elsewhere.test", "/", k.ann, 503, "another namespace", ""},
		{"auth-tls-secret", "a.wild.test", "/", k.ann, 200, "", ""},
		{"auth-tls-secret", "a.wild.test", "/", nil, 400, "", ""},
		{"auth-tls-secret", "crl.test", "/", k.ann, 200, "", ""},
		{"auth-tls-secret", "crl.test", "/", k.bob, 400, "", ""},
		{"auth-tls-secret", "crl.test", "/", k.near, 400, "", ""}, // whose issuer has no list
		{"auth-tls-secret", "satisfy.test", "/", nil, 400, "", ""},
		{"auth-tls-verify-client", "mode.test", "/", k.ann, 503, "none of on, off", ""},
		{"auth-tls-verify-client", "off.test", forged, k.ann, 200, "Ssl-Client-Verify: NONE", "forged"},
		{"auth-tls-verify-client", "optional.test", forged, nil, 200, "Ssl-Client-Verify: NONE", "forged"},
		{"auth-tls-verify-client", "optional.test", "/", k.ann, 200, "Ssl-Client-Verify: SUCCESS", ""},
		{"auth-tls-verify-client", "optional.test", "/", k.stranger, 400, "", ""},
		{"auth-tls-verify-client", "noca.test", "/", k.stranger, 200, "Ssl-Client-Verify: FAILED:unable to verify the first certificate", "SUCCESS"},
		{"auth-tls-verify-client", "noca.test", "/", k.ann, 200, "Ssl-Client-Verify: SUCCESS", ""},
		{"auth-tls-verify-client", "noca.test", "/", k.late, 400, "", ""},
		{"auth-tls-verify-client", "noca.test", "/", nil, 200, "Ssl-Client-Verify: NONE", ""},
		{"auth-tls-verify-client", "snippet.test", "/", k.ann, 200, "X-Who: CN=ann,O=Shop", ""},
		{"auth-tls-verify-client", "snippet.test", forged, nil, 403, "", ""},
		{"auth-tls-verify-client", "bare.test", forged, k.ann, 200, "X-Verify: NONE<>", ""},
		{"auth-tls-verify-depth", "on.test", "/", k.near, 200, "", ""},
		{"auth-tls-verify-depth", "on.test", "/", k.far, 400, "", ""},
		{"auth-tls-verify-depth", "deep.test", "/", k.far, 200, "", ""},
		{"auth-tls-match-cn", "cn.test", "/", k.ann, 200, "", ""},
		{"auth-tls-match-cn", "cn.test", "/", k.bob, 403, "", ""}, // who has CN=ann for an organization
		{"auth-tls-error-page", "page.test", "/", nil, 302, "Location: https://page.test.errors.test/", ""},
		{"auth-tls-error-page", "page.test", "/", k.stranger, 302, "", ""},
		{"auth-tls-pass-certificate-to-upstream", "pass.test", "/", k.ann, 200, "Ssl-Client-Cert: -----BEGIN%20CERTIFICATE-----%0A", ""},
	}
}

// TestAuthTLS asks for auth-tls-secret and its companions over real TLS, by both
// versions of HTTP.
func TestAuthTLS(t *testing.T) {
	k := makeKnown(t)
	files, p := startClients(t, k)
	addr := bound(p, true)
	eventually(t, "the routes are served", func() bool {
		code, _ := by(t, clientOf(t, addr, false, nil), "plain.test", "plain.test", "/")
		return code == 200
	})
	for _, c := range clientCases(k) {
		t.Run(c.key, func(t *testing.T) {
			for _, http2 := range []bool{false, true} {
				status, said := by(t, clientOf(t, addr, http2, c.with), c.host, c.host, c.request)
				if status != c.status || !strings.Contains(said, c.says) || c.lacks != "" && strings.Contains(said, c.lacks) {
					t.Errorf("%s%s, HTTP/2 %v: %d %q, want %d with %q and without %q", c.host, c.request, http2, status, said, c.status, c.says, c.lacks)
				}
			}
		})
	}
	t.Run("another host's connection", func(t *testing.T) {
		for _, sni := range []string{"optional.test", "plain.test", "127.0.0.1"} {
			for _, http2 := range []bool{false, true} {
				if status, said := by(t, clientOf(t, addr, http2, k.ann), sni, "on.test", "/"); status != 421 {
					t.Errorf("by %q, HTTP/2 %v: %d %s", sni, http2, status, said)
				}
			}
		}
		if status, said := by(t, clientOf(t, addr, false, k.ann), "on.test", "ON.test.:443", "/"); status != 200 {
			t.Errorf("the same host spelled otherwise: %d %s", status, said)
		}
	})
	t.Run("without TLS", func(t *testing.T) {
		http := bound(p, false)
		for _, c := range []struct {
			host, path string
			want       int
		}{
			{"on.test", "/", 400}, {"on.test", "/third", 200}, {"tls.test", "/", 308}, {"tls.test", "/.well-known/acme-challenge/x", 400},
			{"on.test", "/\nX-Forwarded-Proto: https", 400},
		} {
			if status, said := ask(t, http, c.host, c.path+"\nSsl-Client-Verify: SUCCESS"); status != c.want || strings.Contains(said, "SUCCESS") {
				t.Errorf("%s%s: %d %s, want %d", c.host, c.path, status, said, c.want)
			}
		}
	})
	t.Run("a new authority", func(t *testing.T) { newAuthority(t, files, addr, k) })
}

// newAuthority replaces the authority of connections and sessions that are there.
func newAuthority(t *testing.T, files *cluster.Files, addr string, k *known) {
	other := certificate.Root(t, "new")
	eve := other.Client(t, pkix.Name{CommonName: "eve"}, nil)
	var kept []*http.Transport
	for _, http2 := range []bool{false, true} {
		tr := clientOf(t, addr, http2, k.ann)
		kept = append(kept, tr)
		if status, said := by(t, tr, "on.test", "on.test", "/"); status != 200 {
			t.Fatal(status, said)
		}
	}
	files.Put(certificate.Authorities("default", "ca", other.PEM()))
	eventually(t, "it counts", func() bool {
		code, _ := by(t, clientOf(t, addr, false, eve), "on.test", "on.test", "/")
		return code == 200
	})
	for _, tr := range kept {
		for _, how := range []string{"the same connection", "a session that might be resumed"} {
			if status, said := by(t, tr, "on.test", "on.test", "/"); status != 400 {
				t.Errorf("by %s: %d %s", how, status, said)
			}
			tr.CloseIdleConnections()
		}
	}
}

// A host that begins to ask for certificates asks clients that have been there: no
// session from before is resumed, and a connection without one ends.
func TestClientCertificatesOfOldSessions(t *testing.T) {
	k := makeKnown(t)
	files, p := start(t, nil)
	backend := httptest.NewServer(listing())
	defer backend.Close()
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(backend.URL, "http://")),
		certificate.Authorities("default", "ca", k.root.PEM()), annotated("shop", "shop.test", nil))
	addr := bound(p, true)
	tr := clientOf(t, addr, false, k.ann)
	eventually(t, "the route is served", func() bool { code, _ := by(t, tr, "shop.test", "shop.test", "/"); return code == 200 })
	files.Put(annotated("shop", "shop.test", map[string]string{"auth-tls-secret": "ca"}))
	eventually(t, "a certificate is asked for", func() bool {
		code, _ := by(t, clientOf(t, addr, false, nil), "shop.test", "shop.test", "/")
		return code == 400
	})
	if status, said := by(t, tr, "shop.test", "shop.test", "/"); status != 400 || !strings.Contains(said, "no client certificate") {
		t.Errorf("by the connection from before: %d %s", status, said)
	}
	if status, said := by(t, tr, "shop.test", "shop.test", "/"); status != 200 {
		t.Errorf("by a new one: %d %s", status, said)
	}
}
