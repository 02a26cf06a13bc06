package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is the cluster's certificate authority, the API server's certificate
// and the key that signs service account tokens, as files.
type pki struct {
	ca, cert, key, accounts string // paths
	caPEM                   []byte
}

// newPKI writes a fresh set. Every lab has its own: a client that trusts one
// cluster must not trust another.
func newPKI(dir string, addresses []net.IP) (*pki, error) {
	p := &pki{
		ca:       filepath.Join(dir, "ca.crt"),
		cert:     filepath.Join(dir, "apiserver.crt"),
		key:      filepath.Join(dir, "apiserver.key"),
		accounts: filepath.Join(dir, "service-accounts.key"),
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "quayside lab"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(0, 0, 7),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, fmt.Errorf("lab: make a CA: %w", err)
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  addresses,
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, caKey)
	if err != nil {
		return nil, fmt.Errorf("lab: make the API server's certificate: %w", err)
	}
	accountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	if err := os.WriteFile(p.ca, p.caPEM, 0o644); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serverDER})
	if err := os.WriteFile(p.cert, certPEM, 0o644); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := writeKey(p.key, serverKey); err != nil {
		return nil, err
	}
	return p, writeKey(p.accounts, accountKey)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}
