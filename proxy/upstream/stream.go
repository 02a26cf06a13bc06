package upstream

import (
	"errors"
	"io"
	"sync"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

// maxUnseen is how often a request is sent anew, in one try, that the pod has not
// looked at: connections end.
const maxUnseen = 3

// askStream asks one endpoint over a connection of HTTP/2. last is why there was a
// try before, or nil.
func (t *transaction) askStream(last error) error {
	if err := t.choose(last); err != nil {
		return err
	}
	for unseen := 0; ; unseen++ {
		s, err := t.openStream()
		if err != nil {
			return err
		}
		t.stream, t.since = s, time.Now()
		if peer, ok := t.ex.Request.Peer.(exchange.Waker); ok {
			peer.WakeWhenGone(s.Arrived())
		}
		if t.streaming {
			t.upload = t.uploadStream()
		}
		if err = t.awaitHead(); err == nil {
			return nil
		}
		if !errors.Is(err, streams.ErrUnseen) {
			t.closeStream()
			return err
		}
		if again := t.leaveStream(); !again || unseen == maxUnseen {
			var f *failure
			if errors.As(err, &f) {
				f.again = again
			}
			return err
		}
	}
}

// closeStream ends the request on its stream, wherever both stand.
func (t *transaction) closeStream() {
	if peer, ok := t.ex.Request.Peer.(exchange.Waker); ok {
		peer.WakeWhenGone(nil)
	}
	t.stream.Reset() // who sends there need not wait for the pod
	if t.upload != nil {
		t.upload.stop()
	}
	t.stream.Close()
	t.stream = nil
}

// leaveStream gives up a stream that the pod has not looked at, and reports whether
// the request may be sent once more.
func (t *transaction) leaveStream() bool {
	if t.kept != nil { // it has all come: its upload waits for nobody but the pod
		t.rewind()
	}
	u := t.upload
	again := u == nil || t.retire()
	if u != nil && again {
		if k, ok := u.out.(*streamSink); ok {
			k.leave()
		}
	}
	t.closeStream()
	return again
}

// awaitHead waits for the head of the response and turns it into ex.Response.
func (t *transaction) awaitHead() error {
	h := &t.ex.Response.Header
	for {
		for hints := t.stream.Hints(); len(hints) > 0; hints = hints[1:] {
			t.inform(&hints[0])
		}
		hd, ok, err := t.stream.Head(h)
		switch {
		case err != nil:
			return t.streamLost(err)
		case !ok:
			if err := t.unsent(t.targets.endpoints[t.at]); err != nil {
				return err
			}
			if err := t.look(); err != nil {
				return err
			}
			if time.Since(t.since) >= cutOffLook {
				if err := t.cutOff(t.over); err != nil {
					return err
				}
			}
			continue
		}
		now := time.Now()
		if t.counted != nil {
			t.counted.Observe(now, now.Sub(t.since))
		}
		t.since = now
		if t.said = hd.Status; hd.Status >= 400 && t.passesOn(hd.Status) {
			return &failure{reason: passedOn, endpoint: t.targets.endpoints[t.at]}
		}
		return t.settleStream(hd)
	}
}

// settleStream is settle for a response of HTTP/2.
func (t *transaction) settleStream(hd streams.Head) error {
	r := &t.ex.Response
	hop := r.Header.StripHop()
	t.health().Answered()
	if hd.Tunnel {
		t.targets.set.TellClient(&t.session, t.at, &t.ex.Request, &r.Header, t.since)
		return t.switchStream()
	}
	if err := t.checkUpgrade(hd.Status, hop); err != nil {
		return err
	}
	t.targets.set.TellClient(&t.session, t.at, &t.ex.Request, &r.Header, t.since)
	r.Status, r.Body, r.Length, r.Trailer.Announced = hd.Status, t, hd.Length, hop.Announced
	r.Close = t.upload != nil && t.kept == nil && !t.upload.finished()
	t.framing = byStream
	if data, whole := t.stream.Whole(); whole {
		t.body.data = data
		t.endStream()
	}
	return nil
}

// endStream notes that the response is in memory.
func (t *transaction) endStream() {
	t.framing = whole
	t.uncount()
	for _, f := range t.stream.Trailer() {
		t.ex.Response.Trailer.Add(f.Name, f.Value)
	}
}

// readStream waits for more of the body.
func (t *transaction) readStream() error {
	t.since = time.Now()
	t.end = 0
	for {
		room := t.room()
		n, err := t.stream.Read(room)
		switch {
		case n > 0:
			now := time.Now()
			t.ex.Upstream.Waited += now.Sub(t.since)
			t.since, t.body.data = now, room[:n]
			return nil
		case err == io.EOF:
			t.endStream()
			return nil
		case err != nil:
			return t.streamCut(err)
		}
		if err := t.look(); err != nil {
			return err
		}
	}
}

// streamCut is what the end of a stream means in the middle of a response.
func (t *transaction) streamCut(err error) error {
	var reset *exchange.StreamReset
	t.backend.stats.count(connectionLost)
	if errors.As(err, &reset) {
		return err
	}
	return ErrTruncated
}

// streamLost is what it means before there is one.
func (t *transaction) streamLost(err error) error {
	e := t.targets.endpoints[t.at]
	if u := t.upload; u != nil && u.clientFailed.Load() {
		u.stop()
		return &failure{reason: clientBody, err: u.err}
	}
	var reset *exchange.StreamReset
	switch {
	case errors.Is(err, streams.ErrMalformed):
		return &failure{reason: badResponse, err: err, endpoint: e}
	case errors.Is(err, streams.ErrUnseen):
		return &failure{reason: connectionLost, err: err, endpoint: e}
	case !errors.As(err, &reset):
		t.health().Broke(time.Now())
	}
	if t.linked > 0 { // as in broken: a fresh connection that fails says something about the pod
		t.tried = append(t.tried, t.at)
	}
	return &failure{reason: connectionLost, err: err, endpoint: e, again: t.outlives()}
}

// look waits until it is worth looking at the stream again. An exchange stands
// still when nothing moves either way: a client may be silent while it listens, and
// a pod while it is spoken to.
func (t *transaction) look() error {
	s := t.stream
	t.wakeIn(min(t.rules.ReadTimeout-time.Since(s.Moved()), patience))
	select {
	case <-s.Arrived():
	case <-t.timer.C:
	}
	if p := t.ex.Request.Peer; p != nil && p.Gone() {
		return &failure{reason: clientGone}
	}
	if time.Since(s.Moved()) >= t.rules.ReadTimeout {
		return &failure{reason: readTimeout, endpoint: t.targets.endpoints[t.at]}
	}
	return nil
}

// wakeIn sets the timer.
func (t *transaction) wakeIn(d time.Duration) {
	if t.timer == nil {
		t.timer = time.NewTimer(d)
		return
	}
	t.timer.Reset(d)
}

// streamSink takes a request's body to its stream.
type streamSink struct {
	mu       sync.Mutex
	stream   *streams.Stream // nil: it was given up
	buf      []byte
	n        int           // bytes in buf
	timeout  time.Duration // of sending
	standing time.Duration // how long nothing may move; 0: clients have had their time
}

func (t *transaction) uploadStream() *upload {
	buf, _ := t.engine.buffers.Get().(*[]byte)
	k := &streamSink{stream: t.stream, buf: *buf, timeout: t.rules.SendTimeout}
	if _, ok := t.ex.Request.Peer.(exchange.Waker); ok {
		k.standing = t.rules.ReadTimeout
	}
	if t.kept != nil {
		return t.uploadTo(k, buf, t.ex.Request.Body)
	}
	return t.uploadTo(k, buf, t.replay())
}

// leave forgets a stream that has ended.
func (k *streamSink) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stream = nil
}

func (k *streamSink) send(n int, last bool, trailer []exchange.Field) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		return streams.ErrUnseen
	}
	return k.stream.Send(k.buf[:n], last, trailer, k.timeout)
}

func (k *streamSink) room() ([]byte, error) { return k.buf, nil }

func (k *streamSink) add(n int, last bool) error {
	if k.n = n; last || n == 0 {
		return nil
	}
	return k.send(n, false, nil)
}

func (k *streamSink) finish(trailer *exchange.Trailer) error {
	return k.send(k.n, true, trailer.Header.Fields())
}

func (k *streamSink) end() {}

func (k *streamSink) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream != nil {
		k.stream.Reset()
	}
}

func (k *streamSink) progress() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		return time.Time{}
	}
	return k.stream.Moved()
}

// waits: a client may be silent as long as the pod is not, within ReadTimeout. Whose
// stream was given up waits for the next one.
func (k *streamSink) waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stream == nil || k.stream.Wanted() && time.Since(k.stream.Moved()) < k.standing
}

var _ sink = (*streamSink)(nil)
