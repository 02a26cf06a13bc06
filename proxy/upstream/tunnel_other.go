//go:build !linux || portable

package upstream

import (
	"io"
	"syscall"
)

// pull is copy.
func (n *tunnel) pull(to io.Writer, from io.Reader, _ syscall.RawConn, wait waiting) error {
	return n.copy(to, waitingReader{from, wait})
}
