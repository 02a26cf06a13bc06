package serve

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// errUndecrypted ends a handshake for a name whose connections are handed on. It
// came too late to be handed on itself: its ClientHello was too long, or the name
// became one meanwhile.
var errUndecrypted = errors.New("connections for this server name are not decrypted here")

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
	c := s.keyless.Clone()
	c.SessionTicketsDisabled = by.NoTickets
	if by.TicketKey != nil {
		c.SetSessionTicketKeys([][32]byte{*by.TicketKey})
	}
	c.MinVersion, c.MaxVersion, c.CipherSuites = cmp.Or(by.MinVersion, c.MinVersion), by.MaxVersion, by.Ciphers
	if by.NoHTTP2 {
		c.NextProtos = withoutHTTP2(c.NextProtos)
	}
	s.policed.Store(&policed{by, c})
	return c
}

func withoutHTTP2(protocols []string) []string {
	return slices.DeleteFunc(slices.Clone(protocols), func(name string) bool { return name == h2 })
}

// protocolsFor returns what is offered for a server name, nil for what base offers.
func (s *Server) protocolsFor(serverName string, base *tls.Config) []string {
	if s.options.OfferHTTP2 == nil || s.options.HTTP2 == nil {
		return nil
	}
	switch offered, said := s.options.OfferHTTP2(serverName); {
	case !said || offered == slices.Contains(base.NextProtos, h2):
		return nil
	case offered:
		return s.tls.NextProtos
	}
	return withoutHTTP2(base.NextProtos)
}

// rejects reports whether a handshake ends for the name it is for.
func (s *Server) rejects(hello *tls.ClientHelloInfo) bool {
	if s.options.TLSPolicy == nil || s.options.Certificate == nil {
		return false
	}
	by := s.options.TLSPolicy()
	return by != nil && by.RejectUnknown && s.options.Certificate(hello) == nil
}

// SetTicketKeys declares the keys of session tickets: the first seals, all open. Until
// then they are our own; none is no change. They are those of the one configuration
// that all handshakes begin with; the others have none and leave that to it.
func (s *Server) SetTicketKeys(keys [][32]byte) {
	if len(keys) > 0 {
		s.tls.SetSessionTicketKeys(keys)
	}
}

// configFor asks the clients of some server names for a certificate. What they show
// is judged with each request, by its route: one that has none can then be told so
// in words, and one that was good may be so no longer. Sessions of such names are
// not resumed: one that began before certificates were asked for would have none,
// and a ticket does not say for which name it was given.
func (s *Server) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if p := s.options.Passthrough; p != nil && p.PassesAny() && p.Passes(hello.ServerName) {
		return nil, errUndecrypted
	}
	base := s.policy()
	var authorities *x509.CertPool
	var asked bool
	if s.options.ClientCAs != nil {
		authorities, asked = s.options.ClientCAs(hello.ServerName)
	}
	var ciphers []uint16
	if s.options.Ciphers != nil {
		ciphers = s.options.Ciphers(hello.ServerName)
	}
	protocols := s.protocolsFor(hello.ServerName, base)
	if s.rejects(hello) {
		protocols = []string{} // what it speaks is no reason to end its handshake: the name is
	}
	switch own := asked || ciphers != nil || protocols != nil; {
	case !own && base == s.tls:
		return nil, nil
	case !own:
		return base, nil
	}
	c := base.Clone()
	c.GetConfigForClient = nil
	if ciphers != nil {
		c.CipherSuites = ciphers
	}
	if protocols != nil {
		c.NextProtos = protocols
	}
	if asked {
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequestClientCert, authorities, true
	}
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
