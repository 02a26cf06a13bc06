package serve

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quayside.io/proxy/exchange"
)

const (
	// deadlineSlack is the part of a patience by which a deadline may strike earlier
	// than asked for. Setting one costs more than looking, so one that is
	// near enough stays.
	deadlineSlack = 12
	// lingerFor and lingerBytes bound the reading of what a client still sends
	// after its response: closing on unread bytes makes the kernel reset the
	// connection, and the response could be lost.
	lingerFor   = 2 * time.Second
	lingerBytes = 1 << 20
)

// client is one connection of a client.
type client struct {
	net.Conn          // read and written through; it may take a PROXY header off
	socket   net.Conn // what lies below that
	secret   bool     // it carries TLS
	outer    net.Conn // what fasthttp knows
	server   *Server
	raw      syscall.RawConn
	peer     netip.Addr // valid after identify
	port     []byte     // that the client connected to, as far as a PROXY header tells

	readBy   time.Time // the read deadline in force
	writeBy  time.Time
	reading  sync.Mutex  // makes setting a read deadline and stopReading exclude each other
	cut      bool        // reading was ended by stopReading; guarded by reading
	tunnel   atomic.Bool // the connection was upgraded
	asked    atomic.Bool // a request has arrived
	linger   bool        // part of a request may still be coming
	last     atomic.Bool // what is written now is all there will be
	served   int64       // requests
	ended    time.Time   // when the last of them had. Zero: nobody has looked
	rests    bool        // a request has come, and the next is not waited for yet
	handed   bool        // fasthttp has handed it on
	in       inbound
	rest     atomic.Int32          // one of the states of rest.go
	woken    bool                  // it has rested, and nothing has been read since
	until    time.Time             // when its rest ends at the latest; zero: never. With fd and risen guarded by server.mu
	fd       int                   // the descriptor, of one that rests
	risen    bool                  // it is not to rest after all
	again    interface{ Resume() } // what serves HTTP/2 after a rest
	restless bool                  // it cannot rest
	failed   bool                  // the TLS handshake did
	spoken   bool                  // a byte of TLS has come
	ahead    []byte                // was read, and is to be read again

	handOver func()          // what fasthttp's Close means for a tunnel
	barred   bool            // nothing is read, see readAhead
	abandon  func()          // frees what waits for an upgrade that never comes about
	admitted *requestContext // has been told to send its body
	closed   sync.Once

	look   func(fd uintptr) // the method value, made once
	gone   bool
	looked uint8 // how often endSilent has seen it; guarded by server.mu

	turning atomic.Bool // direct serves it, so that closing it would wait for its request
	dropped bool        // without an answer

	out      *bufio.Writer // direct's; nil: fasthttp writes all responses
	composed bool          // the response has been written to out
}

// inbound is what reading HTTP off a connection has brought so far.
type inbound struct {
	heard bool // a byte
	ended bool // the end: the client sends no more
}

func (in *inbound) note(n int, err error) {
	in.heard = in.heard || n > 0
	in.ended = in.ended || n == 0 && err == io.EOF
}

func newClient(nc net.Conn, l *listener) (*client, error) {
	c := &client{Conn: l.server.withProxyHeader(nc), socket: nc, secret: l.tls, server: l.server}
	if sc, ok := nc.(syscall.Conn); ok {
		raw, err := sc.SyscallConn()
		if err != nil {
			nc.Close()
			return nil, err
		}
		c.raw = raw
	}
	c.look = c.poll
	if err := l.server.enter(c); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// identify finds out who the client is, which may mean to read a PROXY header.
func (c *client) identify() netip.Addr {
	if !c.peer.IsValid() {
		c.peer = addrOf(c.Conn.RemoteAddr())
		if p, ok := c.Conn.(*proxied); ok && p.header.To.IsValid() {
			c.port = strconv.AppendUint(nil, uint64(p.header.To.Port()), 10)
		}
	}
	return c.peer
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.IPv4Unspecified()
}

// SetReadDeadline implements net.Conn. fasthttp asks for Options.Timeout where it begins
// to wait for a request, again for its head, and for bodyFollows before its body. What
// these really have, Limits say. Whoever has the connection from fasthttp means what it
// says.
func (c *client) SetReadDeadline(t time.Time) error {
	asked := c.server.options.Timeout
	if c.resumes() {
		return nil
	}
	if c.handed || t.IsZero() {
		return c.readUntil(t, asked)
	}
	l := c.server.limits.Load()
	patience := l.Head
	switch {
	case c.rests:
		c.rests, patience = false, max(l.Idle, 0)
	case !c.readBy.IsZero() && t.Sub(c.readBy) > bodyFollows/2:
		asked, patience = bodyFollows, l.Body
	}
	return c.readUntil(t.Add(patience-asked), patience)
}

// readUntil sets the read deadline, unless the one in force is near enough, of a
// patience that long: most are.
func (c *client) readUntil(t time.Time, patience time.Duration) error {
	if near(c.readBy, t, patience) {
		return nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.cut {
		return nil
	}
	c.readBy = t
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *client) Read(b []byte) (int, error) {
	if c.barred {
		return 0, errBarred
	}
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil
		}
		return n, nil
	}
	n, err := c.Conn.Read(b)
	c.roused(n, err)
	if c.secret {
		c.spoken = c.spoken || n > 0
	} else {
		c.in.note(n, err)
		err = c.hush(n, err)
	}
	return n, err
}

// SetDeadline implements net.Conn. fasthttp calls it where it hands a connection on.
func (c *client) SetDeadline(t time.Time) error {
	c.readBy, c.writeBy, c.handed = t, t, true
	c.reading.Lock()
	defer c.reading.Unlock()
	set := c.Conn.SetDeadline
	if c.cut {
		set = c.Conn.SetWriteDeadline
	}
	if err := set(t); !c.resumes() {
		return err
	}
	return nil
}

// resumes reports whether somebody goes on to serve HTTP/2, who must be called even if the
// connection has ended, and finds that out.
func (c *client) resumes() bool { return c.woken && c.again != nil }

// near reports whether deadline have will do where want is asked for.
func near(have, want time.Time, patience time.Duration) bool {
	if have.IsZero() || want.IsZero() {
		return have.IsZero() && want.IsZero()
	}
	d := want.Sub(have)
	return d >= 0 && d < patience/deadlineSlack
}

// Write implements net.Conn. A client that does not read is given up.
func (c *client) Write(b []byte) (int, error) {
	t := time.Now().Add(c.server.options.Timeout)
	if !near(c.writeBy, t, c.server.options.Timeout) {
		c.writeBy = t
		if err := c.Conn.SetWriteDeadline(t); err != nil {
			return 0, err
		}
	}
	if c.last.Load() {
		return c.writeLast(b)
	}
	return c.Conn.Write(b)
}

// keepReading gives the client another while to send the next bytes of a body.
func (c *client) keepReading() error {
	patience := c.server.limits.Load().Body
	return c.readUntil(time.Now().Add(patience), patience)
}

// stopReading ends the present Read and all later ones. Any goroutine may call it.
func (c *client) stopReading() {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.cut = true
	c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// Gone implements exchange.Peer: it asks the kernel whether the client has hung
// up, whatever bytes of it are still unread.
func (c *client) Gone() bool {
	if !c.gone && c.raw != nil && c.raw.Control(c.look) != nil {
		c.gone = true // closed on our side
	}
	return c.gone
}

// hangUp ends the connection under whoever serves it. Any goroutine may call it.
func (c *client) hangUp() {
	if tcp, ok := c.socket.(tcpConn); ok && c.turning.Load() {
		tcp.CloseRead()
		tcp.CloseWrite()
		return
	}
	c.Conn.Close()
}

// drop ends the connection without an answer. Who serves it calls it.
func (c *client) drop() {
	if c.dropped = c.turning.Load(); !c.dropped {
		c.Conn.Close()
	}
}

// Close implements net.Conn.
func (c *client) Close() error {
	if c.handedOver() || c.lay() {
		return nil
	}
	c.closed.Do(func() {
		c.server.left(c)
		if c.abandon != nil {
			c.abandon()
		}
		c.abandonAdmitted()
		switch {
		case c.linger:
			c.lingering()
		case c.last.Load():
			c.shut() // closing on unread bytes would discard what writeLast has held back
		}
	})
	return c.Conn.Close()
}

// lingering reads and forgets what the client is still sending, within bounds.
func (c *client) lingering() {
	half, ok := c.socket.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.Conn.SetReadDeadline(time.Now().Add(lingerFor))
	var sink [4 << 10]byte
	for left := lingerBytes; left > 0; {
		n, err := c.Conn.Read(sink[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// CloseWrite lets a tunnel end one direction.
func (c *client) CloseWrite() error {
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// abort ends the connection with a reset, and below TLS, whose alert would say
// that all has been sent: an orderly end makes half a response look whole.
func (c *client) abort() {
	if tcp, ok := c.socket.(tcpConn); ok {
		tcp.SetLinger(0)
	}
	c.socket.Close()
}

// tcpConn is what a socket can do beyond what a net.Conn can: a net.TCPConn, or an
// accepted.
type tcpConn interface {
	CloseRead() error
	CloseWrite() error
	SetLinger(seconds int) error
}

func (c *client) base() *client { return c }

// tlsClient is a client behind TLS. fasthttp knows it by the methods of *tls.Conn.
type tlsClient struct {
	*tls.Conn
	client  *client
	shown   *exchange.Handshake // set by Handshake
	peeked  bool                // the ClientHello was looked at
	passing string              // the server name whose connections are handed on; empty: it is not one
}

func (c *tlsClient) base() *client { return c.client }

// Read implements net.Conn. crypto/tls may tell the end together with the last
// bytes; here it comes by itself, so that having met it means to have wanted more.
func (c *tlsClient) Read(b []byte) (int, error) {
	if c.client.barred {
		return 0, errBarred
	}
	n, err := c.Conn.Read(b)
	if n > 0 && err == io.EOF {
		err = nil
	}
	c.client.in.note(n, err)
	return n, c.client.hush(n, err)
}

// Handshake is called by fasthttp. There is none with a client that is handed on. Who
// speaks plain HTTP to this port gets an answer in plain HTTP that says so.
func (c *tlsClient) Handshake() error {
	if c.client.woken || c.peek() {
		return nil
	}
	err := c.Conn.Handshake()
	if c.client.failed = err != nil; err != nil {
		c.client.server.handshakes.count(err, c.client.spoken)
	}
	var not tls.RecordHeaderError
	if errors.As(err, &not) && not.Conn != nil && looksLikeHTTP(not.RecordHeader) {
		c.client.server.answerPlain(c.client)
	}
	if err == nil && c.shown == nil {
		state := c.ConnectionState()
		c.shown = exchange.NewHandshake(state.ServerName, state.PeerCertificates)
		c.shown.Version, c.shown.Cipher = state.Version, state.CipherSuite
	}
	return err
}

// ConnectionState is called by fasthttp.
func (c *tlsClient) ConnectionState() tls.ConnectionState {
	if c.passing != "" {
		return tls.ConnectionState{NegotiatedProtocol: rawProtocol}
	}
	return c.Conn.ConnectionState()
}

// looksLikeHTTP reports whether what should be the head of a TLS record is the
// start of a request line: methods are upper case letters.
func looksLikeHTTP(head [5]byte) bool {
	for i, b := range head {
		if (b < 'A' || 'Z' < b) && (i < 3 || b != ' ' && b != '/') {
			return false
		}
	}
	return true
}

// Close implements net.Conn.
func (c *tlsClient) Close() error {
	if c.client.handedOver() || c.client.lay() {
		return nil
	}
	if c.client.tunnel.Load() || c.client.linger {
		c.Conn.CloseWrite()
		return c.client.Close()
	}
	return c.Conn.Close()
}

// connection is what fasthttp hands back to us of either kind.
type connection interface {
	net.Conn
	CloseWrite() error
	base() *client
}

var (
	_ connection = (*client)(nil)
	_ connection = (*tlsClient)(nil)
)
