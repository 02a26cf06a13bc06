package filter

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"regexp"
	"time"

	"quayside.io/proxy/exchange"
)

// ClientMode is what is asked of a client's certificate.
type ClientMode int

// The modes of nginx's ssl_verify_client.
const (
	ClientRequired   ClientMode = iota // one that verifies
	ClientOptional                     // none, or one that verifies
	ClientUnverified                   // none, or one whose authority may be unknown
	ClientOff                          // nothing; the upstream is told so
)

// ClientCert asks clients for a certificate.
type ClientCert struct {
	Mode ClientMode
	// Roots are trusted, each by itself, whether it signed itself or not.
	Roots *x509.CertPool
	// CRLs, if any, must cover every issuer of a chain.
	CRLs []*CRL
	// Depth is how many authorities may stand between a root and the certificate.
	Depth int
	// Subject, if not nil, is searched in the subject of the certificate, in which "="
	// is escaped within values.
	Subject *regexp.Regexp
	// ErrorPage, if not nil, is where a client without a good certificate is sent.
	ErrorPage *Template
	// Pass sends the certificate itself to the upstream.
	Pass bool
}

// Asks reports whether clients are to show anything.
func (c *ClientCert) Asks() bool { return c != nil && c.Mode != ClientOff }

// Guards reports whether it refuses anybody: with ClientOff, too, nobody has the Subject that is
// wanted, as in ingress-nginx.
func (c *ClientCert) Guards() bool { return c.Asks() || c != nil && c.Subject != nil }

// clientCert is the filter of a ClientCert.
type clientCert struct {
	*ClientCert
	place  Place
	leaves func(path []byte) bool // requests without TLS that go no further; nil: none
	tells  bool                   // the upstream is told what the certificate says
}

// filter returns the filter that c asks for.
func (c *ClientCert) filter(host Host, tools Tools) Filter {
	return Filter{Request: (&clientCert{c, tools.Place, host.ToTLS, true}).request}
}

// guard returns a filter that refuses whom c refuses, and tells nobody anything.
func (c *ClientCert) guard(tools Tools) Filter {
	return Filter{Request: (&clientCert{c, tools.Place, nil, false}).request}
}

func (f *clientCert) request(ex *exchange.Exchange) bool {
	r := &ex.Request
	r.Header.Keep(func(field exchange.Field) bool { return !begins(field.Name, clientPrefix) })
	h := r.Handshake
	switch {
	case f.Mode == ClientOff:
		return f.allows(ex, "") && f.pass(r, noneShown())
	case h == nil && !r.TLS && f.leaves != nil && f.leaves(r.RoutedPath()):
		return true // it is about to be sent to https
	case h != nil && !madeFor(h, r.AskedHost()):
		// The certificate was shown to another host, perhaps because that one asks for
		// it. A client that means this one comes again (RFC 9110 section 15.5.20).
		ex.Answer(421, "421 Misdirected Request: this connection was made for another host\n")
		return false
	case h == nil || len(h.Chain) == 0:
		if f.Mode == ClientRequired {
			return f.refuse(ex, noCertificate, "no client certificate was sent")
		}
		return f.pass(r, noneShown()) && f.allows(ex, "")
	}
	s := f.judge(h, r.Received)
	if !s.good && (f.Mode != ClientUnverified || !s.unknownIssuer) {
		return f.refuse(ex, badCertificate, "the client certificate is not accepted")
	}
	return f.allows(ex, s.matched) && f.pass(r, s)
}

// clientPrefix is that of the fields that the upstream is told in. Nobody else may
// send them.
const clientPrefix = "ssl-client-"

// noneShown is of a client that has shown none.
func noneShown() *shown { return &shown{Certificate: exchange.Certificate{Verify: "NONE"}} }

// pass tells the upstream what is known.
func (f *clientCert) pass(r *exchange.Request, s *shown) bool {
	if !f.tells {
		return true
	}
	r.Certificate = &s.Certificate
	for _, field := range [...]Header{
		{"ssl-client-verify", s.Verify}, {"ssl-client-subject-dn", s.Subject}, {"ssl-client-issuer-dn", s.Issuer}, {"ssl-client-cert", s.Escaped},
	} {
		if field.Value != "" {
			r.Header.Add(field.Name, field.Value)
		}
	}
	return true
}

// allows refuses a subject that is not wanted.
func (f *clientCert) allows(ex *exchange.Exchange, subject string) bool {
	if f.Subject == nil || f.Subject.MatchString(subject) {
		return true
	}
	ex.Answer(403, "403 Forbidden: the client certificate is not one of those that may pass\n")
	return false
}

// refuse ends the connection too: the client can show another certificate only by
// beginning a new one.
func (f *clientCert) refuse(ex *exchange.Exchange, fault int, why string) bool {
	if f.ErrorPage != nil {
		sendTo(ex, 302, f.ErrorPage.appendURL(nil, ex, &f.place))
	} else {
		ex.Answer(400, "400 Bad Request: "+why+"\n")
		ex.Response.Fault = fault
	}
	ex.Response.Close = true
	return false
}

// These are nginx's own statuses of a client whose certificate is not accepted, and of one
// without any. Clients are answered 400.
const (
	badCertificate = 495
	noCertificate  = 496
)

// madeFor reports whether a connection was made for a host. A client that means an
// address asks for no name.
func madeFor(h *exchange.Handshake, host []byte) bool {
	name := exchange.HostName(host)
	if h.ServerName != "" {
		return exchange.EqualFold(name, h.ServerName)
	}
	_, err := netip.ParseAddr(string(bytes.Trim(name, "[]")))
	return err == nil
}

// shown is what is known of the certificate of one connection, until the first
// certificate or list that vouches for it expires.
type shown struct {
	exchange.Certificate
	matched             string // what ClientCert.Subject is searched in
	good, unknownIssuer bool
	until               time.Time
}

// judge returns what is known of a chain, worked out once for each connection.
func (f *clientCert) judge(h *exchange.Handshake, now time.Time) *shown {
	if s, ok := h.Recall(f.ClientCert).(*shown); ok && now.Before(s.until) {
		return s
	}
	leaf := h.Chain[0]
	s := &shown{matched: distinguishedName(leaf.RawSubject, "=")}
	s.Subject, s.Issuer = distinguishedName(leaf.RawSubject, ""), distinguishedName(leaf.RawIssuer, "")
	if f.Pass {
		s.Escaped = string(appendComponent(nil, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})))
	}
	until, err := f.verify(h.Chain, now)
	if s.good = err == nil; s.good {
		s.Verify, s.until = "SUCCESS", until
	} else {
		s.unknownIssuer = isUnknownIssuer(err)
		s.Verify, s.until = "FAILED:"+reasonOf(h.Chain, err), now.Add(time.Minute) // it may be too early
	}
	h.Remember(f.ClientCert, s)
	return s
}
