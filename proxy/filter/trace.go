package filter

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"

	"quayside.io/proxy/exchange"
)

// Trace gives requests that come without the trace context of W3C one: the field
// traceparent (https://www.w3.org/TR/trace-context/), so that what backends and the log
// say of a request has one name. Where exchanges are recorded, backends are told that
// ours is what theirs is part of; where not, the context that is passed on is the one
// that came.
type Trace struct {
	// Trust continues the traces of clients. Otherwise each request begins a new one.
	Trust bool
	// Parent leaves it to who began a trace whether it is sampled.
	Parent bool
	// Share of the other traces are sampled, from 0 to 1: which ones follows from their
	// ids, so that all proxies agree.
	Share float64
	// Record makes a span of each exchange whose trace is sampled.
	Record bool
	// Name is that of the spans; nil: the path of the rule.
	Name *Template
}

const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// The parts of a traceparent: VERSION-TRACE-PARENT-FLAGS, in lower hexadecimal digits.
const (
	traceAt     = len("00-")
	parentAt    = traceAt + 32 + 1
	flagsAt     = parentAt + 16 + 1
	contextSize = flagsAt + 2
)

// The flags that mean something here: level 2 of the specification, section 2.2.3.
const (
	sampledFlag = 1
	randomFlag  = 2
)

func (t *Trace) request(ex *exchange.Exchange) bool {
	r := &ex.Request
	came := contextOf(&r.Header)
	if !t.Trust {
		came = nil
	}
	var span exchange.Span
	if came != nil {
		span = spanOf(came)
	} else {
		binary.BigEndian.PutUint64(span.Trace[:8], r.Random[0])
		binary.BigEndian.PutUint64(span.Trace[8:], r.Random[1])
		r.Header.Del(tracestate) // without its traceparent it says nothing
	}
	sampled := span.Flags&sampledFlag != 0
	if came == nil || !t.Parent {
		sampled = t.samples(span.Trace)
	}
	record := t.Record && sampled
	if came != nil && t.Parent && !record {
		return true // who changes nothing is nobody's parent
	}
	span.Flags &= randomFlag
	if sampled {
		span.Flags |= sampledFlag
	}
	binary.BigEndian.PutUint64(span.ID[:], r.Random[0]^r.Random[1]>>1|1) // none is zero
	if record {
		ex.Span = span
	}
	var text [contextSize]byte
	r.Header.Del(traceparent)
	r.Header.AddParts(traceparent, appendContext(text[:0], &span))
	return true
}

// spanOf reads a context, which is one. What it calls its own is our parent.
func spanOf(context []byte) (s exchange.Span) {
	var flags [1]byte
	hex.Decode(s.Trace[:], context[traceAt:parentAt-1])
	hex.Decode(s.Parent[:], context[parentAt:flagsAt-1])
	hex.Decode(flags[:], context[flagsAt:contextSize])
	s.Flags = flags[0]
	return s
}

// appendContext appends the traceparent that names s.
func appendContext(dst []byte, s *exchange.Span) []byte {
	dst = hex.AppendEncode(append(dst, "00-"...), s.Trace[:])
	dst = hex.AppendEncode(append(dst, '-'), s.ID[:])
	return hex.AppendEncode(append(dst, '-'), []byte{s.Flags})
}

// AppendName appends the name of an exchange's span.
func (t *Trace) AppendName(dst []byte, ex *exchange.Exchange, at *Place) []byte {
	if t.Name != nil {
		return t.Name.appendField(dst, ex, at)
	}
	return append(dst, cmp.Or(at.Path, "/")...) // the location, as the module of nginx has it
}

// samples reports whether a trace is among the Share.
func (t *Trace) samples(id [16]byte) bool {
	return float64(binary.BigEndian.Uint64(id[:8])>>11)/(1<<53) < t.Share
}

// contextOf returns the traceparent, or nil: there is none, or it is not one.
func contextOf(h *exchange.Header) []byte {
	var found []byte
	for _, f := range h.Fields() {
		if len(f.Name) != len(traceparent) || !exchange.EqualFold(f.Name, traceparent) {
			continue
		}
		if found != nil || !isContext(f.Value) {
			return nil
		}
		found = f.Value
	}
	return found
}

// isContext reports whether a value is a traceparent. One of a later version may go on
// behind what we know of it.
func isContext(v []byte) bool {
	if len(v) < contextSize || v[traceAt-1] != '-' || v[parentAt-1] != '-' || v[flagsAt-1] != '-' {
		return false
	}
	version, flags := v[:2], v[flagsAt:contextSize]
	switch {
	case !isHex(version) || string(version) == "ff" || !isHex(flags):
		return false
	case len(v) > contextSize && (string(version) == "00" || v[contextSize] != '-'):
		return false
	}
	return isName(v[traceAt:parentAt-1]) && isName(v[parentAt:flagsAt-1])
}

// isName reports whether digits name anything: none are all zero.
func isName(digits []byte) bool {
	some := false
	for _, c := range digits {
		some = some || c != '0'
	}
	return some && isHex(digits)
}

func isHex(digits []byte) bool {
	for _, c := range digits {
		if (c < '0' || '9' < c) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return true
}
