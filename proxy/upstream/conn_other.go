//go:build !linux || portable

package upstream

import (
	"net/netip"
	"syscall"
)

// plain needs nothing: off Linux a connection is asked by Write and Read.
type plain struct{}

func (c *conn) prepare() error { return nil }

func (c *conn) askPlain(out []byte, in func() []byte) (int, error) {
	return c.askStream(c.TCPConn, out, in)
}

func (c *conn) resumePlain(in func() []byte) (int, error) { return c.Read(in()) }

// stale is true because nothing here can look at an idle connection without waiting:
// each carries one request.
func (c *conn) stale() bool { return true }

// unread is true because nothing here tells what has arrived.
func (c *conn) unread() bool { return true }

// unheard is false for the same reason.
func (c *conn) unheard(int, bool) bool { return false }

func (c *conn) acknowledged() uint64 { return 0 }

// lost is 0 because nothing here tells.
func (c *conn) lost() int { return 0 }

// begin is nil because the dialler does all of it.
func begin(netip.AddrPort) func(network, address string, c syscall.RawConn) error { return nil }
