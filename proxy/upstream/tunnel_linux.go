//go:build !portable

package upstream

import (
	"cmp"
	"io"
	"sync"
	"syscall"
	"time"

	"quayside.io/proxy/socket"
)

// pull is copy from a pod without TLS, with a buffer only while there is something in it.
func (n *tunnel) pull(c *conn) error {
	l := late{pool: &n.engine.buffers}
	step := l.step // one method value for all reads
	for {
		_, err := n.patient(func() (int, error) {
			l.read, l.err = 0, nil // it may end without a step
			err := c.plain.raw.Read(step)
			return l.read, cmp.Or(err, l.err)
		})
		if l.read > 0 {
			n.heard.Store(time.Now().UnixNano())
			_, failed := n.client.Write((*l.buf)[:l.read])
			l.free()
			if failed != nil {
				if isTimeout(failed) {
					n.close() // it does not read, so it need not be told of the end either
				}
				return nil
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

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
