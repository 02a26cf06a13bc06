package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secret is the TLS Secret NAMESPACE/NAME with i, the authorities below the root, and
// the root.
func (i *Issued) Secret(t testing.TB, namespace, name string, root *Issued) *corev1.Secret {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	var chain bytes.Buffer
	for _, der := range i.path {
		pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	chain.Write(root.PEM())
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: chain.Bytes(), corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}
}

// Status is what i, or a responder in its place, says of a certificate by OCSP until
// some time: a status of package ocsp.
func (i *Issued) Status(t testing.TB, of, responder *Issued, status int, until time.Time) []byte {
	t.Helper()
	template := ocsp.Response{Status: status, SerialNumber: of.Certificate.SerialNumber, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until}
	if status == ocsp.Revoked {
		template.RevokedAt = time.Now().Add(-time.Minute)
	}
	if responder != i {
		template.Certificate = responder.Certificate
	}
	raw, err := ocsp.CreateResponse(i.Certificate, responder.Certificate, template, responder.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
