package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/test/certificate"
)

// issue makes the certificates of clients, and the Secret with the authority of most of them.
func (w *ingressWorld) issue() {
	root := certificate.Root(w.t, "root")
	w.root = root
	below := root.Authority(w.t, "below")
	of := func(by *certificate.Issued, name string, until time.Duration) *tls.Certificate {
		return by.Client(w.t, pkix.Name{CommonName: name, Organization: []string{"Some, Inc."}}, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(until) }).TLS()
	}
	w.certificates = map[string]*tls.Certificate{
		"": {}, "good": of(root, "good", time.Hour), "deep": of(below, "deep", time.Hour), "deeper": of(below.Authority(w.t, "further"), "deeper", time.Hour),
		"late": of(root, "late", -time.Minute), "strange": of(certificate.Root(w.t, "strange"), "good", time.Hour),
	}
	w.ofPods = below.Client(w.t, pkix.Name{CommonName: "pod"}, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"pod.example"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}).TLS()
	trusted := certificate.Authorities("default", "authorities", root.PEM())
	w.add("v1", "Secret", trusted)
	own := root.Client(w.t, pkix.Name{CommonName: "proxy"}, nil).Secret(w.t, "default", "ours", root)
	own.Data["ca.crt"] = root.PEM()
	w.add("v1", "Secret", own)
	trusted.UID, own.UID = "2", "3"
}

// drawClients draws an Ingress that asks for certificates, and one that says nothing of that.
func (w *ingressWorld) drawClients(host string) {
	options := w.draw(3, []string{"auth-tls-verify-client", "on", "optional", "optional_no_ca", "off"}, []string{"auth-tls-verify-depth", "1", "2", "3"}, []string{"auth-tls-pass-certificate-to-upstream", "true"},
		[]string{"auth-tls-error-page", "http://away.example/denied"}, []string{"auth-tls-match-cn", "CN=good", "CN=(good|deep)"}, []string{"whitelist-source-range", "10.0.0.0/8"})
	options["auth-tls-secret"] = "default/authorities"
	w.ingress(host, options, true, rule{"/", networkingv1.PathTypePrefix}, rule{"/a", networkingv1.PathTypeExact})
	w.ingress(host, nil, false, rule{"/b", networkingv1.PathTypePrefix})
	first := len(w.requests)
	w.ask(host, true, []string{"/", "/a", "/b", "/b/c?x=1"}, []string{"Ssl-Client-Verify", "SUCCESS"}, []string{"Ssl-Client-Subject-Dn", "CN=forged"})
	for i := range w.requests[first:] {
		r := &w.requests[first+i]
		r.as, r.strict = pick(w.dice, "", "good", "deep", "deeper", "late", "strange"), false
		r.tls = true // without it who needs a certificate comes in there, where nothing redirects
	}
}
