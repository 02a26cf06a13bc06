package serve

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/netip"

	"quayside.io/proxy/exchange"
)

// HTTP2 serves a connection of a client on which HTTP/2 is spoken, from its preface
// on, until it ends, and closes it. It may also return when it has let the connection rest:
// c has the methods Rest and Rise for that, see client.Rest.
type HTTP2 func(c net.Conn, client *HTTP2Client)

// HTTP2Client is what is known of a client before it says anything.
type HTTP2Client struct {
	From netip.Addr
	// Port is the one that it connected to, as text, where a PROXY header tells.
	Port []byte
	// Shown is what it showed when TLS began; nil: there is none.
	Shown *exchange.Handshake
	// Asked is to be called when its first request has come: a drain does not wait for
	// who has none.
	Asked func()
}

// h2 is HTTP/2 in ALPN.
const h2 = "h2"

// serveHTTP2 is called by fasthttp, which waits for it like for its own
// connections.
func (s *Server) serveHTTP2(nc net.Conn) error {
	c, ok := nc.(connection)
	if !ok {
		return net.ErrClosed
	}
	client := c.base()
	if again := client.again; again != nil {
		client.again, client.woken = nil, false
		again.Resume()
		return nil
	}
	client.linger = true // the reason for its end must arrive, whatever the client still sends
	s.options.HTTP2(c, client.ofHTTP2(handshakeOf(c)))
	return nil
}

func (c *client) ofHTTP2(shown *exchange.Handshake) *HTTP2Client {
	from := c.identify() // learns the port
	return &HTTP2Client{From: from, Port: c.port, Shown: shown, Asked: func() { c.asked.Store(true) }}
}

// preface is how HTTP/2 begins where it was not negotiated (RFC 9113 section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// plainClient is a client without TLS that may know that HTTP/2 is spoken here. To
// fasthttp it looks like one with TLS: its first bytes are the negotiation.
type plainClient struct {
	*client
	knows bool
	first firstLine
}

// Read implements net.Conn.
func (c *plainClient) Read(b []byte) (int, error) {
	n, err := c.client.Read(b)
	c.first.note(b[:n])
	return n, err
}

// Handshake is called by fasthttp. It reads as far as the preface goes on.
func (c *plainClient) Handshake() error {
	if c.woken {
		return nil
	}
	var got [len(preface)]byte
	n := 0
	defer func() { c.ahead = got[:n] }()
	for n < len(preface) {
		k, err := c.client.Read(got[n:])
		n += k
		if string(got[:n]) != preface[:n] {
			return nil
		}
		if err != nil {
			if c.failed = n == 0 || err != io.EOF; c.failed {
				c.client.Conn.Close() // fasthttp would answer 200 to nobody's request
			}
			return err
		}
	}
	c.knows = true
	return nil
}

// ConnectionState is called by fasthttp.
func (c *plainClient) ConnectionState() (state tls.ConnectionState) {
	if c.knows {
		state.NegotiatedProtocol = h2
	}
	return state
}

// firstLine is how the first line on a connection ends, those that are empty apart.
type firstLine struct {
	end  [len("HTTP/1.1")]byte
	over bool
}

func (l *firstLine) note(b []byte) {
	for _, c := range b {
		switch {
		case l.over:
			return
		case c == '\n':
			l.over = l.end != [len(l.end)]byte{}
		case c != '\r':
			copy(l.end[:], l.end[1:])
			l.end[len(l.end)-1] = c
		}
	}
}

// misspoken reports whether a connection that may carry either protocol began with
// neither. No answer to it would make sense to a client of the other.
func misspoken(c connection) bool {
	p, ok := c.(*plainClient)
	return ok && p.first.over && !bytes.HasPrefix(p.first.end[:], []byte("HTTP/1."))
}

var _ connection = (*plainClient)(nil)
