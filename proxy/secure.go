package proxy

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// secureAll follows the Secrets that TLS towards backends is made of.
func (p *Proxy) secureAll(c *snapshot.Cluster) {
	for b, made := range p.secured {
		if now, _ := c.Secrets.Get(b.Of().TLS.Secret); now != made {
			p.secure(b, c)
		}
	}
}

// secure gives b the TLS that its routes ask for.
func (p *Proxy) secure(b *upstream.Backend, c *snapshot.Cluster) {
	of := b.Of()
	if !of.TLS.On {
		return
	}
	secret, _ := c.Secrets.Get(of.TLS.Secret)
	config, err := upstreamTLS(of, secret)
	if err != nil {
		p.options.Log.Warn("TLS towards a backend is not as its Ingress wants it", "service", of.Service, "error", err)
	}
	p.secured[b] = secret
	b.SetTLS(config)
}

// upstreamTLS returns the configuration for of; secret is nil where it names
// none, or one that is not there. Whatever is wrong with the Secret never makes
// verification pass: with an error, nothing is trusted that the Secret should
// have vouched for.
func upstreamTLS(of route.Backend, secret *corev1.Secret) (*tls.Config, error) {
	o := of.TLS
	name := cmp.Or(o.Name, of.Service.Name+"."+of.Service.Namespace+".svc")
	protocol := "http/1.1"
	if of.HTTP2 {
		protocol = "h2"
	}
	suites, _ := route.Ciphers(o.Ciphers) // which has been read before
	config := &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection does it, since the name to verify may not be the one to send
		MinVersion:         o.MinVersion, MaxVersion: o.MaxVersion,
		CipherSuites:       suites,
		NextProtos:         []string{protocol},
		ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}
	if o.SendName {
		config.ServerName = name
	}
	roots, err := readUpstreamSecret(config, o.Secret, secret)
	if o.Verify {
		config.VerifyConnection = func(s tls.ConnectionState) error { return verifyPeer(s, name, roots, o) }
	}
	return config, err
}

// readUpstreamSecret puts our certificate into config, and returns the
// authorities; nil means those of the system.
func readUpstreamSecret(config *tls.Config, key snapshot.Key, secret *corev1.Secret) (*x509.CertPool, error) {
	if key == (snapshot.Key{}) {
		return nil, nil
	}
	nobody := x509.NewCertPool()
	if secret == nil {
		return nobody, fmt.Errorf("the Secret %s does not exist, or could not be read", key)
	}
	var failed error
	if cert, private := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]; len(cert)+len(private) > 0 {
		pair, err := tls.X509KeyPair(cert, private)
		if err != nil {
			failed = fmt.Errorf("the certificate of Secret %s is of no use: %w", key, err)
		} else {
			config.Certificates = []tls.Certificate{pair}
		}
	}
	authorities, ok := secret.Data["ca.crt"]
	if !ok {
		return nil, failed
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return nobody, errors.Join(failed, fmt.Errorf("ca.crt of Secret %s holds no certificate", key))
	}
	return roots, failed
}

func verifyPeer(s tls.ConnectionState, name string, roots *x509.CertPool, o route.UpstreamTLS) error {
	options := x509.VerifyOptions{Roots: roots, DNSName: name, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	chains, err := s.PeerCertificates[0].Verify(options)
	if err == nil && o.LimitDepth && !slices.ContainsFunc(chains, func(c []*x509.Certificate) bool { return len(c)-2 <= o.MaxDepth }) {
		err = fmt.Errorf("more than %d authorities stand between the certificate and one that is trusted", o.MaxDepth)
	}
	return err
}
