package serve

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"quayside.io/proxy/proxyheader"
)

// ProxyProtocol is how PROXY headers are read off the connections of clients.
type ProxyProtocol struct {
	// Trusted are those who must send one, and whose is believed, beside
	// Options.TrustedProxies. That of any other client is read and ignored, if there is one.
	Trusted []netip.Prefix
	// Timeout is how long a header may take to arrive. 0: Options.Timeout.
	Timeout time.Duration
}

// SetProxyProtocol declares whether connections that come from now on begin with PROXY
// headers; nil: if Options.ProxyProtocol says so.
func (s *Server) SetProxyProtocol(p *ProxyProtocol) {
	if p == nil && s.options.ProxyProtocol {
		p = &ProxyProtocol{}
	}
	if p == nil {
		s.headers.Store(nil)
		return
	}
	own := ProxyProtocol{Trusted: slices.Concat(s.options.TrustedProxies, p.Trusted), Timeout: p.Timeout}
	if own.Timeout <= 0 {
		own.Timeout = s.options.Timeout
	}
	s.headers.Store(&own)
}

func (p *ProxyProtocol) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(t netip.Prefix) bool { return t.Contains(a) })
}

// withProxyHeader returns nc without the PROXY header that it begins with.
func (s *Server) withProxyHeader(nc net.Conn) net.Conn {
	p := s.headers.Load()
	if p == nil {
		return nc
	}
	return &proxied{Conn: nc, timeout: p.Timeout, trusted: p.trusts(addrOf(nc.RemoteAddr()))}
}

// proxied is a connection that begins with a PROXY header. Who first reads, or asks for
// an address, waits for it.
type proxied struct {
	net.Conn
	timeout time.Duration
	trusted bool

	once   sync.Once
	header proxyheader.Header // as far as it is believed
	err    error
	ahead  []byte // was read behind the header
}

// Read implements net.Conn.
func (c *proxied) Read(b []byte) (int, error) {
	c.once.Do(c.readHeader)
	switch {
	case len(c.ahead) > 0:
		n := copy(b, c.ahead)
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil
		}
		return n, nil
	case c.err != nil:
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// RemoteAddr implements net.Conn.
func (c *proxied) RemoteAddr() net.Addr {
	c.once.Do(c.readHeader)
	if c.header.From.IsValid() {
		return net.TCPAddrFromAddrPort(c.header.From)
	}
	return c.Conn.RemoteAddr()
}

// LocalAddr implements net.Conn.
func (c *proxied) LocalAddr() net.Addr {
	c.once.Do(c.readHeader)
	if c.header.To.IsValid() {
		return net.TCPAddrFromAddrPort(c.header.To)
	}
	return c.Conn.LocalAddr()
}

// usualHeader is what there is room for at first.
const usualHeader = 256

// readHeader reads as far as the header goes, and what comes with it. Another client may
// come without one: what it sends instead is its request.
func (c *proxied) readHeader() {
	defer time.AfterFunc(c.timeout, func() { c.Conn.Close() }).Stop()
	got := make([]byte, 0, usualHeader)
	for {
		if len(got) == cap(got) {
			got = slices.Grow(got, proxyheader.MaxSize)
		}
		n, err := c.Conn.Read(got[len(got):cap(got)])
		got = got[:len(got)+n]
		header, size, fault := proxyheader.Parse(got)
		switch {
		case fault == nil && c.trusted:
			c.header, c.ahead = header, got[size:]
		case fault == nil:
			c.ahead = got[size:]
		case fault == proxyheader.ErrNone && !c.trusted:
			c.ahead = got
		case fault == proxyheader.ErrShort && err == nil:
			continue
		case err != nil:
			c.err = err
		default:
			c.err = fault
		}
		return
	}
}
