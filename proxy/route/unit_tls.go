package route

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
)

// tls places the certificate of one entry. Without hosts it serves the names
// that it carries, which is the specification's "wildcard host setting" without
// handing it to names that it is not for.
func (b *unitBuilder) tls(entry *networkingv1.IngressTLS) {
	pair, hosts := b.pairOf(entry), entry.Hosts
	if len(hosts) == 0 && b.class.Nginx {
		return // siblingTLS is all that there is to it
	}
	if len(hosts) == 0 {
		for _, c := range b.parts {
			c.tls = true
		}
		if pair != nil {
			hosts = pair.names()
		}
	}
	for _, name := range hosts {
		if why := invalidHost(name); why != "" || name == "" {
			b.problemf(InvalidHost, "host %q in spec.tls %s; it is left out", name, cmp.Or(why, "is empty"))
			continue
		}
		c := b.part(name)
		c.tls = true
		if strings.HasPrefix(name, "*") {
			for _, below := range b.parts {
				below.tls = below.tls || matchesWildcard(below.host, name)
			}
		}
		if pair != nil {
			b.certificate(c, pair)
		}
	}
}

// siblingTLS gives the hosts of rules that no entry of spec.tls names what ingress-nginx does,
// where there are entries: the certificate of the first that is for the host, and redirects to
// https.
func (b *unitBuilder) siblingTLS() {
	if !b.class.Nginx || len(b.ingress.Spec.TLS) == 0 {
		return
	}
	for _, c := range b.parts {
		if !c.named || c.host == "" {
			continue
		}
		c.tls = true
		for i := 0; i < len(b.ingress.Spec.TLS) && len(c.pairs) == 0; i++ {
			if pair := b.pairOf(&b.ingress.Spec.TLS[i]); pair != nil && !pair.nameless() {
				c.coveredBy([]*keyPair{pair})
				c.implied = true
			}
		}
	}
}

// pairOf returns the certificate of an entry of spec.tls, or nil.
func (b *unitBuilder) pairOf(entry *networkingv1.IngressTLS) *keyPair {
	if entry.SecretName == "" {
		return nil
	}
	return b.keyPair(snapshot.Key{Namespace: b.ref.Namespace, Name: entry.SecretName})
}

// certificate gives a host of its own a certificate.
func (b *unitBuilder) certificate(c *part, pair *keyPair) {
	if !pair.covers(c.host) {
		b.problemf(CertificateMismatch, "the certificate in Secret %s is not for host %s but for %s, so clients get the default certificate; name a Secret whose certificate is for that host",
			pair.key, c.host, cmp.Or(strings.Join(pair.names(), ", "), "no DNS name at all"))
		return
	}
	if pair.nameless() {
		b.problemf(CertificateNameless, "the certificate in Secret %s names host %s as its common name alone, for which browsers refuse it; it is served all the same; make one with that host as a subjectAltName", pair.key, c.host)
	}
	switch first := withKind(c.pairs, pair.kind()); first {
	case nil:
		c.pairs = append(c.pairs, pair)
	case pair:
	default:
		b.problemf(DuplicateTLS, "host %s has a certificate with a key of the kind %s in Secret %s already, so that in Secret %s is not served",
			c.host, pair.kind(), first.key, pair.key)
	}
}

// keyPair returns the certificate in a Secret, or nil and a Problem.
func (b *unitBuilder) keyPair(key snapshot.Key) *keyPair {
	if !slices.Contains(b.secrets, key) {
		b.secrets = append(b.secrets, key)
	}
	pair := b.w.keyPair(key)
	// An expired certificate is served all the same: a browser then names the
	// fault and the host, where the default certificate would hide both.
	f := pair.finding(b.w.t.state.options.Now)
	switch {
	case pair.unread:
		f.message += ", so nothing is known of its certificate; a proxy that cannot read it shows the default one"
	case pair.cert == nil:
		f.message += ", so clients get the default certificate; put one and its key there, with type: kubernetes.io/tls"
	}
	if f.reason != "" {
		b.problem(f)
	}
	if pair.cert == nil {
		return nil
	}
	return pair
}
