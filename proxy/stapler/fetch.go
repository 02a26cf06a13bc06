package stapler

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ocsp"
)

const (
	// patience bounds a question, from the look-up of the responder to its last byte.
	patience = 10 * time.Second
	// maxResponse is the largest response that is taken. It goes with every handshake.
	maxResponse = 16 << 10
	// skew is how much the responder's clock may be ahead.
	skew = 5 * time.Minute
	// unsaid is how long a response is kept that does not say.
	unsaid = time.Hour
)

// response is what a responder said.
type response struct {
	raw     []byte
	until   time.Time
	revoked bool
}

// asks reports whether a certificate names a responder and brings its issuer.
func asks(c *tls.Certificate) bool {
	return c != nil && c.Leaf != nil && len(c.Leaf.OCSPServer) > 0 && len(c.Certificate) > 1
}

// client returns one that connects only where it may, past all proxies, and follows
// nobody.
func client(refuse func(netip.Addr) string) *http.Client {
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if why := refuse(at.Addr().Unmap().WithZone("")); why != "" {
			return errors.New(why)
		}
		return nil
	}}
	return &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
		},
	}
}

// fetch asks the first responder of a certificate.
func (s *Stapler) fetch(ctx context.Context, c *tls.Certificate) (response, error) {
	issuer, err := x509.ParseCertificate(c.Certificate[1])
	if err != nil {
		return response{}, fmt.Errorf("what follows it is no certificate: %w", err)
	}
	if err := c.Leaf.CheckSignatureFrom(issuer); err != nil {
		return response{}, fmt.Errorf("what follows it is not its issuer: %w", err)
	}
	question, err := ocsp.CreateRequest(c.Leaf, issuer, nil)
	if err != nil {
		return response{}, err
	}
	at, err := url.Parse(c.Leaf.OCSPServer[0])
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
		return response{}, errors.New("its responder has no address of http")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(question))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("Content-Type", "application/ocsp-request")
	r.Header["User-Agent"] = []string{""}
	answer, err := s.http.Do(r)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "application/ocsp-response") {
		return response{}, fmt.Errorf("its responder answered %d, %.50q", answer.StatusCode, kind)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse+1))
	switch {
	case err != nil:
		return response{}, err
	case len(raw) > maxResponse:
		return response{}, fmt.Errorf("its responder's answer is longer than %d bytes", maxResponse)
	}
	return read(raw, c.Leaf, issuer, time.Now())
}

// read judges a response.
func read(raw []byte, leaf, issuer *x509.Certificate, now time.Time) (response, error) {
	r, err := ocsp.ParseResponseForCert(raw, leaf, issuer)
	if err != nil {
		return response{}, err
	}
	until := r.NextUpdate
	if until.IsZero() {
		until = r.ThisUpdate.Add(unsaid)
	}
	switch by := r.Certificate; {
	case by != nil && !by.Equal(issuer) && !slices.Contains(by.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
		return response{}, errors.New("its responder signs by a certificate that is not for that")
	case by != nil && (now.Before(by.NotBefore) || now.After(by.NotAfter)):
		return response{}, errors.New("its responder signs by a certificate that has expired")
	case r.ThisUpdate.After(now.Add(skew)), !until.After(now):
		return response{}, fmt.Errorf("its responder answers for the time from %v to %v", r.ThisUpdate, until)
	case r.Status == ocsp.Revoked:
		return response{revoked: true}, errors.New("it is revoked")
	case r.Status != ocsp.Good:
		return response{}, errors.New("its responder does not know it")
	}
	return response{raw: raw, until: until}, nil
}
