package filter

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"
)

// A CRL is a list of certificates that their issuer has revoked. It is immutable.
type CRL struct {
	list    *x509.RevocationList
	revoked map[string]struct{} // serial numbers, as big-endian bytes
}

// NewCRL reads a list (RFC 5280 section 5). One that is not for all certificates of
// its issuer, which critical extensions say, is refused: it would be taken for more
// than it is.
func NewCRL(der []byte) (*CRL, error) {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, errors.New("it is not understood")
	}
	for _, e := range list.Extensions {
		if e.Critical && !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 35}) { // the issuer's key, which is found anyway
			return nil, fmt.Errorf("its critical extension %s is not understood", e.Id)
		}
	}
	c := &CRL{list, make(map[string]struct{}, len(list.RevokedCertificateEntries))}
	for _, entry := range list.RevokedCertificateEntries {
		c.revoked[string(entry.SerialNumber.Bytes())] = struct{}{}
	}
	return c, nil
}

// of reports whether c is what an issuer has to say now.
func (c *CRL) of(issuer *x509.Certificate, now time.Time) bool {
	return bytes.Equal(c.list.RawIssuer, issuer.RawSubject) && !now.Before(c.list.ThisUpdate) &&
		(c.list.NextUpdate.IsZero() || now.Before(c.list.NextUpdate)) && c.list.CheckSignatureFrom(issuer) == nil
}

var (
	errTooLong = errors.New("certificate chain too long")
	errRevoked = errors.New("certificate revoked")
	errNoCRL   = errors.New("unable to get certificate CRL")
)

// verify returns how long the chain is good for.
func (c *ClientCert) verify(chain []*x509.Certificate, now time.Time) (until time.Time, err error) {
	options := x509.VerifyOptions{
		Roots: c.Roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, other := range chain[1:] {
		options.Intermediates.AddCert(other)
	}
	found, err := chain[0].Verify(options)
	if err != nil {
		return until, err
	}
	for _, path := range found {
		if len(path) > c.Depth+2 {
			err = errTooLong
			continue
		}
		if until, err = c.unrevoked(path, now); err == nil {
			return until, nil
		}
	}
	return until, err
}

// unrevoked returns until when a path counts. With CRLs every issuer needs one that
// is in force, as in OpenSSL's CRL_CHECK_ALL.
func (c *ClientCert) unrevoked(path []*x509.Certificate, now time.Time) (until time.Time, err error) {
	until = path[0].NotAfter
	for i, cert := range path {
		until = earlier(until, cert.NotAfter)
		if len(c.CRLs) == 0 || i == len(path)-1 {
			continue
		}
		list := c.listOf(path[i+1], now)
		if list == nil {
			return until, errNoCRL
		}
		if _, is := list.revoked[string(cert.SerialNumber.Bytes())]; is {
			return until, errRevoked
		}
		if next := list.list.NextUpdate; !next.IsZero() {
			until = earlier(until, next)
		}
	}
	return until, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (c *ClientCert) listOf(issuer *x509.Certificate, now time.Time) *CRL {
	for _, list := range c.CRLs {
		if list.of(issuer, now) {
			return list
		}
	}
	return nil
}

// isUnknownIssuer reports whether all that is wrong with a certificate is that nobody
// who signed it is known, within the depth.
func isUnknownIssuer(err error) bool {
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown) || errors.Is(err, errTooLong)
}

// reasonOf is what the upstream is told, in OpenSSL's words. Nothing of it comes
// out of the certificate.
func reasonOf(chain []*x509.Certificate, err error) string {
	leaf := chain[0]
	switch {
	case !isUnknownIssuer(err):
		return "certificate verify failed" // such a request goes no further
	case bytes.Equal(leaf.RawSubject, leaf.RawIssuer):
		return "self-signed certificate"
	case len(chain) == 1:
		return "unable to verify the first certificate"
	}
	return "unable to get local issuer certificate"
}
