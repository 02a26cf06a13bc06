package upstream

import (
	"errors"
	"os"
	"sync"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

// switchStream is switchProtocols for a pod that has made its stream a WebSocket (RFC
// 8441). To the front end it is as if the pod had spoken HTTP/1.1.
func (t *transaction) switchStream() error {
	if peer, ok := t.ex.Request.Peer.(exchange.Waker); ok {
		peer.WakeWhenGone(nil) // the tunnel reads, and so hears of it
	}
	r := &t.ex.Response
	r.Status, r.Body, r.Length = 101, t, 0
	r.Header.Add("Upgrade", streams.WebSocket)
	r.Header.Del("Sec-WebSocket-Accept")
	if key := t.ex.Request.Header.Get("Sec-WebSocket-Key"); key != nil { // the client's, and none of the pod's business
		r.Header.Add("Sec-WebSocket-Accept", acceptOf(key))
	}
	end := &streamEnd{stream: t.stream, timeout: t.rules.SendTimeout, late: time.NewTimer(time.Hour)}
	r.Upgraded = t.tunnelTo(end, nil, t.silence())
	return nil
}

// streamEnd is a stream as a podEnd. END_STREAM is to it what FIN is to TCP, and
// RST_STREAM what RST is (RFC 8441 section 5).
type streamEnd struct {
	timeout time.Duration // of a Write
	until   time.Time     // the deadline of Read
	late    *time.Timer

	mu     sync.Mutex
	stream *streams.Stream
	over   bool // the stream is somebody else's; the lock guards it
}

func (e *streamEnd) SetReadDeadline(t time.Time) error {
	e.until = t
	return nil
}

func (e *streamEnd) Read(p []byte) (int, error) {
	for {
		if n, err := e.stream.Read(p); n > 0 || err != nil {
			return n, err
		}
		e.late.Reset(time.Until(e.until))
		select {
		case <-e.stream.Arrived():
		case <-e.late.C:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

func (e *streamEnd) Write(p []byte) (int, error) {
	err := e.stream.Send(p, false, nil, e.timeout)
	switch {
	case errors.Is(err, streams.ErrSilent):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	}
	return len(p), nil
}

func (e *streamEnd) CloseWrite() error { return e.stream.Send(nil, true, nil, e.timeout) }

func (e *streamEnd) Reset() { e.Close() }

func (e *streamEnd) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.stream.Reset()
	}
	return nil
}

func (e *streamEnd) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.late.Stop()
	e.stream.Close()
}

var _ podEnd = (*streamEnd)(nil)
