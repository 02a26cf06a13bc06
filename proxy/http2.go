package proxy

import (
	"crypto/tls"
	"net"
	"slices"

	"quayside.io/proxy/h2"
	"quayside.io/proxy/serve"
)

// serveHTTP2 hands a connection of one front end to the other. One whose client asked for
// no server name carries requests for every host, as nginx has it: it was shown the
// certificate of nobody in particular and went on, so it reuses no connection that was
// made for another host, and 421 (RFC 9110 section 15.5.20) would send it to a new
// connection that is just the same. Clients that were given an address never send a
// name: load balancers that look whether we are well, and people with curl. What
// depends on the name looks at it with each request: client certificates, and hosts
// whose connections are handed on.
func (p *Proxy) serveHTTP2(c net.Conn, client *serve.HTTP2Client) {
	peer := &h2.Peer{Client: client.From, Port: client.Port, TLS: client.Shown != nil, Handshake: client.Shown, Asked: client.Asked}
	if client.Shown != nil && client.Shown.ServerName != "" {
		peer.Covers = p.coversFrom(client.Shown.ServerName)
	}
	p.http2.Serve(c, peer)
}

// drainHTTP2 tells clients that a drain has begun; serve does so for HTTP/1.1, with
// each response.
func (p *Proxy) drainHTTP2() {
	p.draining.Store(true)
	p.http2.SetLeaving(true)
}

// coversFrom returns which hosts a connection may carry requests for that asked for a
// server name: those that would be shown the same certificate, or one that is good for
// both, whichever of several it was. A browser sends requests for several hosts over one
// connection where it believes that they share a certificate (RFC 9113 section 9.1.1);
// where they do not, the host's own TLS settings were never applied, and where it wants
// no HTTP/2, it would get some.
func (p *Proxy) coversFrom(serverName string) func(string) bool {
	shown := p.dispatch.Certificates(serverName)
	return func(host string) bool {
		if offered, said := p.dispatch.HTTP2(host); said && !offered && host != serverName {
			return false // it is to be asked over a connection of its own
		}
		return host == serverName || slices.Equal(shown, p.dispatch.Certificates(host)) || len(shown) > 0 && !slices.ContainsFunc(shown, func(c *tls.Certificate) bool {
			return c.Leaf == nil || c.Leaf.VerifyHostname(host) != nil
		})
	}
}
