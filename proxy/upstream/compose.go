package upstream

import (
	"strconv"

	"quayside.io/proxy/exchange"
)

// compose writes the request head, and a body in memory after it, into t.out. It
// is written once however often it is sent.
func (t *transaction) compose() {
	r := &t.ex.Request
	whole := t.inMemory()
	b := t.out[:0]
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	if t.rules.HTTP10 {
		b = append(b, " HTTP/1.0\r\nHost: "...)
	} else {
		b = append(b, " HTTP/1.1\r\nHost: "...)
	}
	b = append(b, r.Host...)
	b = append(b, "\r\n"...)
	for _, f := range r.Header.Fields() {
		b = appendField(b, f.Name, f.Value)
	}
	switch {
	case r.Upgrade != nil:
		b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
		b = append(b, r.Upgrade...)
		b = append(b, "\r\n"...)
		if r.UpgradeKey != nil {
			b = appendField(b, []byte("Sec-WebSocket-Key"), r.UpgradeKey)
		}
	case r.TakesTrailers && !t.rules.HTTP10:
		b = append(b, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	switch {
	case r.Body == nil && !wantsLength(r.Method):
	case r.Body == nil:
		b = append(b, "Content-Length: 0\r\n"...)
	case !t.streaming || r.Length >= 0:
		n := r.Length
		if !t.streaming {
			n = int64(len(whole))
		}
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, n, 10)
		b = append(b, "\r\n"...)
	default:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		if announced := r.Trailer.Announced; announced != nil {
			b = append(b, "Trailer: "...)
			b = append(b, announced...)
			b = append(b, "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	t.out = append(b, whole...)
}

// inMemory returns the request's body where it is small and in memory. Any other
// is streamed.
func (t *transaction) inMemory() []byte {
	body := t.ex.Request.Body
	t.streaming, t.kept = body != nil, nil
	if w, ok := body.(exchange.Whole); ok {
		if b, whole := w.Whole(); whole && len(b) <= smallBody {
			t.streaming = false
			return b
		}
	}
	if r, ok := body.(exchange.Rewinder); ok && r.Rewind() {
		t.kept = r
	}
	return nil
}

func appendField(b, name, value []byte) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// wantsLength reports whether a request without a body has to say so, because
// its method usually comes with one (RFC 9110 section 8.6).
func wantsLength(method []byte) bool {
	switch string(method) {
	case "POST", "PUT", "PATCH":
		return true
	}
	return false
}
