package proxy

import (
	"net"
	"net/netip"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/h2"
)

// serveHTTP2 hands a connection of one front end to the other.
func (p *Proxy) serveHTTP2(c net.Conn, from netip.Addr, shown *exchange.Handshake, asked func()) {
	peer := h2.Peer{Client: from, TLS: shown != nil, Handshake: shown, Asked: asked}
	if shown != nil && shown.ServerName != "" {
		peer.Covers = p.coversFrom(shown.ServerName)
	}
	p.http2.Serve(c, peer)
}

// drainHTTP2 tells clients that a drain has begun; serve does so for HTTP/1.1, with
// each response.
func (p *Proxy) drainHTTP2() {
	p.draining.Store(true)
	p.http2.SetLeaving(true)
}

// coversFrom returns which hosts a connection may carry requests for that asked for
// a server name: those that would be shown the same certificate, or one that is
// good for both. A browser sends requests for several hosts over one connection
// where it believes that they share a certificate (RFC 9113 section 9.1.1); where
// they do not, the host's own TLS settings were never applied.
func (p *Proxy) coversFrom(serverName string) func(string) bool {
	shown := p.dispatch.Certificate(serverName)
	return func(host string) bool {
		if host == serverName {
			return true
		}
		theirs := p.dispatch.Certificate(host)
		return shown == theirs || shown != nil && shown.Leaf != nil && shown.Leaf.VerifyHostname(host) == nil
	}
}
