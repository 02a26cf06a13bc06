package serve

import (
	"crypto/tls"

	"quayside.io/proxy/exchange"
)

// configFor asks the clients of some server names for a certificate. What they show
// is judged with each request, by its route: one that has none can then be told so
// in words, and one that was good may be so no longer. Sessions of such names are
// not resumed: one that began before certificates were asked for would have none,
// and a ticket does not say for which name it was given.
func (s *Server) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	authorities, asked := s.options.ClientCAs(hello.ServerName)
	if !asked {
		return nil, nil
	}
	c := s.tls.Clone()
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
