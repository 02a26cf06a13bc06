package serve

import (
	"errors"
	"io"
	"syscall"

	"quayside.io/proxy/socket"
)

// tunnel is a connection that was upgraded: what fasthttp has read ahead comes
// first.
type tunnel struct {
	ahead []byte
	connection
}

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) {
	if len(t.ahead) == 0 {
		return t.connection.Read(p)
	}
	n := copy(p, t.ahead)
	if t.ahead = t.ahead[n:]; len(t.ahead) == 0 {
		t.ahead = nil
	}
	return n, nil
}

// Socket implements socket.Reader: TLS has bytes of its own on it.
func (t *tunnel) Socket() (ahead []byte, from syscall.RawConn) {
	c := t.base()
	if c.secret || len(c.ahead) > 0 {
		return nil, nil
	}
	if p, ok := c.Conn.(*proxied); ok && len(p.ahead) > 0 {
		return nil, nil
	}
	ahead, t.ahead = t.ahead, nil
	return ahead, c.raw
}

var _ socket.Reader = (*tunnel)(nil)

// errBarred ends what is read ahead.
var errBarred = errors.New("what was read ahead ends here")

// readAhead takes what fasthttp has read of an upgraded connection, c, and would keep
// its buffers for.
func (c *client) readAhead(from io.Reader) (ahead []byte) {
	c.barred = true
	defer func() { c.barred = false }()
	var piece [512]byte
	for {
		n, err := from.Read(piece[:])
		if ahead = append(ahead, piece[:n]...); err != nil {
			return ahead
		}
	}
}

// handedOver is asked where a connection is to be closed. It reports whether it goes
// on as a tunnel instead: fasthttp, which is done with it, frees its memory now.
func (c *client) handedOver() bool {
	f := c.handOver
	if f == nil {
		return false
	}
	c.handOver = nil
	go f()
	return true
}
