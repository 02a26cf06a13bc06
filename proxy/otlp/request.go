package otlp

import (
	"encoding/binary"
	"errors"
)

// Method is that of gRPC which takes requests.
const Method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// Resource is who tells of its exchanges. An empty text is not told.
type Resource struct {
	Service string // service.name
	Node    string // k8s.node.name
}

// The fields of ExportTraceServiceRequest, ResourceSpans, ScopeSpans and what is in them.
const (
	requestSpans  = 1
	resourceOf    = 1
	resourceScope = 2
	attributes    = 1
	scopeOf       = 1
	scopeName     = 1
	scopeSpans    = 2
)

// scope says what made the spans.
const scope = "quayside.io/proxy"

// AppendSpan appends a span to those of a request.
func AppendSpan(spans, span []byte) []byte { return appendBytes(spans, scopeSpans, span) }

// AppendRequest appends a request with spans that AppendSpan has made.
func AppendRequest(dst []byte, of Resource, spans []byte) []byte {
	dst, all := begin(dst, requestSpans)
	dst, at := begin(dst, resourceOf)
	if of.Service != "" {
		dst = keyed(dst, attributes, "service.name", of.Service)
	}
	if of.Node != "" {
		dst = keyed(dst, attributes, "k8s.node.name", of.Node)
	}
	dst = end(dst, at)
	dst, at = begin(dst, resourceScope)
	dst, in := begin(dst, scopeOf)
	dst = end(appendBytes(dst, scopeName, scope), in)
	dst = append(dst, spans...)
	return end(end(dst, at), all)
}

var errAnswer = errors.New("the answer is no message of the protocol")

// Rejected reads the answer to a request: how many of its spans were not taken, and why.
func Rejected(answer []byte) (n int64, why string, err error) {
	err = eachField(answer, func(field int, _ uint64, partial []byte) error {
		if field != 1 || partial == nil {
			return nil
		}
		return eachField(partial, func(field int, value uint64, text []byte) error {
			switch {
			case field == 1 && text == nil:
				n = int64(value)
			case field == 2 && text != nil:
				why = string(text)
			}
			return nil
		})
	})
	if err == nil && n < 0 {
		err = errAnswer
	}
	if err != nil {
		return 0, "", err
	}
	return n, why, nil
}

// eachField calls do with each field of a message: its number, and its value or, not
// nil, its bytes.
func eachField(b []byte, do func(field int, value uint64, bytes []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return errAnswer
		}
		b = b[n:]
		var value uint64
		var inside []byte
		size := 0
		switch tag & 7 {
		case typeVarint:
			if value, size = binary.Uvarint(b); size <= 0 {
				return errAnswer
			}
		case type64:
			size = 8
		case type32:
			size = 4
		case typeBytes:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return errAnswer
			}
			size = n + int(length)
			inside = b[n:size:size]
		default:
			return errAnswer
		}
		if size > len(b) {
			return errAnswer
		}
		b = b[size:]
		if err := do(int(tag>>3), value, inside); err != nil {
			return err
		}
	}
	return nil
}
