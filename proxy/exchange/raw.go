package exchange

import (
	"errors"
	"io"
	"net/netip"
)

// Raw is the connection of a client that is handed on as it is, TLS and all.
type Raw struct {
	// Conn is read from the first byte of the client on. Where it has a CloseWrite,
	// one direction may end before the other.
	Conn io.ReadWriteCloser
	// Client and Local are the ends of it, after PROXY protocol.
	Client, Local netip.AddrPort
	// Peer is asked while endpoints keep the client waiting.
	Peer Peer
}

// ErrDenied is why a connection is not handed on whose client may not pass.
var ErrDenied = errors.New("the client may not pass")
