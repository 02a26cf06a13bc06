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

// simple returns the size of the request that b begins with, if it is a simple one: GET
// or HEAD by HTTP/1.1 of a plain path at a plain host, all of whose head is there, and
// that says nothing of a body, an expectation or an upgrade. About any other fasthttp has
// the first word; this is not a parser, and need not be right about what is malformed as
// long as it sees the end where fasthttp does, which the caller compares.
func simple(b []byte) (size int, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte{'\n'})
	if !ok || !simpleLine(line) {
		return 0, false
	}
	for hosts := 0; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return 0, false
		}
		line, rest = rest[:i], rest[i+1:]
		if i > 0 && line[i-1] == '\r' {
			line = line[:i-1]
		}
		if len(line) == 0 {
			return len(b) - len(rest), hosts == 1
		}
		switch name, value := fieldOf(line); {
		case name == nil:
			return 0, false
		case exchange.EqualFold(name, "host"):
			if hosts++; !simpleHost(exchange.TrimSpace(value)) {
				return 0, false
			}
		case !simpleName(name):
			return 0, false
		}
	}
}

// simpleLine reports whether a request line asks for GET or HEAD of a plain path.
func simpleLine(line []byte) bool {
	target, ok := bytes.CutPrefix(line, []byte("GET "))
	if !ok {
		if target, ok = bytes.CutPrefix(line, []byte("HEAD ")); !ok {
			return false
		}
	}
	target, ok = bytes.CutSuffix(target, []byte(" HTTP/1.1\r"))
	if !ok || len(target) == 0 || target[0] != '/' || len(target) > 1 && target[1] == '/' {
		return false
	}
	for _, c := range target {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// fieldOf splits a field line; the name is nil where there is none.
func fieldOf(line []byte) (name, value []byte) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 || line[0] == ' ' || line[0] == '\t' {
		return nil, nil
	}
	return line[:i], line[i+1:]
}

// simpleName reports whether a field by that name leaves a request simple.
func simpleName(name []byte) bool {
	switch len(name) {
	case len("Expect"):
		return !exchange.EqualFold(name, "expect")
	case len("Upgrade"):
		return !exchange.EqualFold(name, "upgrade")
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
