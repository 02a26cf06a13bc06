package upstream

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"quayside.io/proxy/exchange"
)

// lastWrite is how long the answer to a request waits for the last write of the
// request's body. An upstream that has read it has let the write return; one
// that answers without reading must not be waited for.
const lastWrite = 20 * time.Millisecond

// upload streams a request body to the upstream while the transaction waits for
// the response: an upstream may answer before it has read everything, and one
// that answers while it reads would stand still if nobody listened.
type upload struct {
	conn    *conn
	source  io.ReadCloser
	trailer *exchange.Trailer // complete once the source has ended
	out     gather
	done    chan struct{}
	err     error       // valid after done
	readAll atomic.Bool // the source has ended: the last write is about to happen

	clientFailed atomic.Bool // err came from the source
}

func (t *transaction) startUpload() *upload {
	r := &t.ex.Request
	u := &upload{conn: t.conn, source: r.Body, trailer: &r.Trailer, done: make(chan struct{})}
	buf, _ := t.engine.buffers.Get().(*[]byte)
	u.out = gather{conn: t.conn, chunked: r.Length < 0, timeout: t.rules.SendTimeout, buf: *buf}
	u.out.sentAt.Store(time.Now().UnixNano())
	go func() {
		defer close(u.done)
		u.err = u.run(r.Length)
		if u.clientFailed.Load() {
			// Half a body must not look like a whole one. This also wakes the
			// transaction, if the upstream has said nothing.
			u.conn.TCPConn.Close()
		}
		u.out.end()
		t.engine.buffers.Put(buf)
	}()
	return u
}

// run copies the body, of which left bytes are to come, or unknown. It must not
// touch the transaction, which is busy.
func (u *upload) run(left int64) error {
	for {
		room, err := u.out.room()
		if err != nil {
			return err
		}
		if left >= 0 {
			room = room[:min(int64(len(room)), left)]
		}
		n, err := u.source.Read(room)
		if left >= 0 {
			left -= int64(n)
		}
		last := left == 0 || left < 0 && err == io.EOF
		if err != nil && !last {
			u.clientFailed.Store(true)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := u.out.add(n, last); err != nil {
			return err
		}
		if last {
			u.readAll.Store(true)
			return u.out.finish(u.trailer)
		}
	}
}

// progress returns when the last byte was sent and whether more is to come.
func (u *upload) progress() (at time.Time, busy bool) {
	select {
	case <-u.done:
	default:
		busy = true
	}
	return time.Unix(0, u.out.sentAt.Load()), busy
}

// finished reports whether the whole body has been sent. A last write under way
// is waited for, since the upstream has answered and so has most likely read it.
func (u *upload) finished() bool {
	if !u.readAll.Load() {
		return false
	}
	select {
	case <-u.done:
		return u.err == nil
	default:
	}
	patience := time.NewTimer(lastWrite)
	defer patience.Stop()
	select {
	case <-u.done:
		return u.err == nil
	case <-patience.C:
		return false
	}
}

// stop ends the upload wherever it stands, and waits for it. The connection is
// lost unless the upload had finished.
func (u *upload) stop() {
	select {
	case <-u.done:
		return
	default:
	}
	u.source.Close() // wakes a read from the client
	u.conn.TCPConn.Close()
	<-u.done
}
