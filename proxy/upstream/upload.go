package upstream

import (
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"quayside.io/proxy/exchange"
)

// chunkHead is the room before the data in an upload's buffer for a chunk's
// size, and chunkTail that behind it.
const (
	chunkHead = 8
	chunkTail = 2
)

// upload streams a request body to the upstream while the transaction waits for
// the response: an upstream may answer before it has read everything, and one
// that answers while it reads would stand still if nobody listened.
type upload struct {
	conn    *conn
	source  io.ReadCloser
	length  int64
	trailer *exchange.Trailer // complete once the source has ended
	done    chan struct{}
	err     error        // valid after done
	sentAt  atomic.Int64 // unix nanoseconds of the last write
	readAll atomic.Bool  // the source has ended: the last write is about to happen

	clientFailed atomic.Bool // err came from the source
}

func (t *transaction) startUpload() *upload {
	u := &upload{
		conn: t.conn, source: t.ex.Request.Body, length: t.ex.Request.Length,
		trailer: &t.ex.Request.Trailer,
		done:    make(chan struct{}),
	}
	u.sentAt.Store(time.Now().UnixNano())
	buf, _ := t.engine.buffers.Get().(*[]byte)
	send := t.engine.options.SendTimeout
	go func() {
		defer close(u.done)
		u.err = u.run(*buf, send)
		t.engine.buffers.Put(buf)
		if u.clientFailed.Load() {
			// Half a body must not look like a whole one. This also wakes the
			// transaction, if the upstream has said nothing.
			u.conn.TCPConn.Close()
		}
	}()
	return u
}

// run copies the body. It must not touch the transaction, which is busy.
func (u *upload) run(buf []byte, timeout time.Duration) error {
	left := u.length
	for !u.readAll.Load() {
		room := buf[chunkHead : len(buf)-chunkTail]
		if left >= 0 {
			room = room[:min(int64(len(room)), left)]
		}
		n, err := u.source.Read(room)
		if left >= 0 {
			left -= int64(n)
		}
		switch {
		case left == 0 || left < 0 && err == io.EOF:
			u.readAll.Store(true)
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
			fallthrough
		case err != nil:
			u.clientFailed.Store(true)
			return err
		}
		if err := u.write(u.frame(buf, n), timeout); err != nil {
			return err
		}
	}
	return nil
}

// frame returns n bytes of body at buf[chunkHead] as they go over the wire.
func (u *upload) frame(buf []byte, n int) []byte {
	if u.length >= 0 {
		return buf[chunkHead : chunkHead+n]
	}
	if n == 0 {
		if u.readAll.Load() {
			return u.last(buf[:0])
		}
		return nil
	}
	var digits [chunkHead]byte
	size := strconv.AppendInt(digits[:0], int64(n), 16)
	size = append(size, "\r\n"...)
	start := chunkHead - len(size)
	copy(buf[start:], size)
	end := chunkHead + n
	end += copy(buf[end:], "\r\n")
	if u.readAll.Load() {
		return u.last(buf[start:end])
	}
	return buf[start:end]
}

// last appends the last chunk and the trailer.
func (u *upload) last(b []byte) []byte {
	b = append(b, "0\r\n"...)
	for _, f := range u.trailer.Header.Fields() {
		b = appendField(b, f.Name, f.Value)
	}
	return append(b, "\r\n"...)
}

func (u *upload) write(b []byte, timeout time.Duration) error {
	if len(b) == 0 {
		return nil
	}
	now := time.Now()
	if err := u.conn.SetWriteDeadline(now.Add(timeout)); err != nil {
		return err
	}
	_, err := u.conn.Write(b)
	u.sentAt.Store(time.Now().UnixNano())
	return err
}

// progress returns when the last byte was sent and whether more is to come.
func (u *upload) progress() (at time.Time, busy bool) {
	select {
	case <-u.done:
	default:
		busy = true
	}
	return time.Unix(0, u.sentAt.Load()), busy
}

// finished reports whether the whole body has been sent. A last write under way
// is waited for, since the upstream has answered and so has read it.
func (u *upload) finished() bool {
	if !u.readAll.Load() {
		return false
	}
	<-u.done
	return u.err == nil
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
