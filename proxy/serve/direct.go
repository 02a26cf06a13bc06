package serve

import (
	"bytes"
	"crypto/tls"
	"net"
	"time"

	"quayside.io/proxy/exchange"
)

// directProtocol stands where a negotiated protocol does for connections whose simple
// requests are served by direct. No client can name it.
const directProtocol = "quayside/direct"

// directClient is a client without TLS whose simple requests are served by direct. To
// fasthttp it looks like one with TLS that has negotiated something else.
type directClient struct {
	*client
	handedOn bool // fasthttp has the client itself by now
}

// Handshake is called by fasthttp.
func (c *directClient) Handshake() error { return nil }

// ConnectionState is called by fasthttp.
func (c *directClient) ConnectionState() tls.ConnectionState {
	return tls.ConnectionState{NegotiatedProtocol: directProtocol}
}

// SetDeadline is called by fasthttp where it hands a connection on, to forget its own
// deadline: it is ours.
func (c *directClient) SetDeadline(time.Time) error { return nil }

// Close implements net.Conn.
func (c *directClient) Close() error {
	if c.handedOn {
		return nil
	}
	return c.client.Close()
}

var (
	_ connection = (*directClient)(nil)
	_ net.Conn   = (*directClient)(nil)
)

// readSimple reads the request that b begins with, if it is a simple one: GET or HEAD by
// HTTP/1.1 of a plain path at a plain host, all of whose head is there, and that says
// nothing of a body, a trailer, an expectation or an upgrade. It is strict: about whatever
// is not written as the grammar has it (RFC 9112 section 5), fasthttp has the first word.
// What is read borrows from b. Reports it false, the request is to be forgotten.
func (rc *requestContext) readSimple(b []byte) (size int, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 || !rc.readSimpleLine(b[:i]) {
		return 0, false
	}
	first := i + 1
	for at, hosts := first, 0; ; {
		i = bytes.IndexByte(b[at:], '\n')
		if i < 1 || b[at+i-1] != '\r' {
			return 0, false
		}
		line := b[at : at+i-1]
		at += i + 1
		if len(line) == 0 {
			rc.head.line, rc.head.fields = first-len("\r\n"), b[first:at]
			return at, hosts == 1
		}
		name, value, ok := rc.cutField(line)
		switch {
		case !ok || !exchange.IsFieldValue(value) || !simpleName(name):
			return 0, false
		case len(name) == len("Host") && exchange.EqualFold(name, "host"):
			if hosts++; !simpleHost(value) {
				return 0, false
			}
			rc.ex.Request.Host = value
		default:
			rc.ex.Request.Header.AddBorrowed(name, value)
		}
	}
}

// readSimpleLine reads a request line if it asks for GET or HEAD of a plain path.
func (rc *requestContext) readSimpleLine(line []byte) bool {
	size := len("GET")
	if !bytes.HasPrefix(line, []byte("GET ")) {
		if size = len("HEAD"); !bytes.HasPrefix(line, []byte("HEAD ")) {
			return false
		}
	}
	target, ok := bytes.CutSuffix(line[size+1:], []byte(" HTTP/1.1\r"))
	if !ok || len(target) == 0 || target[0] != '/' || len(target) > 1 && target[1] == '/' {
		return false
	}
	for _, c := range target {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	r := &rc.ex.Request
	r.Method, r.Target = line[:size], target
	rc.head.http11, rc.head.bodiless = true, size == len("HEAD")
	return true
}

// simpleName reports whether a field by that name leaves a request simple.
func simpleName(name []byte) bool {
	switch len(name) {
	case len("Expect"):
		return !exchange.EqualFold(name, "expect")
	case len("Upgrade"): // and of Trailer
		return !exchange.EqualFold(name, "upgrade") && !exchange.EqualFold(name, "trailer")
	case len("Content-Length"):
		return !exchange.EqualFold(name, "content-length")
	case len("Transfer-Encoding"):
		return !exchange.EqualFold(name, "transfer-encoding")
	}
	return true
}

// simpleHost reports whether a host is a name or an address of version 4, with or
// without a port.
func simpleHost(host []byte) bool {
	name, port, _ := bytes.Cut(host, []byte{':'})
	for _, c := range name {
		if (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && (c < 'A' || 'Z' < c) && c != '-' && c != '.' {
			return false
		}
	}
	for _, c := range port {
		if c < '0' || '9' < c {
			return false
		}
	}
	return len(name) > 0
}
