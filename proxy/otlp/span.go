package otlp

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
)

// Record is one exchange that has ended. Keep it for the next: it holds the memory of
// the message.
type Record struct {
	Exchange *exchange.Exchange
	Place    accesslog.Place
	// Name is that of the span.
	Name []byte
	// Ended is when, and Took the time from the end of the request's head until then.
	Ended time.Time
	Took  time.Duration
	// Broken says that the response ended early.
	Broken bool

	message []byte
}

// maxText is the longest text of a span, in bytes as it came. So a span has at most some
// 25 KiB, of which bytes that are no UTF-8 make three quarters.
const maxText = 1024

// The numbers of the fields of trace.proto, opentelemetry-proto 1.9.
const (
	spanTrace      = 1
	spanID         = 2
	spanState      = 3
	spanParent     = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanStatus     = 15
	spanFlags      = 16

	statusMessage = 2
	statusCode    = 3
)

// Values of those fields.
const (
	kindServer  = 2
	statusError = 2
	// That Span.flags say whether the parent is another process's, and that it is.
	knowsRemote = 0x100
	isRemote    = 0x200
)

// Span returns the message of r. It is valid until the next one of r.
func (r *Record) Span() []byte {
	ex := r.Exchange
	s := &ex.Span
	b := appendBytes(r.message[:0], spanTrace, s.Trace[:])
	b = appendBytes(b, spanID, s.ID[:])
	if state := ex.Request.Header.Get("tracestate"); len(state) > 0 && len(state) <= maxText {
		b = appendText(b, spanState, state)
	}
	flags := uint32(s.Flags) | knowsRemote
	if s.Parent != [8]byte{} {
		b = appendBytes(b, spanParent, s.Parent[:])
		flags |= isRemote
	}
	b = appendText(b, spanName, r.Name)
	b = appendUint(b, spanKind, kindServer)
	b = appendFixed64(b, spanStart, uint64(r.Ended.Add(-r.Took).UnixNano()))
	b = appendFixed64(b, spanEnd, uint64(r.Ended.UnixNano()))
	b = r.appendRequest(b)
	b = r.appendPlace(b)
	b = r.appendResponse(b)
	r.message = appendFixed32(b, spanFlags, flags)
	return r.message
}

// appendRequest appends what the client asked for.
func (r *Record) appendRequest(b []byte) []byte {
	req := &r.Exchange.Request
	if isMethod(string(req.Method)) {
		b = attribute(b, "http.request.method", req.Method)
	} else {
		b = attribute(b, "http.request.method", "_OTHER")
		b = attribute(b, "http.request.method_original", req.Method)
	}
	scheme := "http"
	if req.TLS {
		scheme = "https"
	}
	b = attribute(b, "url.scheme", scheme)
	path, _, _ := bytes.Cut(req.Asked.Target, []byte{'?'})
	b = attribute(b, "url.path", path)
	name, port := exchange.SplitHost(req.Asked.Host)
	b = attribute(b, "server.address", bytes.Trim(name, "[]"))
	if n, err := strconv.ParseUint(string(port), 10, 16); err == nil {
		b = attributeInt(b, "server.port", int64(n))
	}
	if a := req.Client.Addr(); a.IsValid() {
		var text [64]byte
		b = attribute(b, "client.address", a.AppendTo(text[:0]))
	}
	if version, ok := strings.CutPrefix(req.Protocol, "HTTP/"); ok {
		b = attribute(b, "network.protocol.version", strings.TrimSuffix(version, ".0"))
	}
	if agent := req.Header.Get("User-Agent"); len(agent) > 0 {
		b = attribute(b, "user_agent.original", agent)
	}
	return b
}

// appendPlace appends where the exchange was routed to.
func (r *Record) appendPlace(b []byte) []byte {
	p := &r.Place
	if p.Path != "" {
		b = attribute(b, "http.route", p.Path)
	}
	b = attribute(b, "k8s.namespace.name", p.Namespace)
	b = attribute(b, "k8s.ingress.name", p.Ingress)
	return attribute(b, "k8s.service.name", p.Service)
}

// appendResponse appends what became of it. What a client did wrong is no error of ours.
func (r *Record) appendResponse(b []byte) []byte {
	const early = "the response ended early"
	status := r.Exchange.Response.Status
	if status > 0 {
		b = attributeInt(b, "http.response.status_code", int64(status))
	}
	failed := status >= 500
	switch {
	case failed:
		var text [8]byte
		b = attribute(b, "error.type", strconv.AppendInt(text[:0], int64(status), 10))
	case r.Broken:
		b = attribute(b, "error.type", "response_ended_early")
	default:
		return b
	}
	b, at := begin(b, spanStatus)
	if r.Broken {
		b = appendText(b, statusMessage, early)
	}
	return end(appendUint(b, statusCode, statusError), at)
}

// isMethod reports whether a method is one that the conventions know (RFC 9110 section
// 9, RFC 5789). Others could be as many as clients like.
func isMethod(name string) bool {
	switch name {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH":
		return true
	}
	return false
}

// Reset forgets the exchange and keeps the memory.
func (r *Record) Reset() { *r = Record{Name: r.Name[:0], message: r.message[:0]} }
