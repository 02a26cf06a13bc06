package upstream

import (
	"context"
	"crypto/sha1" // RFC 6455 section 4.2.2 wants no other
	"encoding/base64"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/socket"
)

// tunnel is an upgraded connection: bytes both ways until either side ends. It
// is known to the engine, so that a drain can end it.
type tunnel struct {
	engine  *Engine
	pod     podEnd
	client  io.ReadWriteCloser
	first   []byte // what the pod sent behind its 101
	silence time.Duration
	picker  *balance.Picker
	counted *balance.Health // of the endpoint, while its load includes the tunnel
	heard   atomic.Int64

	linger    sync.Once
	lingering *time.Timer // from when one direction has ended
}

// podEnd is the pod's end of a tunnel. One goroutine reads and one writes; Close may be
// called by any.
type podEnd interface {
	// Read waits for as long as the deadline says.
	io.Reader
	SetReadDeadline(t time.Time) error
	// Write gives up a pod that does not read. Front ends do so with clients.
	io.Writer
	// CloseWrite ends the direction to the pod, in order.
	CloseWrite() error
	// Reset ends it as the client has, who did not end in order.
	Reset()
	// Close ends both directions.
	Close() error
	// release gives the end back, once nobody reads or writes.
	release()
}

// lingerAfterEnd is how long the other direction of a tunnel may go on after
// one has ended.
const lingerAfterEnd = 5 * time.Second

// waitingBuffer holds what most websocket messages of clients need, and those of pods
// behind TLS or HTTP/2. Other pods are waited for without.
const waitingBuffer = 1 << 10

// switchProtocols hands the connection over to the tunnel that the front end
// opens once it has sent the 101.
func (t *transaction) switchProtocols(hop exchange.Hop) error {
	asked := t.ex.Request.Upgrade
	if asked == nil || hop.Upgrade == nil {
		return t.bad(errors.New("it switches protocols unasked"))
	}
	r := &t.ex.Response
	r.Status, r.Body, r.Length = 101, t, 0
	r.Header.AddBorrowed([]byte("Upgrade"), hop.Upgrade)
	t.keep = false
	first := append([]byte(nil), (*t.buf)[t.start:t.end]...)
	r.Upgraded = t.tunnelTo(newConnEnd(t.conn, t.rules.SendTimeout), first, t.silence())
	return nil
}

// tunnelTo returns what connects a client to the endpoint that was asked, until both
// have ended. The exchange is over by then.
func (t *transaction) tunnelTo(pod podEnd, first []byte, silence time.Duration) func(client io.ReadWriteCloser) {
	return func(client io.ReadWriteCloser) {
		n := &tunnel{engine: t.engine, pod: pod, client: client, first: first, silence: silence, picker: &t.backend.picker, counted: t.counted}
		t.conn, t.stream, t.counted = nil, nil, nil
		t.release()
		n.run()
	}
}

// silence is how long both sides of a tunnel may be silent.
func (t *transaction) silence() time.Duration {
	if f := t.ex.Request.Forwarding; f != nil && f.ReadTimeout > 0 {
		return f.ReadTimeout // as nginx has it: who sets one means WebSockets
	}
	return t.engine.options.UpgradeTimeout
}

// checkUpgrade sees to it that a pod which was sent a key of ours has read it (RFC
// 6455 section 4.1), or says no.
func (t *transaction) checkUpgrade(status int, hop exchange.Hop) error {
	key, h := t.ex.Request.UpgradeKey, &t.ex.Response.Header
	wrong := ""
	switch {
	case key == nil:
		return nil
	case status >= 200 && status <= 299:
		wrong = "it does not switch to WebSocket"
	case status == 101 && !exchange.EqualFold(hop.Upgrade, "websocket"):
		wrong = "it switches to another protocol"
	case status == 101 && string(h.Get("Sec-WebSocket-Accept")) != acceptOf(key):
		wrong = "its Sec-WebSocket-Accept does not fit the key"
	}
	if wrong != "" {
		return &failure{reason: badUpgrade, err: errors.New(wrong), endpoint: t.targets.endpoints[t.at]}
	}
	h.Del("Sec-WebSocket-Accept")
	return nil
}

// acceptOf is what who reads a WebSocket handshake with a key answers.
func acceptOf(key []byte) string {
	const suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	sum := sha1.Sum(append(key[:len(key):len(key)], suffix...))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// run copies until both directions have ended.
func (n *tunnel) run() {
	defer n.pod.release()
	if n.counted != nil {
		defer n.picker.End(n.counted)
	}
	defer n.client.Close()
	if !n.engine.enter(n) {
		return
	}
	defer n.engine.left(n)
	n.heard.Store(time.Now().UnixNano())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.endPod(n.move(n.pod, n.client, once))
		n.linger.Do(n.startLinger)
	}()
	n.endClient(n.down())
	n.linger.Do(n.startLinger)
	<-ended
	n.lingering.Stop()
}

// startLinger bounds how long one direction outlives the other.
func (n *tunnel) startLinger() { n.lingering = time.AfterFunc(lingerAfterEnd, n.close) }

// endPod tells the pod how the client has ended: in order, or not.
func (n *tunnel) endPod(err error) {
	switch {
	case err == nil:
		n.pod.CloseWrite()
	case errors.As(err, new(*exchange.StreamReset)):
		n.pod.Reset() // a reset comes out as one
	default:
		n.pod.Close()
	}
}

// endClient tells the client how the pod has ended.
func (n *tunnel) endClient(err error) {
	if half, ok := n.client.(interface{ CloseWrite() error }); ok && err == nil {
		half.CloseWrite()
		return
	}
	n.client.Close()
}

// close wakes both directions.
func (n *tunnel) close() {
	n.client.Close()
	n.pod.Close()
}

// copy moves bytes until reading or writing fails, and returns the error if it was
// reading, and not its end. It waits with a small buffer and takes a large one from
// the pool for as long as there is much to move.
func (n *tunnel) copy(to io.Writer, from io.Reader) error {
	var small [waitingBuffer]byte
	var large *[]byte
	defer func() {
		if large != nil {
			n.engine.buffers.Put(large)
		}
	}()
	for buf := small[:]; ; {
		k, err := from.Read(buf)
		if on, err := n.pass(to, buf[:k], err); !on {
			return err
		}
		switch {
		case large == nil && k == len(small):
			large, _ = n.engine.buffers.Get().(*[]byte)
			buf = *large
		case large != nil && k < len(*large): // that was all there is for now
			n.engine.buffers.Put(large)
			large, buf = nil, small[:]
		}
	}
}

// pass writes what was read. It reports whether there is more to come, and else what
// copy returns.
func (n *tunnel) pass(to io.Writer, read []byte, err error) (on bool, _ error) {
	if len(read) > 0 {
		n.heard.Store(time.Now().UnixNano())
		if _, err := to.Write(read); err != nil {
			if isTimeout(err) {
				n.close() // it does not read, so it need not be told of the end either
			}
			return false, nil
		}
	}
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// move is copy, with a buffer only where one is needed to wait.
func (n *tunnel) move(to io.Writer, from io.Reader, wait waiting) error {
	s, ok := from.(socket.Reader)
	if !ok {
		return n.copy(to, waitingReader{from, wait})
	}
	ahead, raw := s.Socket()
	if on, err := n.pass(to, ahead, nil); !on {
		return err
	}
	if raw == nil {
		return n.copy(to, waitingReader{from, wait})
	}
	return n.pull(to, from, raw, wait)
}

// once is a read that waits as long as it takes.
func once(read func() (int, error)) (int, error) { return read() }

// down moves bytes to the client, and is the one of the two directions that
// watches for silence in both.
func (n *tunnel) down() error {
	if len(n.first) > 0 {
		if _, err := n.client.Write(n.first); err != nil {
			return nil
		}
	}
	return n.move(n.client, n.pod, n.patient)
}

// patient reads until both directions have been silent for too long.
func (n *tunnel) patient(read func() (int, error)) (int, error) {
	for {
		until := time.Unix(0, n.heard.Load()).Add(n.silence)
		if err := n.pod.SetReadDeadline(until); err != nil {
			return 0, err
		}
		k, err := read()
		if k == 0 && isTimeout(err) && time.Since(time.Unix(0, n.heard.Load())) < n.silence {
			continue // the client spoke meanwhile
		}
		if isTimeout(err) {
			n.close()
		}
		return k, err
	}
}

// waitingReader waits as waiting has it.
type waitingReader struct {
	io.Reader
	waiting waiting
}

func (r waitingReader) Read(p []byte) (int, error) {
	return r.waiting(func() (int, error) { return r.Reader.Read(p) })
}

// waiting is how long a read waits: it calls read, maybe more than once.
type waiting func(read func() (int, error)) (int, error)

// connEnd is a connection as a podEnd.
type connEnd struct {
	*conn
	timeout time.Duration // of a Write
}

// newConnEnd has who speaks to a pod whose machine is gone find that out, and connect to
// another.
func newConnEnd(c *conn, timeout time.Duration) *connEnd {
	c.endSilent(timeout)
	return &connEnd{c, timeout}
}

func (e *connEnd) Write(p []byte) (int, error) {
	if err := e.SetWriteDeadline(time.Now().Add(e.timeout)); err != nil {
		return 0, err
	}
	return e.conn.Write(p)
}

func (e *connEnd) Reset() {
	e.SetLinger(0)
	e.conn.Close()
}

func (e *connEnd) Close() error { return e.conn.Close() }

func (e *connEnd) release() { e.endpoint.discard(e.conn) }

var _ podEnd = (*connEnd)(nil)

func (e *Engine) enter(n *tunnel) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return false
	}
	e.tunnels[n] = struct{}{}
	e.tunneled.Add(1)
	return true
}

func (e *Engine) left(n *tunnel) {
	e.mu.Lock()
	delete(e.tunnels, n)
	e.mu.Unlock()
	e.tunneled.Done()
}

// Tunnels is the number of upgraded connections.
func (e *Engine) Tunnels() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tunnels)
}

// DrainTunnels refuses new upgrades, waits for those there are until ctx ends,
// and then ends them: the last step of a drain.
func (e *Engine) DrainTunnels(ctx context.Context) {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() { e.tunneled.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	e.mu.Lock()
	for n := range e.tunnels {
		n.close()
	}
	e.mu.Unlock()
	<-ended
}
