//go:build !portable

package upstream

import (
	"cmp"
	"io"
	"sync"
	"syscall"

	"quayside.io/proxy/socket"
)

// pull is copy from a socket without TLS, with a buffer only while there is something in it.
func (n *tunnel) pull(to io.Writer, _ io.Reader, from syscall.RawConn, wait waiting) error {
	l := late{pool: &n.engine.buffers}
	step := l.step // one method value for all reads
	read := func() (int, error) {
		l.read, l.err = 0, nil // it may end without a step
		err := from.Read(step)
		return l.read, cmp.Or(err, l.err)
	}
	for {
		k, err := wait(read)
		var got []byte
		if k > 0 {
			got = (*l.buf)[:k]
		}
		on, err := n.pass(to, got, err)
		if k > 0 {
			l.free()
		}
		if !on {
			return err
		}
	}
}

// Socket implements socket.Reader.
func (e *connEnd) Socket() (ahead []byte, from syscall.RawConn) {
	if e.secure != nil {
		return nil, nil
	}
	return nil, e.plain.raw
}

var _ socket.Reader = (*connEnd)(nil)

// late is a read that fetches its buffer when there is something to read.
type late struct {
	pool *sync.Pool
	buf  *[]byte // nil unless something was read
	read int
	err  error
}

// step is called by the poller whenever the socket may be ready; false means wait.
func (l *late) step(fd uintptr) bool {
	l.buf, _ = l.pool.Get().(*[]byte)
	l.read, l.err = socket.Receive(fd, *l.buf)
	if l.read > 0 {
		return true
	}
	l.free()
	if l.err == nil {
		l.err = io.EOF
	}
	return l.err != syscall.EAGAIN
}

func (l *late) free() {
	l.pool.Put(l.buf)
	l.buf = nil
}
