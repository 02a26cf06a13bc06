package route

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy/filter"
)

// clientCerts are the keys of client certificates.
func clientCerts() []option {
	return []option{
		{key: "auth-tls-secret", scope: ofHost, risk: riskMedium, effect: applied, guard: true, parse: parseClientSecret,
			doc: "authorities that sign client certificates",
			differ: "guards the paths of its own Ingress, and in adopted classes those on its hosts in its namespace that say nothing themselves, save for challenges of ACME; " +
				"every certificate in ca.crt is trusted by itself; a missing Secret, or one of another namespace, closes the route, and theirs"},
		{key: "auth-tls-verify-client", scope: ofHost, unset: "on", risk: riskMedium, effect: applied, guard: true, parse: parseClientMode,
			doc: "whether a client certificate is needed", differ: "without auth-tls-secret it closes the route; a request without TLS has no certificate, and is refused where one is needed"},
		{key: "auth-tls-verify-depth", scope: ofHost, unset: "1", risk: riskLow, effect: applied, guard: true, parse: parseClientDepth,
			doc: "how many authorities may stand between a root and a client certificate"},
		{key: "auth-tls-match-cn", scope: ofHost, risk: riskHigh, effect: applied, guard: true, parse: parseClientSubject,
			doc: "pattern of the subject that a client certificate must have, or 403", differ: "the pattern is RE2; in the subject that it is searched in, = within a value has a backslash"},
		{key: "auth-tls-error-page", scope: ofHost, risk: riskHigh, effect: applied, guard: true, parse: parseClientErrorPage,
			doc: "where a client without a good certificate is sent", differ: "a URL, not a path"},
		{key: "auth-tls-pass-certificate-to-upstream", scope: ofHost, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parseClientPass,
			doc: "tell the backend the client certificate", matters: isOn},
	}
}

// clientOptions are those keys.
type clientOptions struct {
	filter.ClientCert
	given     bool // any of them is
	unclear   bool // one of them closes the Ingress
	secret    string
	errorPage *filter.Address
}

// client notes that a key is given.
func (s *settings) client() *clientOptions {
	s.clients.given = true
	return &s.clients
}

func parseClientSecret(s *settings, value string) error {
	s.client().secret = value
	return nil
}

func parseClientMode(s *settings, value string) error {
	o := s.client()
	switch value {
	case "on":
		o.Mode = filter.ClientRequired
	case "off":
		o.Mode = filter.ClientOff
	case "optional":
		o.Mode = filter.ClientOptional
	case "optional_no_ca":
		o.Mode = filter.ClientUnverified
	default:
		return fmt.Errorf("%.100q is none of on, off, optional, optional_no_ca", value)
	}
	return nil
}

func parseClientDepth(s *settings, value string) error {
	return set(&s.client().Depth, value, count(100))
}

func parseClientSubject(s *settings, value string) error {
	o := s.client()
	if !strings.HasPrefix(value, "CN=") {
		return fmt.Errorf("%.100q does not begin with CN=", value)
	}
	return set(&o.Subject, value, filter.CompilePattern)
}

func parseClientErrorPage(s *settings, value string) error {
	return set(&s.client().errorPage, value, filter.ParseAddress)
}

func parseClientPass(s *settings, value string) error {
	return set(&s.client().Pass, value, parseBool)
}

// finishClients closes the routes of an Ingress that wants certificates but does not
// say well enough which. Others may have to ask for them, too, whatever closes its own.
func (s *settings) finishClients(r refs) *finding {
	o := &s.clients
	if !o.given || o.Mode == filter.ClientOff && o.secret == "" {
		return nil
	}
	made := o.ClientCert
	made.Depth = orElse(made.Depth, 1)
	s.filters.Clients = &made
	if made.Mode == filter.ClientOff || o.unclear {
		return nil
	}
	if err := o.complete(&made, r); err != nil {
		f := s.closeFor("auth-tls-secret", "guards access and ", err)
		return &f
	}
	return nil
}

// complete reads what the keys name. Roots are there only if all else is.
func (o *clientOptions) complete(c *filter.ClientCert, r refs) error {
	if o.errorPage != nil {
		if o.errorPage.ByHost && r.anyHost() {
			return errors.New("its auth-tls-error-page leads to whatever host a client names, since a rule of the Ingress is for every host")
		}
		c.ErrorPage = o.errorPage.Template
	}
	if o.secret == "" {
		return errors.New("is missing beside its companions")
	}
	secret, err := r.secret(o.secret)
	if err != nil {
		return err
	}
	roots, err := rootsOf(secret)
	if err == nil {
		c.CRLs, err = revocationsOf(secret)
	}
	if err != nil { // which says nothing of the Secret's content
		return fmt.Errorf("its Secret %s %w", o.secret, err)
	}
	c.Roots = roots
	return nil
}

// rootsOf returns the certificates in ca.crt.
func rootsOf(s *corev1.Secret) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.Data["ca.crt"]) {
		return nil, errors.New("has no certificate in ca.crt")
	}
	return roots, nil
}

// revocationsOf returns the lists in ca.crl, if it has that.
func revocationsOf(s *corev1.Secret) (lists []*filter.CRL, err error) {
	data, given := s.Data["ca.crl"]
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		list, err := filter.NewCRL(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a list in ca.crl that cannot be used: %w", err)
		}
		lists, data = append(lists, list), rest
	}
	if given && (len(lists) == 0 || len(bytes.TrimSpace(data)) > 0) {
		return nil, errors.New("has something else than revocation lists in ca.crl")
	}
	return lists, nil
}
