package admin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"
)

// tlsConfig is how the endpoint speaks TLS. HTTP/2 is left out: one that scrapes
// gains nothing by it, and strangers could open streams at will.
func (a *Access) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if a.CertFile == "" && a.KeyFile == "" {
		own, err := selfSigned(time.Now())
		if err != nil {
			return nil, fmt.Errorf("admin endpoint: make a certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
		return c, nil
	}
	pair := &keyPair{cert: a.CertFile, key: a.KeyFile}
	if _, err := pair.get(nil); err != nil {
		return nil, fmt.Errorf("admin endpoint: %w", err)
	}
	c.GetCertificate = pair.get
	return c, nil
}

// lifetime of a certificate of our own. Nobody who scrapes can know it beforehand,
// so its end would protect nobody and break everybody.
const lifetime = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate for one life of the process.
func selfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = "quayside"
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// keyPair is a certificate in files that may change. Files that went bad leave the
// last good ones in force.
type keyPair struct {
	cert, key string

	mu     sync.Mutex
	read   [2]time.Time // when the files had last changed
	loaded *tls.Certificate
}

func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var changed [2]time.Time
	for i, file := range []string{p.cert, p.key} {
		if info, err := os.Stat(file); err == nil {
			changed[i] = info.ModTime()
		}
	}
	if p.loaded != nil && changed == p.read {
		return p.loaded, nil
	}
	now, err := tls.LoadX509KeyPair(p.cert, p.key)
	switch {
	case err == nil:
		p.loaded, p.read = &now, changed
	case p.loaded == nil:
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return p.loaded, nil
}
