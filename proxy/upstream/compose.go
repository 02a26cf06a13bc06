package upstream

import (
	"io"
	"strconv"
)

// compose writes the request head, and a small body after it, into t.out. It is
// written once however often it is sent.
func (t *transaction) compose() error {
	r := &t.ex.Request
	b := t.out[:0]
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.Host...)
	b = append(b, "\r\n"...)
	for _, f := range r.Header.Fields() {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	switch {
	case r.Upgrade != nil:
		b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
		b = append(b, r.Upgrade...)
		b = append(b, "\r\n"...)
	case r.Body == nil && !wantsLength(r.Method):
	case r.Body == nil:
		b = append(b, "Content-Length: 0\r\n"...)
	case r.Length >= 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.Length, 10)
		b = append(b, "\r\n"...)
	default:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	b = append(b, "\r\n"...)
	t.out = b
	if r.Body == nil || !t.composedWhole() {
		return nil
	}
	return t.composeBody(int(r.Length))
}

// composedWhole reports whether the request's body is part of t.out.
func (t *transaction) composedWhole() bool {
	n := t.ex.Request.Length
	return n >= 0 && n <= smallBody
}

func (t *transaction) composeBody(n int) error {
	at := len(t.out)
	t.out = append(t.out, make([]byte, n)...)
	if _, err := io.ReadFull(t.ex.Request.Body, t.out[at:]); err != nil {
		return &failure{reason: clientBody, err: err}
	}
	return nil
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
