package route

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
)

// A keyPair is one version of a TLS Secret, parsed once.
type keyPair struct {
	key    snapshot.Key
	secret *corev1.Secret   // nil if missing, or unread
	unread bool             // nobody knows whether it exists
	cert   *tls.Certificate // nil if there is none to serve
	fault  finding          // why there is none
}

func parseKeyPair(key snapshot.Key, s *corev1.Secret, unread bool) *keyPair {
	if unread {
		return &keyPair{key: key, unread: true, fault: finding{UnreadReference, fmt.Sprintf("Secret %s %v", key, errUnread)}}
	}
	if s == nil {
		return &keyPair{key: key, fault: finding{MissingSecret, fmt.Sprintf("Secret %s does not exist", key)}}
	}
	cert, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		// The error names what is wrong with the PEM, never its content.
		why := fmt.Sprintf("Secret %s has no usable certificate in %s and %s: %v", key, corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
		if s.Type != corev1.SecretTypeTLS {
			why += fmt.Sprintf(" (it is of type %s, not %s)", cmp.Or(s.Type, corev1.SecretTypeOpaque), corev1.SecretTypeTLS)
		}
		return &keyPair{key: key, secret: s, fault: finding{InvalidSecret, why}}
	}
	return &keyPair{key: key, secret: s, cert: &cert}
}

// A keyKind is what the key of a certificate is. A host may have a certificate of each,
// since there are clients that know one kind only. The order is that of preference: what
// costs least comes first, and the one that most clients know last.
type keyKind int

const (
	keyECDSA keyKind = iota
	keyEd25519
	keyRSA
)

func (k keyKind) String() string { return [...]string{"ECDSA", "Ed25519", "RSA"}[k] }

// kind is that of a pair with a certificate: crypto/tls reads no others.
func (p *keyPair) kind() keyKind {
	switch p.cert.Leaf.PublicKeyAlgorithm {
	case x509.ECDSA:
		return keyECDSA
	case x509.Ed25519:
		return keyEd25519
	}
	return keyRSA
}

// withKind returns the one of a kind, or nil.
func withKind(pairs []*keyPair, kind keyKind) *keyPair {
	for _, p := range pairs {
		if p.kind() == kind {
			return p
		}
	}
	return nil
}

// of reports whether p is the parsed form of s.
func (p *keyPair) of(s *corev1.Secret, unread bool) bool {
	if p.unread != unread {
		return false
	}
	if p.secret == s || s == nil || p.secret == nil {
		return p.secret == s
	}
	return p.secret.Type == s.Type && bytes.Equal(p.secret.Data[corev1.TLSCertKey], s.Data[corev1.TLSCertKey]) &&
		bytes.Equal(p.secret.Data[corev1.TLSPrivateKeyKey], s.Data[corev1.TLSPrivateKeyKey])
}

// covers reports whether the certificate is valid for the host of a rule. A
// wildcard host needs a wildcard certificate: the probe is a label that no
// certificate names by itself.
func (p *keyPair) covers(hostname string) bool {
	if rest, ok := strings.CutPrefix(hostname, "*"); ok {
		hostname = "any-name-below" + rest
	}
	leaf := p.cert.Leaf
	if p.nameless() {
		named := *leaf
		leaf, named.DNSNames = &named, p.dnsNames()
	}
	return leaf.VerifyHostname(hostname) == nil
}

// nameless reports whether the certificate has no host as subjectAltName. Browsers refuse it; who
// compares it with one that they have, or looks at none, does not.
func (p *keyPair) nameless() bool { return len(p.cert.Leaf.DNSNames) == 0 }

// dnsNames are the names of the certificate, or its common name, which was one before
// RFC 2818, and still is in ingress-nginx.
func (p *keyPair) dnsNames() []string {
	if p.nameless() {
		return []string{p.cert.Leaf.Subject.CommonName}
	}
	return p.cert.Leaf.DNSNames
}

// names are the hosts that the certificate itself is for.
func (p *keyPair) names() []string {
	var hosts []string
	for _, name := range p.dnsNames() {
		if name = strings.ToLower(name); name != "" && invalidHost(name) == "" {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// finding returns what is wrong with the Secret at that time, if anything.
func (p *keyPair) finding(now time.Time) finding {
	if p.cert == nil || now.IsZero() || p.expiry().After(now) {
		return p.fault
	}
	return finding{CertificateExpired, fmt.Sprintf("the certificate in Secret %s expired on %s and is served all the same; renew it",
		p.key, p.expiry().UTC().Format("2006-01-02 15:04 MST"))}
}

// expiry is when the certificate ends to be valid, or zero.
func (p *keyPair) expiry() time.Time {
	if p.cert == nil {
		return time.Time{}
	}
	return p.cert.Leaf.NotAfter
}

// expiredBetween reports whether the certificate expired after then and by now.
func (p *keyPair) expiredBetween(then, now time.Time) bool {
	end := p.expiry()
	return !end.IsZero() && end.After(then) && !end.After(now)
}
