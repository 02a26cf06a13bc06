package h2

import (
	"crypto/rand"
	"encoding/base64"
	"errors"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// websocket is the protocol that streams may become a tunnel of (RFC 8441).
const websocket = "websocket"

// connect makes of an extended CONNECT the request that a client of HTTP/1.1 would
// have sent, so that filters, routes and pods need not know the difference. Any
// other protocol is refused later.
func (s *stream) connect() {
	h, r := &s.head, &s.ex.Request
	s.connects, h.expects = true, false
	if !exchange.EqualFold(h.spoken, websocket) {
		return
	}
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails
	base64.StdEncoding.Encode(h.key[:], nonce[:])
	r.Header.Del("sec-websocket-key")
	r.Method, r.Upgrade, r.UpgradeKey = s.keep("GET"), s.keep(websocket), h.key[:]
}

// refusePretence answers for a backend that sent 2xx without switching to WebSocket: to this
// client any success is a tunnel.
func (s *stream) refusePretence() {
	if r := &s.ex.Response; r.Upgraded == nil && r.Status >= 200 && r.Status <= 299 {
		s.closeBody()
		s.ex.Answer(502, "502 Bad Gateway: nothing here speaks WebSocket\n")
	}
}

// grantBlock is headBlock for the answer that opens a tunnel: RFC 8441 section 4
// has a 200 where HTTP/1.1 has a 101, and a tunnel has no length.
func (s *stream) grantBlock() []byte {
	s.ex.Response.Header.Del("Upgrade")
	return s.appendFields(frame.AppendStatus(s.block[:0], 200), -1)
}

// tunnel hands the stream over to who waits at its other end, until both directions
// have ended.
func (s *stream) tunnel() {
	open := s.ex.Response.Upgraded
	s.ex.Response.Body = nil // the tunnel's from now on
	t := &tunnel{conn: s.conn, stream: s}
	open(t)
	t.conn.mu.Lock()
	t.over = true
	t.conn.mu.Unlock()
}

// tunnel is a stream as the connection of a WebSocket's client. END_STREAM is to it
// what FIN is to TCP, and RST_STREAM what RST is (RFC 8441 section 5). One goroutine
// reads, one writes; Close may come from any, also late.
type tunnel struct {
	conn   *conn
	stream *stream
	over   bool // the stream is somebody else's; the connection's lock guards it
}

// Read implements io.Reader. It waits for as long as it takes: silence is judged by
// who hears both sides.
func (t *tunnel) Read(p []byte) (int, error) {
	for {
		n, err := t.stream.read(p)
		switch {
		case errors.Is(err, errReset):
			return 0, &exchange.StreamReset{Code: uint32(http2.ErrCodeCancel)}
		case n > 0 || err != nil || len(p) == 0:
			return n, err
		}
		<-t.stream.arrived
	}
}

// Write implements io.Writer. It returns when the client has granted window for all
// of it, or none for too long.
func (t *tunnel) Write(p []byte) (int, error) {
	if err := t.stream.transmit(frame.Part{Data: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite ends the direction to the client.
func (t *tunnel) CloseWrite() error { return t.stream.transmit(frame.Part{Last: true}) }

// Close resets what has not ended.
func (t *tunnel) Close() error {
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	s := t.stream
	if t.over {
		return nil
	}
	s.deaf = true
	t.conn.grant(nil, s.unread.Drop())
	if t.conn.streams[s.send.ID] == s {
		t.conn.reset(s.send.ID, http2.ErrCodeCancel)
	}
	signal(s.arrived)
	return nil
}
