package h2

import (
	"golang.org/x/net/http2"

	"quayside.io/proxy/frame"
)

// handle takes one frame. Its error is a *frame.Fault, or an http2.StreamError, or that
// of the connection.
func (c *conn) handle(f http2.Frame) error {
	if !c.begun {
		c.begun = true
		if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
			return frame.Fail(http2.ErrCodeProtocol, "the first frame is not SETTINGS")
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
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return frame.Fail(http2.ErrCodeProtocol, "a client pushes nothing")
	}
	return c.pay(frame.CostFrame)
}

// onSettings applies the client's settings, in order, and says so.
func (c *conn) onSettings(f *http2.SettingsFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		}
	}
	c.out.Pending = frame.AppendHeader(c.out.Buffer(), 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.fill()
	c.kick()
	return nil
}

// senders are those of all streams.
func (c *conn) senders(yield func(*frame.Sender) bool) {
	for _, s := range c.streams {
		if !yield(&s.send) {
			return
		}
	}
}

func (c *conn) onWindowUpdate(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	c.fill()
	c.kick()
	return nil
}

// isIdle reports whether the client has not opened the stream yet (RFC 9113 section
// 5.1); those with even numbers it never can.
func (c *conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.last }

func (c *conn) onReset(f *http2.RSTStreamFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.StreamID]
	if s == nil {
		if c.isIdle(f.StreamID) {
			return frame.Fail(http2.ErrCodeProtocol, "RST_STREAM for a stream that was never opened")
		}
		return c.charge(frame.CostFrame)
	}
	c.server.stats.resets.Add(1)
	c.abandon(s, errReset, false)
	return c.charge(frame.CostRefusal)
}

func (c *conn) onPing(f *http2.PingFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.IsAck() {
		if string(f.Data[:]) == partingPing {
			c.lastCall()
		}
		return c.charge(frame.CostFrame)
	}
	if err := c.charge(frame.CostFrame); err != nil {
		return err
	}
	c.out.Pending = append(frame.AppendHeader(c.out.Buffer(), len(f.Data), http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...)
	c.kick()
	return nil
}

// onData takes part of a request's body.
func (c *conn) onData(f *http2.DataFrame) error {
	data, size := f.Data(), int(f.Length) // with the padding, which counts
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.StreamID]
	if s == nil && c.isIdle(f.StreamID) {
		return frame.Fail(http2.ErrCodeProtocol, "DATA for a stream that was never opened")
	}
	if size > c.granted.left {
		return frame.Fail(http2.ErrCodeFlowControl, "more DATA than the connection's window")
	}
	c.granted.left -= size
	if s == nil || s.ended {
		c.grant(nil, size)
		if _, reset := c.closed.find(f.StreamID); s == nil && reset { // sent before our RST_STREAM had arrived
			if len(data) >= frame.WorthUpdate {
				return nil // no more than DATA that is discarded
			}
			if c.closed.late > 0 && len(data) > 0 {
				c.closed.late--
				return nil
			}
			return c.charge(frame.CostFrame)
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if size > s.granted.left {
		c.grant(nil, size)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.granted.left -= size
	if s.head.length >= 0 && s.received+int64(len(data)) > s.head.length {
		c.grant(nil, size)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	s.received += int64(len(data))
	if s.deaf {
		c.grant(nil, size)
	} else {
		s.unread.Write(data)
		c.grant(s, size-len(data))
	}
	if f.StreamEnded() {
		return c.endOf(s)
	}
	signal(s.arrived)
	if len(data) == 0 {
		return c.charge(frame.CostFrame)
	}
	c.budget.Earn(frame.EarnFrame)
	return nil
}

// endOf notes that the request has come in full.
func (c *conn) endOf(s *stream) error {
	if s.head.length >= 0 && s.received != s.head.length {
		return http2.StreamError{StreamID: s.send.ID, Code: http2.ErrCodeProtocol}
	}
	s.ended = true
	signal(s.arrived)
	if s.answered { // a tunnel, which has ended on our side
		c.forget(s, false)
	}
	return nil
}

// grant notes that n bytes of a stream, or of none, were read or dropped, and lets
// the client send as many more once that is worth a frame.
func (c *conn) grant(s *stream, n int) {
	if c.over || n == 0 {
		return
	}
	if c.granted.read += n; c.granted.read >= connWindow/4 {
		c.out.Pending = frame.AppendWindowUpdate(c.out.Buffer(), 0, uint32(c.granted.read))
		c.granted.left += c.granted.read
		c.granted.read = 0
	}
	if s == nil || s.ended || c.streams[s.send.ID] != s {
		c.kick()
		return
	}
	if s.granted.read += n; s.granted.read >= streamWindow/4 {
		c.out.Pending = frame.AppendWindowUpdate(c.out.Buffer(), s.send.ID, uint32(s.granted.read))
		s.granted.left += s.granted.read
		s.granted.read = 0
	}
	c.kick()
}

// refuse resets a stream that broke the rules, or came too many.
func (c *conn) refuse(id uint32, code http2.ErrCode) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset(id, code)
	return c.charge(frame.CostRefusal)
}

// reset ends a stream at our will.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	if s := c.streams[id]; s != nil {
		c.abandon(s, errReset, true)
	} else {
		c.closed.add(id, true)
	}
	c.out.Pending = frame.AppendReset(c.out.Buffer(), id, code)
	c.kick()
}

// abandon forgets a stream that did not come to its end; whoever waits for it is
// told.
func (c *conn) abandon(s *stream, why error, byUs bool) {
	s.err = why
	c.out.Forget(&s.send)
	s.gone.Store(true)
	c.grant(nil, s.unread.Drop())
	c.forget(s, byUs)
	signal(s.arrived)
	signal(s.sent)
	signal(s.wake)
}

// forget closes a stream.
func (c *conn) forget(s *stream, byUs bool) {
	delete(c.streams, s.send.ID)
	c.closed.add(s.send.ID, byUs)
	c.partIfDone()
}

// signal wakes who waits on ch, now or the next time.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
