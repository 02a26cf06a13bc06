package proxy_test

import (
	"crypto/tls"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// Two certificates of a host, with keys of ECDSA and RSA, in two entries of one Ingress:
// each client is shown the one that it knows, and who knows both that of ECDSA.
func TestCertificatesOfTwoKinds(t *testing.T) {
	registry := prometheus.NewRegistry()
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.Registerer = true, registry })
	both := ingress("both", "both.example", "/", "web", number)
	both.Spec.TLS = []networkingv1.IngressTLS{
		{Hosts: []string{"both.example"}, SecretName: "rsa"}, {Hosts: []string{"both.example"}, SecretName: "ecdsa"},
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), both,
		certificate.RSA(t, "default/rsa", time.Now().Add(time.Hour), "both.example"),
		certificate.Secret(t, "default/ecdsa", time.Now().Add(3*time.Hour), "both.example"))
	addr := bound(p, true)
	eventually(t, "the route is served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("there are problems: %v", problems)
	}
	shown := func(config *tls.Config) string {
		config.InsecureSkipVerify, config.ServerName = true, "both.example"
		c, err := tls.Dial("tcp", addr, config)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	ecdsa := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	rsa := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	for _, c := range []struct {
		name   string
		config *tls.Config
		want   string
	}{
		{"TLS 1.3", &tls.Config{MinVersion: tls.VersionTLS13}, "default/ecdsa"},
		{"TLS 1.2", &tls.Config{MaxVersion: tls.VersionTLS12}, "default/ecdsa"},
		{"TLS 1.2, ECDSA alone", &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: ecdsa}, "default/ecdsa"},
		{"TLS 1.2, RSA alone", &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: rsa}, "default/rsa"},
		{"TLS 1.2, RSA alone, HTTP/2", &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: rsa, NextProtos: []string{"h2"}}, "default/rsa"},
	} {
		if got := shown(c.config); got != c.want {
			t.Errorf("%s: shown %s, want %s", c.name, got, c.want)
		}
	}
	t.Run("TLS 1.3, RSA alone", func(t *testing.T) { openSSL(t, addr, "rsa_pss_rsae_sha256", "CN = default/rsa") })
	t.Run("TLS 1.3, ECDSA alone", func(t *testing.T) { openSSL(t, addr, "ecdsa_secp256r1_sha256", "CN = default/ecdsa") })
	if left := expiryOf(t, registry, "both.example"); left < 3000 || left > 3600 {
		t.Errorf("the host's certificate ends in %v s, want the hour of the one that ends first", left)
	}
}

// openSSL shakes hands as a client that knows some signatures alone. Go's cannot leave
// any out.
func openSSL(t *testing.T, addr, signatures, want string) {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Error("openssl is not installed (Debian package openssl)")
		}
		t.Skip("openssl is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "openssl", "s_client", "-connect", addr, "-servername", "both.example", "-tls1_3", "-sigalgs", signatures, "-brief")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(strings.ReplaceAll(string(out), "CN=", "CN = "), want) {
		t.Errorf("want %s, %v: %s", want, err, out)
	}
}

// expiryOf is quayside_tls_certificate_expiry_seconds of a host.
func expiryOf(t *testing.T, metrics prometheus.Gatherer, host string) float64 {
	t.Helper()
	all, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "quayside_tls_certificate_expiry_seconds" && m.GetLabel()[0].GetValue() == host {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no certificate of %s", host)
	return 0
}
