// Package certificate makes TLS Secrets for tests.
package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secret makes a TLS Secret with a certificate for hosts that signs itself and
// is valid for the year before until. key is NAMESPACE/NAME of the Secret and
// the common name of the certificate.
func Secret(t testing.TB, key string, until time.Time, hosts ...string) *corev1.Secret {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return secretWith(t, private, key, until, hosts)
}

// RSA is Secret with a key of RSA. It takes longer to make.
func RSA(t testing.TB, key string, until time.Time, hosts ...string) *corev1.Secret {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return secretWith(t, private, key, until, hosts)
}

func secretWith(t testing.TB, private crypto.Signer, key string, until time.Time, hosts []string) *corev1.Secret {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: key}, DNSNames: hosts,
		NotBefore: until.AddDate(-1, 0, 0), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	namespace, name, _ := strings.Cut(key, "/")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		},
	}
}

// Roots are those that verify the certificate of a Secret, and no other.
func Roots(s *corev1.Secret) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.Data[corev1.TLSCertKey])
	return roots
}
