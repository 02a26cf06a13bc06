package socket

import "syscall"

// Reader is a connection that can be waited for without a buffer.
type Reader interface {
	// Socket returns what has been read already, which is not read again, and the socket
	// that the rest comes from as it is sent; nil where it does not, as with TLS, so that
	// only Read will do.
	Socket() (ahead []byte, from syscall.RawConn)
}
