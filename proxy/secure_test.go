package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// What a route says of TLS towards its backend is what a handshake meets; a
// Secret that is missing or of no use never makes it more trusting.
func TestUpstreamTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	leaf := server.TLS.Certificates[0].Certificate[0]
	vouches := &corev1.Secret{Data: map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})}}
	named := snapshot.Key{Namespace: "a", Name: "s"}
	for _, c := range []struct {
		name   string
		tls    route.UpstreamTLS
		secret *corev1.Secret
		fails  string // part of the handshake's error
		wrong  string // part of what is said of the Secret
		sni    string
	}{
		{"not verified", route.UpstreamTLS{}, nil, "", "", ""},
		{"name sent", route.UpstreamTLS{Name: "x.example", SendName: true}, nil, "", "", "x.example"},
		{"verified", route.UpstreamTLS{Verify: true, Name: "example.com", Secret: named}, vouches, "", "", ""},
		{"another name", route.UpstreamTLS{Verify: true, Name: "example.org", Secret: named}, vouches, "example.org", "", ""},
		{"the Service's name", route.UpstreamTLS{Verify: true, Secret: named}, vouches, "web.a.svc", "", ""},
		{"authorities of the system", route.UpstreamTLS{Verify: true, Name: "example.com"}, nil, "unknown authority", "", ""},
		{"Secret missing", route.UpstreamTLS{Verify: true, Name: "example.com", Secret: named}, nil, "unknown authority", "does not exist", ""},
		{"authorities unreadable", route.UpstreamTLS{Verify: true, Name: "example.com", Secret: named},
			&corev1.Secret{Data: map[string][]byte{"ca.crt": []byte("x")}}, "unknown authority", "no certificate", ""},
		{"our certificate unreadable", route.UpstreamTLS{Secret: named},
			&corev1.Secret{Data: map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")}}, "", "of no use", ""},
		{"other ciphers", route.UpstreamTLS{MaxVersion: tls.VersionTLS12, Ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256"}, nil, "handshake failure", "", ""},
		{"the ciphers", route.UpstreamTLS{MaxVersion: tls.VersionTLS12, Ciphers: "ECDHE-RSA-AES128-GCM-SHA256"}, nil, "", "", ""},
		{"too new", route.UpstreamTLS{MaxVersion: tls.VersionTLS11}, nil, "no supported versions", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tls.On = true
			config, err := upstreamTLS(route.Backend{Service: snapshot.Key{Namespace: "a", Name: "web"}, TLS: c.tls}, c.secret)
			if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("of the Secret it says %v, want %q", err, c.wrong)
			}
			raw, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, config)
			defer conn.Close()
			err = conn.Handshake()
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("the handshake says %v, want %q", err, c.fails)
			}
			if config.ServerName != c.sni {
				t.Errorf("the name sent is %q, want %q", config.ServerName, c.sni)
			}
		})
	}
}

// The depth counts the authorities between a certificate and one that is trusted.
func TestUpstreamVerifyDepth(t *testing.T) {
	root := certificate.Root(t, "root")
	below := root.Authority(t, "one").Authority(t, "two").Client(t, pkix.Name{}, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"web.test"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root.PEM())
	shown := tls.ConnectionState{PeerCertificates: below.Chain(t)}
	for depth, fails := range []bool{true, true, false, false} {
		if err := verifyPeer(shown, "web.test", roots, route.UpstreamTLS{LimitDepth: true, MaxDepth: depth}); (err != nil) != fails {
			t.Errorf("two authorities between, %d allowed: %v", depth, err)
		}
	}
	if err := verifyPeer(shown, "web.test", roots, route.UpstreamTLS{}); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
