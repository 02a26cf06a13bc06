package upstream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// SetTLS declares how the backend is spoken to: over TLS with c, which must not
// change any more and says which name is sent, what is verified and with which
// certificate we identify ourselves; or over plain TCP if c is nil. Idle
// connections close, those in use serve their request.
func (b *Backend) SetTLS(c *tls.Config) {
	if b.tls.Swap(c) == c {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.all() {
		e.closeIdle()
	}
}

// handshake is the error of a TLS handshake. It names no address.
type handshake struct{ error }

func (h *handshake) Unwrap() error { return h.error }

// shake puts TLS over the connection where pods want it, until ctx ends.
func (c *conn) shake(ctx context.Context) error {
	if c.config == nil {
		return nil
	}
	secure := tls.Client(c.TCPConn, c.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return &handshake{err}
	}
	c.secure = secure
	return nil
}

// Read implements io.Reader.
func (c *conn) Read(b []byte) (int, error) {
	c.drained = false
	if c.secure != nil {
		return c.secure.Read(b)
	}
	return c.TCPConn.Read(b)
}

// Write implements io.Writer.
func (c *conn) Write(b []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Write(b)
	}
	return c.TCPConn.Write(b)
}

// CloseWrite ends our direction.
func (c *conn) CloseWrite() error {
	if c.secure != nil {
		return c.secure.CloseWrite()
	}
	return c.TCPConn.CloseWrite()
}

// writePieces writes all of them, as one record where there are records.
func (c *conn) writePieces(pieces net.Buffers) error {
	if c.secure == nil {
		_, err := pieces.WriteTo(c.TCPConn)
		return err
	}
	if len(pieces) == 1 {
		_, err := c.secure.Write(pieces[0])
		return err
	}
	var all []byte
	for _, p := range pieces {
		all = append(all, p...)
	}
	_, err := c.secure.Write(all)
	return err
}

// askSecure is ask over TLS.
func (c *conn) askSecure(out []byte, in func() []byte) (int, error) {
	c.wrote = false
	c.used++
	return c.askStream(c.secure, out, in)
}

// askStream is ask by a write and a read. What a failed write has sent is unknown, so
// it counts as sent.
func (c *conn) askStream(stream io.ReadWriter, out []byte, in func() []byte) (int, error) {
	if c.kept && c.staleStream() {
		return 0, errStale
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.patient)); err != nil {
		return 0, err
	}
	c.wrote = true
	_, err := stream.Write(out)
	switch {
	case err != nil && isTimeout(err):
		return 0, errUnsent
	case err != nil || in == nil:
		return 0, err
	}
	return stream.Read(in())
}

// staleStream looks for bytes that were not requested, in the socket and in what
// has been taken from there already: a record too many would be the answer to
// the next request.
func (c *conn) staleStream() bool {
	if c.stale() || c.secure == nil {
		return true
	}
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return true
	}
	var one [1]byte
	n, err := c.secure.Read(one[:])
	return n > 0 || !isTimeout(err) || c.SetReadDeadline(c.deadline) != nil
}
