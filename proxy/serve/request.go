package serve

import (
	"bytes"
	"net/netip"
	"strconv"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// head is what is known of a request's head beside what the exchange has.
type head struct {
	simple   bool   // readSimple has read it
	http11   bool   // its version is HTTP/1.1
	bodiless bool   // it asks for a response without a body: HEAD
	line     int    // the size of the request line
	fields   []byte // the lines behind it, as they came
}

// read turns the request into the exchange. It returns why the request is refused, or
// nothing.
func (rc *requestContext) read() (fault string) {
	r := &rc.ex.Request
	if !rc.head.simple {
		fault = rc.readParsed()
	}
	r.Protocol = "HTTP/1.0"
	if rc.head.http11 {
		r.Protocol = "HTTP/1.1"
	}
	r.Size = int64(rc.head.size())
	r.Peer, r.Handshake = rc.client, handshakeOf(rc.conn)
	r.TLS, r.Received = rc.client.secret, rc.received
	r.Client = netip.AddrPortFrom(rc.client.identify(), 0)
	r.Port = rc.client.port
	if fault != "" {
		return fault
	}
	if fault = rc.readTarget(); fault != "" {
		return fault
	}
	if !exchange.ValidHost(r.Host) {
		return "the host is malformed"
	}
	rc.hop = r.Header.StripHop()
	r.TakesTrailers = rc.hop.Trailers
	if !rc.head.simple {
		rc.readBody(rc.ctx.Request.Header.ContentLength())
	}
	if rc.hop.Upgrade != nil && r.Body == nil && rc.head.http11 && !isHTTP2(rc.hop.Upgrade) {
		r.Upgrade = rc.hop.Upgrade
	}
	var ok bool
	if rc.path, ok = route.Normalize(rc.path[:0], r.Target); !ok {
		return "the target is malformed"
	}
	r.Path = rc.path
	return ""
}

// readParsed reads what fasthttp has parsed.
//
// It has split lines, checked characters and measured the body. This adds what a proxy
// must refuse beyond: whatever the next reader of the request might take for something
// else.
func (rc *requestContext) readParsed() (fault string) {
	h, r := &rc.ctx.Request.Header, &rc.ex.Request
	r.Method, r.Target, r.Host = h.Method(), h.RequestURI(), h.Host()
	rc.head.http11, rc.head.bodiless = h.IsHTTP11(), h.IsHead()
	rc.head.line, rc.head.fields = len(r.Method)+len(" ")+len(r.Target)+len(" HTTP/1.1"), h.RawHeaders()
	if !rc.head.http11 && string(h.Protocol()) != "HTTP/1.0" {
		return "the version is neither HTTP/1.0 nor HTTP/1.1"
	}
	if string(r.Method) == "CONNECT" || string(r.Method) == "TRACE" {
		return "the method is not served here"
	}
	return rc.readFields(rc.head.fields)
}

// size is how many bytes a head has.
func (h *head) size() int { return h.line + len("\r\n") + len(h.fields) }

// tooLarge returns the status and the text for a head beyond the limits, or 0. fasthttp
// has refused what is longer than its buffer, which may have been made for other limits.
func (rc *requestContext) tooLarge(l *Limits) (status int, text string) {
	h := &rc.head
	switch {
	case l.LineSize > 0 && h.line > l.LineSize:
		return 414, "414 URI Too Long: the limit of the request line is " + strconv.Itoa(l.LineSize) + " bytes\n"
	case h.size() > l.HeadSize:
		return 431, "431 Request Header Fields Too Large: the limit is " + strconv.Itoa(l.HeadSize) + " bytes\n"
	case l.LineSize > 0:
		for field := range bytes.SplitSeq(h.fields, []byte{'\n'}) {
			if len(bytes.TrimSuffix(field, []byte{'\r'})) > l.LineSize {
				return 431, "431 Request Header Fields Too Large: the limit of one is " + strconv.Itoa(l.LineSize) + " bytes\n"
			}
		}
	}
	return 0, ""
}

// readFields splits the raw header. The names keep the spelling of the client.
func (rc *requestContext) readFields(raw []byte) (fault string) {
	var sized, coded bool
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			return "a header field has no end"
		}
		line := raw[:i]
		raw = raw[i+1:]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := rc.cutField(line)
		if !ok {
			return "a header field is malformed or folded"
		}
		switch len(name) {
		case len("Host"):
			if exchange.EqualFold(name, "host") {
				continue
			}
		case len("Expect"):
			if exchange.EqualFold(name, "expect") {
				if !exchange.EqualFold(value, "100-continue") {
					return "the expectation is unknown"
				}
				continue // it was met before the body was read
			}
		case len("Content-Length"):
			sized = sized || exchange.EqualFold(name, "content-length")
		case len("Transfer-Encoding"):
			if exchange.EqualFold(name, "transfer-encoding") {
				if coded || !exchange.EqualFold(value, "chunked") {
					return "the transfer coding is not chunked alone"
				}
				coded = true
			}
		}
		rc.ex.Request.Header.AddBorrowed(name, value)
	}
	if sized && coded {
		return "there are both Content-Length and Transfer-Encoding"
	}
	return ""
}

// cutField parts the line of a field, and notes what stands in its name. That has to be a token.
func (rc *requestContext) cutField(line []byte) (name, value []byte, ok bool) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return nil, nil, false
	}
	spelling := exchange.SpellingOf(line[:colon])
	rc.ex.Request.Names |= spelling
	return line[:colon], exchange.TrimSpace(line[colon+1:]), spelling&exchange.NoToken == 0
}

// readTarget brings an absolute-form target into origin form; its authority
// replaces the Host field (RFC 9112 section 3.2.2).
func (rc *requestContext) readTarget() (fault string) {
	r := &rc.ex.Request
	if len(r.Target) > 0 && r.Target[0] == '/' {
		return ""
	}
	scheme, rest, ok := bytes.Cut(r.Target, []byte("://"))
	if !ok || !exchange.EqualFold(scheme, "http") && !exchange.EqualFold(scheme, "https") {
		return "the target is neither a path nor a URL"
	}
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	r.Host, r.Target = rest[:end], rest[end:]
	if len(r.Target) == 0 || r.Target[0] != '/' {
		// Rare enough to allocate: "http://host?query" has an empty path.
		r.Target = append([]byte{'/'}, r.Target...)
	}
	if len(r.Host) == 0 {
		return "the target names no host"
	}
	return ""
}

// isHTTP2 reports whether an Upgrade field asks for HTTP/2 among others. Through
// such a tunnel a client would go on to send requests to the backend that no
// rule was asked about, so the offer is not passed on (RFC 9113 section 3.1 has
// given it up, and anybody may ignore it).
func isHTTP2(upgrade []byte) bool {
	for protocol := range bytes.SplitSeq(upgrade, []byte{','}) {
		if protocol = exchange.TrimSpace(protocol); len(protocol) >= 3 && exchange.EqualFold(protocol[:3], "h2c") {
			return true
		}
	}
	return false
}
