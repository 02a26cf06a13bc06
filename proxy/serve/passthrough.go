package serve

import (
	"errors"
	"net"
	"net/netip"

	"quayside.io/proxy/exchange"
)

// Passthrough takes the connections of some server names as they are, TLS and all.
type Passthrough interface {
	// PassesAny reports whether there is any such name. While there is none, no
	// ClientHello is looked at.
	PassesAny() bool
	// Passes reports whether the connections of a name are taken.
	Passes(serverName string) bool
	// PassOn carries a connection of a name until it has ended. An error says that the
	// client was not sent anything.
	PassOn(serverName string, c *exchange.Raw) error
}

// rawProtocol stands where a negotiated protocol does for a connection on which
// nothing is negotiated here. No client can name it, since it is never offered.
const rawProtocol = "quayside/raw"

// The alerts of TLS (RFC 8446 section 6) that end a connection which nobody takes.
const (
	alertAccessDenied  = 49
	alertInternalError = 80
)

// peek reads which name the client asks for, and reports whether it is one whose
// connections are handed on. Whatever was read is read again by who comes next: an
// error, too, is met there, by crypto/tls.
func (c *tlsClient) peek() bool {
	p := c.client.server.options.Passthrough
	if c.peeked || p == nil || !p.PassesAny() {
		return c.passing != ""
	}
	c.peeked = true
	h := hello{bytes: make([]byte, 0, usualHello)}
	for {
		if len(h.bytes) == cap(h.bytes) {
			h.bytes = append(make([]byte, 0, maxHello), h.bytes...)
		}
		n, err := c.client.Read(h.bytes[len(h.bytes):cap(h.bytes)])
		h.bytes = h.bytes[:len(h.bytes)+n]
		name, done := h.advance()
		if done && name != "" && p.Passes(name) {
			c.passing = name
		}
		if done || err != nil {
			c.client.ahead = h.bytes
			return c.passing != ""
		}
	}
}

// passOn is called by fasthttp, which waits for it like for its own connections. A
// drain takes what it carries for an upgraded connection.
func (s *Server) passOn(nc net.Conn) error {
	c, ok := nc.(*tlsClient)
	if !ok {
		return net.ErrClosed
	}
	client := c.client
	client.asked.Store(true)
	client.tunnel.Store(true)
	raw := &exchange.Raw{Conn: client, Client: addrPortOf(client.Conn.RemoteAddr()), Local: addrPortOf(client.Conn.LocalAddr()), Peer: client}
	err := s.options.Passthrough.PassOn(c.passing, raw)
	if err == nil {
		return nil
	}
	s.options.Log.Debug("a connection was not handed on", "server name", c.passing, "client", raw.Client, "error", err)
	alert := byte(alertInternalError)
	if errors.Is(err, exchange.ErrDenied) {
		alert = alertAccessDenied
	}
	_, err = client.Write([]byte{21, 3, 1, 0, 2, 2, alert})
	return err
}

func addrPortOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		at := tcp.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
	return netip.AddrPort{}
}
