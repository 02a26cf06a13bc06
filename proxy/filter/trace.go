package filter

import (
	"encoding/binary"
	"encoding/hex"

	"quayside.io/proxy/exchange"
)

// Trace gives requests that come without the trace context of W3C one: the field
// traceparent (https://www.w3.org/TR/trace-context/), so that what backends and the log
// say of a request has one name. The proxy has no spans of its own, so the context that
// it passes on is the one that it was given.
type Trace struct {
	// Trust continues the traces of clients. Otherwise each request begins a new one.
	Trust bool
	// Parent leaves it to who began a trace whether it is sampled.
	Parent bool
	// Share of the other traces are sampled, from 0 to 1: which ones follows from their
	// ids, so that all proxies agree.
	Share float64
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

func (t *Trace) request(ex *exchange.Exchange) bool {
	r := &ex.Request
	came := contextOf(&r.Header)
	if !t.Trust {
		came = nil
	}
	if came != nil && t.Parent {
		return true
	}
	var text [contextSize]byte
	b := append(text[:0], "00-"...)
	if came != nil {
		b = append(b, came[traceAt:traceAt+32]...)
	} else {
		b = appendID(b, r.Random)
		r.Header.Del(tracestate) // without its traceparent it says nothing
	}
	sampled := t.samples(b[traceAt:])
	// Who changes the flags is a parent of its own. No parent is zero.
	b = appendHex64(append(b, '-'), r.Random[0]^r.Random[1]>>1|1)
	if b = append(b, "-00"...); sampled {
		b[len(b)-1] = '1'
	}
	r.Header.Del(traceparent)
	r.Header.AddParts(traceparent, b)
	return true
}

// samples reports whether a trace is among the Share.
func (t *Trace) samples(id []byte) bool {
	var first [8]byte
	if _, err := hex.Decode(first[:], id[:16]); err != nil {
		return false
	}
	return float64(binary.BigEndian.Uint64(first[:])>>11)/(1<<53) < t.Share
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
