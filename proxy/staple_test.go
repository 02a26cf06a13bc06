package proxy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// What a responder says of a certificate goes with the handshake, if enable-ocsp says
// so and it is good and signed by who may; and no handshake waits for it.
func TestEnableOCSP(t *testing.T) {
	root := certificate.Root(t, "root")
	var says atomic.Pointer[[]byte]
	asked := make(chan struct{}, 1000)
	hang := make(chan struct{})
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := ocsp.ParseRequest(body); err != nil {
			t.Errorf("what is asked is no request: %v", err)
		}
		asked <- struct{}{}
		said := says.Load()
		if said == nil {
			<-hang
			return
		}
		w.Header().Set("Content-Type", "application/ocsp-response")
		w.Write(*said)
	}))
	defer responder.Close()
	leaf := root.Client(t, pkix.Name{CommonName: "web"}, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage, c.OCSPServer = []string{"web.test"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []string{responder.URL}
	})
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap, o.FirstPause = snapshot.Key{Namespace: "default", Name: "wide"}, 10*time.Millisecond
	})
	ing := ingress("web", "web.test", "/", "web", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"web.test"}, SecretName: "web"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), ing, leaf.Secret(t, "default", "web", root), configMap("wide"))
	staple := func() []byte {
		c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: "web.test"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if s := c.ConnectionState().PeerCertificates[0].Subject; s.CommonName != "web" {
			return []byte(s.String())
		}
		return c.OCSPResponse()
	}
	eventually(t, "the certificate is shown", func() bool { return staple() == nil })
	select {
	case <-asked:
		t.Error("a responder was asked, though nothing asks for that")
	default:
	}
	files.Put(configMap("wide", "enable-ocsp", "true"))
	<-asked
	if s := staple(); s != nil { // while the responder hangs
		t.Errorf("%d bytes of nobody", len(s))
	}
	good := root.Status(t, leaf, root, ocsp.Good, time.Now().Add(time.Hour))
	says.Store(&good)
	close(hang)
	eventually(t, "the response goes with the handshake", func() bool { return bytes.Equal(staple(), good) })
	files.Put(configMap("wide"))
	eventually(t, "it does so no more", func() bool { return staple() == nil })
}
