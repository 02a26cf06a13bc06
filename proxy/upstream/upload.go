package upstream

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

// lastWrite is how long the answer to a request waits for the last write of the
// request's body. An upstream that has read it has let the write return; one
// that answers without reading must not be waited for.
const lastWrite = 20 * time.Millisecond

// upload streams a request body to the upstream while the transaction waits for
// the response: an upstream may answer before it has read everything, and one
// that answers while it reads would block if its response were not read.
type upload struct {
	source  io.ReadCloser
	trailer *exchange.Trailer // complete once the source has ended
	trails  bool              // that may be later than the last byte of a length
	out     sink
	done    chan struct{}
	err     error       // valid after done
	readAll atomic.Bool // the source has ended: the last write is about to happen

	clientFailed atomic.Bool // err came from the source
	late         atomic.Bool // the upstream took nothing for as long as it may
}

// sink is where an upload goes. It is used by one goroutine, save for cut and
// progress.
type sink interface {
	// room returns where the next bytes go.
	room() ([]byte, error)
	// add says that n bytes have come into the room. Unless they are the last, which
	// finish sends, it sees to it that they are sent soon.
	add(n int, last bool) error
	// finish sends what is there and the end of the body.
	finish(trailer *exchange.Trailer) error
	// end is called when all is over.
	end()
	// cut breaks the request off, so that half of it looks like no whole one, and
	// wakes who waits for the response.
	cut()
	// progress is when something was last sent.
	progress() time.Time
	// waits reports whether the client may be silent for longer.
	waits() bool
}

func (t *transaction) startUpload() *upload {
	buf, _ := t.engine.buffers.Get().(*[]byte)
	g := &gather{conn: t.conn, chunked: t.ex.Request.Length < 0, timeout: t.rules.SendTimeout, buf: *buf}
	g.sentAt.Store(time.Now().UnixNano())
	if t.kept != nil || !t.conn.kept && t.rewinds == nil {
		return t.uploadTo(g, buf, t.ex.Request.Body)
	}
	return t.uploadTo(g, buf, t.replay())
}

// replay is the reading of the request's body that counts, where there may have to be
// another.
func (t *transaction) replay() io.ReadCloser {
	if t.rewinds == nil {
		t.rewinds = newRewinder(t.ex.Request.Body, &t.engine.buffers)
	}
	return t.rewinds.current
}

// retire lets the upload be, of which the pod has seen nothing, if another can begin
// anew. It may still wait for the client: what comes is for both.
func (t *transaction) retire() bool {
	if t.rewinds == nil || !t.rewinds.rewind() {
		return false
	}
	t.retired, t.upload = append(t.retired, t.upload), nil
	return true
}

// endUploads ends whoever reads the request's body.
func (t *transaction) endUploads() {
	finished := false
	if u := t.upload; u != nil {
		u.stop()
		finished = u.err == nil
	}
	for _, u := range t.retired {
		if finished { // nobody waits for the client, who may send another request
			u.out.cut()
			<-u.done
		} else {
			u.stop()
		}
	}
	if t.rewinds != nil {
		t.rewinds.free()
	}
}

// uploadTo sends the request's body, as source has it, to out, which has a buffer of
// the engine's.
func (t *transaction) uploadTo(out sink, buf *[]byte, source io.ReadCloser) *upload {
	r, buffers := &t.ex.Request, &t.engine.buffers
	_, trails := out.(*streamSink)
	if trails { // and only a client of HTTP/2 has both a length and a trailer
		_, trails = r.Peer.(exchange.Waker)
	}
	u := &upload{source: source, trailer: &r.Trailer, trails: trails, out: out, done: make(chan struct{})}
	length := r.Length
	go func() {
		defer close(u.done)
		u.err = u.run(length)
		if u.clientFailed.Load() {
			u.out.cut()
		}
		u.late.Store(!u.clientFailed.Load() && (isTimeout(u.err) || errors.Is(u.err, streams.ErrSilent)))
		u.out.end()
		buffers.Put(buf)
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
			room = room[:min(int64(len(room)), u.most(left))]
		}
		n, err := u.source.Read(room)
		if left >= 0 {
			left -= int64(n)
		}
		last := left <= 0 && err == io.EOF || left == 0 && !u.trails
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && u.out.waits() {
			continue
		}
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

// most is how many bytes may be read where so many are left. Where none are, a read finds
// the end of the body: front ends hand on no more than the length says.
func (u *upload) most(left int64) int64 {
	if u.trails {
		return max(left, 1)
	}
	return left
}

// unsent is the failure of an upload of which endpoint took nothing for too long. Whose
// upload ended otherwise may have answered before, or may yet.
func (t *transaction) unsent(endpoint *endpoint) error {
	if u := t.upload; u == nil || !u.late.Load() {
		return nil
	}
	return &failure{reason: sendTimeout, endpoint: endpoint}
}

// progress returns when the last byte was sent and whether more is to come.
func (u *upload) progress() (at time.Time, busy bool) {
	select {
	case <-u.done:
	default:
		busy = true
	}
	return u.out.progress(), busy
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
	u.out.cut()
	<-u.done
}
