package streams

import (
	"fmt"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// handle takes one frame. Its error is a *frame.Fault, or an http2.StreamError, or that
// of the connection.
func (c *Conn) handle(f http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
	if c.inbound.frames++; c.inbound.frames == 1 {
		if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
			return frame.Fail(http2.ErrCodeProtocol, "the pod does not speak HTTP/2: its first frame is not SETTINGS")
		}
	}
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.onData(f)
	case *http2.HeadersFrame:
		return c.onHeaders(f)
	case *http2.ContinuationFrame:
		return c.onContinuation(f)
	case *http2.SettingsFrame:
		return c.onSettings(f)
	case *http2.WindowUpdateFrame:
		return c.onWindowUpdate(f)
	case *http2.RSTStreamFrame:
		return c.onReset(f)
	case *http2.PingFrame:
		return c.onPing(f)
	case *http2.GoAwayFrame:
		return c.onGoAway(f)
	case *http2.PushPromiseFrame:
		return frame.Fail(http2.ErrCodeProtocol, "the pod pushes, which it was told not to")
	}
	return c.charge(frame.CostFrame)
}

// onSettings applies the pod's settings, in order, and says so.
func (c *Conn) onSettings(f *http2.SettingsFrame) error {
	if err := c.charge(frame.CostFrame + f.NumSettings()); err != nil || f.IsAck() {
		return err
	}
	for i := range f.NumSettings() {
		s := f.Setting(i)
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			if err := c.out.Resize(s.Val, c.senders); err != nil {
				return err
			}
		case http2.SettingHeaderTableSize:
			c.out.Resized = true
		case http2.SettingMaxConcurrentStreams:
			c.limit = int(min(s.Val, uint32(c.client.options.Streams)))
		case http2.SettingEnableConnectProtocol:
			if s.Val == 0 && c.connects {
				return frame.Fail(http2.ErrCodeProtocol, "a server takes ENABLE_CONNECT_PROTOCOL back") // RFC 8441 section 3
			}
			c.connects = s.Val == 1
		case http2.SettingEnablePush:
			if s.Val != 0 {
				return frame.Fail(http2.ErrCodeProtocol, "a server sets ENABLE_PUSH")
			}
		}
	}
	if !c.settled {
		c.settled = true
		close(c.ready)
	}
	c.out.Pending = frame.AppendHeader(c.out.Buffer(), 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.fill()
	c.kick()
	return nil
}

// senders are those of all streams.
func (c *Conn) senders(yield func(*frame.Sender) bool) {
	for _, s := range c.streams {
		if !yield(&s.send) {
			return
		}
	}
}

func (c *Conn) onWindowUpdate(f *http2.WindowUpdateFrame) error {
	if !c.out.Repays(f.Increment) {
		if err := c.charge(frame.CostFrame); err != nil {
			return err
		}
	}
	switch s := c.streams[f.StreamID]; {
	case f.StreamID == 0:
		if err := c.out.Widen(f.Increment, c.senders); err != nil {
			return err
		}
	case s == nil && c.isIdle(f.StreamID):
		return frame.Fail(http2.ErrCodeProtocol, "WINDOW_UPDATE for a stream that was never opened")
	case s != nil && !c.out.WidenOne(&s.send, f.Increment):
		return c.refuse(f.StreamID, http2.ErrCodeFlowControl, "a window is too large")
	case s != nil:
		s.moved = c.heard
	}
	c.fill()
	c.kick()
	return nil
}

// isIdle reports whether we have not opened the stream yet (RFC 9113 section 5.1);
// those with even numbers would be the pod's, who may open none.
func (c *Conn) isIdle(id uint32) bool { return id%2 == 0 || id >= c.next }

// onReset ends a stream. There cannot be more of them than we have asked for.
func (c *Conn) onReset(f *http2.RSTStreamFrame) error {
	s := c.streams[f.StreamID]
	switch {
	case s == nil && c.isIdle(f.StreamID):
		return frame.Fail(http2.ErrCodeProtocol, "RST_STREAM for a stream that was never opened")
	case s == nil:
		return c.charge(frame.CostFrame)
	case s.ended: // the pod needs nothing more of the request (RFC 9113 section 8.1)
		s.asked = true
		c.out.Forget(&s.send)
		signal(s.sent)
		c.forgetIfDone(s)
	case f.ErrCode == http2.ErrCodeRefusedStream:
		c.abandon(s, fmt.Errorf("%w: it was refused", ErrUnseen))
	default:
		c.abandon(s, &exchange.StreamReset{Code: uint32(f.ErrCode)})
	}
	return nil
}

func (c *Conn) onPing(f *http2.PingFrame) error {
	if err := c.charge(frame.CostFrame); err != nil || f.IsAck() {
		return err
	}
	c.out.Pending = append(frame.AppendHeader(c.out.Buffer(), len(f.Data), http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...)
	c.kick()
	return nil
}

// onGoAway opens no more streams, and gives up those that the pod will not look at.
func (c *Conn) onGoAway(f *http2.GoAwayFrame) error {
	c.closing = true
	for id, s := range c.streams {
		if id > f.LastStreamID {
			c.abandon(s, fmt.Errorf("%w: the pod is leaving", ErrUnseen))
		}
	}
	c.endIfDone()
	return c.charge(frame.CostFrame)
}

// onData takes part of a response's body.
func (c *Conn) onData(f *http2.DataFrame) error {
	data, size := f.Data(), int(f.Length) // with the padding, which counts
	s := c.streams[f.StreamID]
	if s == nil && c.isIdle(f.StreamID) {
		return frame.Fail(http2.ErrCodeProtocol, "DATA for a stream that was never opened")
	}
	if size > c.granted.left {
		return frame.Fail(http2.ErrCodeFlowControl, "more DATA than the connection's window")
	}
	c.granted.left -= size
	c.grant(size)
	if len(data) == 0 && !f.StreamEnded() || s == nil && len(data) < frame.WorthUpdate {
		if err := c.charge(frame.CostFrame); err != nil {
			return err
		}
	}
	switch {
	case s == nil:
		return nil // sent before our RST_STREAM had arrived
	case s.ended:
		return c.refuse(f.StreamID, http2.ErrCodeStreamClosed, "there is DATA behind its end")
	case size > s.granted.left:
		return c.refuse(f.StreamID, http2.ErrCodeFlowControl, "there is more DATA than the stream's window")
	case !s.headed:
		return c.refuse(f.StreamID, http2.ErrCodeProtocol, "there is DATA before its head")
	}
	s.granted.left -= size
	s.received += int64(len(data))
	if s.head.Length >= 0 && s.received > s.head.Length || s.bodiless && s.received > 0 {
		return c.refuse(f.StreamID, http2.ErrCodeProtocol, "its body is longer than it says")
	}
	if len(data) > 0 {
		c.budget.Earn(frame.EarnFrame)
	}
	s.moved = c.heard
	s.unread.Write(data)
	if f.StreamEnded() {
		return c.endOf(s)
	}
	c.grantStream(s, size-len(data)+s.widen())
	signal(s.arrived)
	return nil
}

// endOf notes that the response has come in full.
func (c *Conn) endOf(s *Stream) error {
	if s.head.Length >= 0 && s.received != s.head.Length && !s.bodiless {
		return c.refuse(s.send.ID, http2.ErrCodeProtocol, "its body is shorter than it says")
	}
	s.ended, s.moved = true, c.heard
	c.budget.Earn(frame.EarnAnswer)
	signal(s.arrived)
	c.forgetIfDone(s)
	return nil
}

// grant lets the pod send n bytes more over the connection, once that is worth a
// frame.
func (c *Conn) grant(n int) {
	if c.granted.read += n; c.granted.read >= connWindow/4 {
		c.out.Pending = frame.AppendWindowUpdate(c.out.Buffer(), 0, uint32(c.granted.read))
		c.granted.left += c.granted.read
		c.granted.read = 0
		c.kick()
	}
}

// widen returns how many bytes more a pod may send before they are read: if it says, or
// shows, that there is more to come than its first window holds.
func (s *Stream) widen() int {
	const more = streamWindow - firstWindow
	small := s.head.Length >= 0 && s.head.Length <= firstWindow || s.head.Length < 0 && s.received < firstWindow/4
	if s.wide || small || s.ahead != nil && !s.ahead.Take(more) {
		return 0
	}
	s.wide = true
	return more
}

// grantStream is grant for one stream, of which n bytes were read.
func (c *Conn) grantStream(s *Stream, n int) {
	if s.ended || s.err != nil || c.over {
		return
	}
	worth := firstWindow / 4
	if s.wide {
		worth = streamWindow / 4
	}
	if s.granted.read += n; s.granted.read >= worth {
		c.out.Pending = frame.AppendWindowUpdate(c.out.Buffer(), s.send.ID, uint32(s.granted.read))
		s.granted.left += s.granted.read
		s.granted.read = 0
		c.kick()
	}
}

// refuse resets a stream that broke the rules. Who waits for it is told why.
func (c *Conn) refuse(id uint32, code http2.ErrCode, why string) error {
	if s := c.streams[id]; s != nil {
		c.abandon(s, fmt.Errorf("%w: %s", ErrMalformed, why))
	}
	c.out.Pending = frame.AppendReset(c.out.Buffer(), id, code)
	c.kick()
	return c.charge(frame.CostRefusal)
}

// abandon forgets a stream that did not come to its end; whoever waits for it is
// told.
func (c *Conn) abandon(s *Stream, why error) {
	s.err = why
	c.out.Forget(&s.send)
	c.forget(s)
	signal(s.arrived)
	signal(s.sent)
}

// forgetIfDone closes a stream that has ended on both sides.
func (c *Conn) forgetIfDone(s *Stream) {
	if s.asked && s.ended {
		c.forget(s)
	}
}

func (c *Conn) forget(s *Stream) {
	delete(c.streams, s.send.ID)
	if len(c.streams) == 0 {
		c.idleSince = time.Now()
	}
	c.endIfDone()
}
