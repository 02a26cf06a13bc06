package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Issued is a certificate with its key: an authority's, or a client's.
type Issued struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	path        [][]byte // its own, and those of the authorities below the root
}

// Root makes an authority that signs itself.
func Root(t testing.TB, name string) *Issued {
	t.Helper()
	return issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
}

// Authority makes one that i signs.
func (i *Issued) Authority(t testing.TB, name string) *Issued {
	t.Helper()
	return issue(t, i, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
}

// Client makes the certificate of a client that i signs. change, if not nil, may
// alter what is to be signed.
func (i *Issued) Client(t testing.TB, subject pkix.Name, change func(*x509.Certificate)) *Issued {
	t.Helper()
	template := &x509.Certificate{Subject: subject, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(template)
	}
	return issue(t, i, template)
}

// issue signs a certificate that is good for an hour, unless it says otherwise; by
// nil signs itself.
func issue(t testing.TB, by *Issued, template *x509.Certificate) *Issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	template.BasicConstraintsValid, template.NotBefore = true, time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	made := &Issued{key: key}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if made.Certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if by != nil {
		made.path = append([][]byte{der}, by.path...)
	}
	return made
}

// PEM is the certificate as text.
func (i *Issued) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate.Raw})
}

// Chain are the certificates that a client shows.
func (i *Issued) Chain(t testing.TB) (chain []*x509.Certificate) {
	t.Helper()
	for _, der := range i.path {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	return chain
}

// TLS is the same with the key.
func (i *Issued) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: i.path, PrivateKey: i.key}
}

// Revoking is a list by i, as DER, which is good until then.
func (i *Issued) Revoking(t testing.TB, until time.Time, revoked ...*Issued) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until}
	for _, r := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: r.Certificate.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, i.Certificate, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// Authorities makes the Secret NAMESPACE/NAME with what is in ca.crt, and, unless
// nil, lists (DER) in ca.crl.
func Authorities(namespace, name string, authorities []byte, lists ...[]byte) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"ca.crt": authorities}}
	for _, der := range lists {
		s.Data["ca.crl"] = append(s.Data["ca.crl"], pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})...)
	}
	return s
}
