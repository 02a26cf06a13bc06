package serve

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// policed is the configuration under a policy.
type policed struct {
	by     *route.TLSPolicy
	config *tls.Config
}

// policy returns the configuration of most handshakes. It is made when a policy is
// first met.
func (s *Server) policy() *tls.Config {
	var by *route.TLSPolicy
	if s.options.TLSPolicy != nil {
		by = s.options.TLSPolicy()
	}
	if by == nil {
		return s.tls
	}
	if p := s.policed.Load(); p != nil && p.by == by {
		return p.config
	}
	c := s.tls.Clone()
	c.GetConfigForClient = nil
	c.MinVersion, c.MaxVersion, c.CipherSuites = cmp.Or(by.MinVersion, c.MinVersion), by.MaxVersion, by.Ciphers
	s.policed.Store(&policed{by, c})
	return c
}

// configFor asks the clients of some server names for a certificate. What they show
// is judged with each request, by its route: one that has none can then be told so
// in words, and one that was good may be so no longer. Sessions of such names are
// not resumed: one that began before certificates were asked for would have none,
// and a ticket does not say for which name it was given.
func (s *Server) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	base := s.policy()
	var authorities *x509.CertPool
	var asked bool
	if s.options.ClientCAs != nil {
		authorities, asked = s.options.ClientCAs(hello.ServerName)
	}
	switch {
	case !asked && base == s.tls:
		return nil, nil
	case !asked:
		return base, nil
	}
	c := base.Clone()
	c.GetConfigForClient = nil
	c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequestClientCert, authorities, true
	return c, nil
}

// handshakeOf returns what the client showed when the TLS of its connection began;
// nil if it speaks without.
func handshakeOf(c connection) *exchange.Handshake {
	if t, ok := c.(*tlsClient); ok {
		return t.shown
	}
	return nil
}
