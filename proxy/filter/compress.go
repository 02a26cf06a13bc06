package filter

import (
	"bytes"
	"slices"
	"strings"

	"quayside.io/proxy/coding"
	"quayside.io/proxy/exchange"
)

// Compress encodes the bodies of responses for the clients that take that.
type Compress struct {
	Gzip, Brotli *Compression // nil: not offered
	// Not are User-Agents that are sent nothing by gzip.
	Not []Pattern
}

// Compression is when and how much one coding compresses.
type Compression struct {
	Level     int   // of package coding
	MinLength int64 // the least body in bytes, where its length is known
	// Types are media types in small letters; "*" is any.
	Types []string
}

// compresses reports whether a response of such a type and length is worth it.
func (c *Compression) compresses(mediaType []byte, length int64) bool {
	if c == nil || length >= 0 && length < c.MinLength {
		return false
	}
	return slices.ContainsFunc(c.Types, func(s string) bool { return s == "*" || exchange.EqualFold(mediaType, s) })
}

// compress is the last to see a response: what others make of its fields counts.
func compress(o *Compress, encoders *coding.Encoders) Filter {
	return Filter{Response: func(ex *exchange.Exchange) {
		r := &ex.Response
		if r.Body == nil || r.Status != 200 && r.Status != 403 && r.Status != 404 {
			return
		}
		offered := o.offers(r)
		if offered == 0 {
			return
		}
		vary(&r.Header, "Accept-Encoding")
		if offered.Has(coding.Gzip) && anyMatches(o.Not, &ex.Request.Header, "User-Agent") {
			offered &^= coding.SetOf(coding.Gzip)
		}
		if c := coding.Accepted(list(&ex.Request.Header, "Accept-Encoding"), offered); c != coding.Identity {
			o.encode(ex, c, encoders)
		}
	}}
}

// offers returns the codings in which a response may be sent. One that must not be
// changed, or that says what its bytes are, stays as it is.
func (o *Compress) offers(r *exchange.Response) coding.Set {
	mediaType := mediaTypeOf(r)
	var offered coding.Set
	if o.Gzip.compresses(mediaType, r.Length) {
		offered |= coding.SetOf(coding.Gzip)
	}
	if o.Brotli.compresses(mediaType, r.Length) {
		offered |= coding.SetOf(coding.Brotli)
	}
	if offered == 0 {
		return 0
	}
	for _, f := range r.Header.Fields() {
		switch {
		case isAny(f.Name, "Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5"),
			exchange.EqualFold(f.Name, "Cache-Control") && has(f.Value, "no-transform"):
			return 0
		}
	}
	return offered
}

// encode has the body encoded as it is read, and says so. HEAD is told the same as GET (RFC 9110
// section 9.3.2), but for the length, which nobody knows.
func (o *Compress) encode(ex *exchange.Exchange, c coding.Coding, encoders *coding.Encoders) {
	r := &ex.Response
	if string(ex.Request.Method) == "HEAD" {
		r.Length = -1
	} else if !o.encodeBody(r, c, encoders) {
		return
	}
	r.Header.Set("Content-Encoding", c.String())
	changesBytes(&r.Header)
}

// encodeBody reports whether it does: not where too many are encoded already.
func (o *Compress) encodeBody(r *exchange.Response, c coding.Coding, encoders *coding.Encoders) bool {
	level := 0
	if c == coding.Brotli {
		level = o.Brotli.Level
	} else {
		level = o.Gzip.Level
	}
	body := encoders.Encode(c, level, r.Body)
	if body == nil {
		return false
	}
	r.Body, r.Length = body, -1
	if w, ok := body.(exchange.Whole); ok {
		if text, whole := w.Whole(); whole {
			r.Length = int64(len(text))
		}
	}
	return true
}

// mediaTypeOf is that of a response, without parameters.
func mediaTypeOf(r *exchange.Response) []byte {
	kind, _, _ := bytes.Cut(r.Header.Get("Content-Type"), []byte{';'})
	return exchange.TrimSpace(kind)
}

// changesBytes notes that a body is sent in other bytes than the upstream's: it knows no ranges
// of these, and its tag is of what they mean. What is no tag goes.
func changesBytes(h *exchange.Header) {
	h.Del("Accept-Ranges")
	switch tag := h.Get("ETag"); {
	case len(tag) == 0, bytes.HasPrefix(tag, []byte("W/")):
	case tag[0] == '"':
		h.SetBytes("ETag", concat([]byte("W/"), tag))
	default:
		h.Del("ETag")
	}
}

// vary tells caches that what is sent depends on a field of the request.
func vary(h *exchange.Header, on string) {
	for _, f := range h.Fields() {
		if exchange.EqualFold(f.Name, "Vary") && (has(f.Value, on) || has(f.Value, "*")) {
			return
		}
	}
	h.Add("Vary", on)
}

// has reports whether a list with commas has a word, in any letter case.
func has(value []byte, word string) bool {
	for len(value) > 0 {
		var part []byte
		part, value, _ = bytes.Cut(value, []byte{','})
		if exchange.EqualFold(exchange.TrimSpace(part), word) {
			return true
		}
	}
	return false
}

func isAny(name []byte, names ...string) bool {
	return slices.ContainsFunc(names, func(s string) bool { return exchange.EqualFold(name, s) })
}

// list returns all values of a field as one list.
func list(h *exchange.Header, name string) []byte {
	var first []byte
	var all [][]byte
	for _, f := range h.Fields() {
		switch {
		case !exchange.EqualFold(f.Name, name):
		case first == nil:
			first = f.Value
		default:
			all = append(all, f.Value)
		}
	}
	if all == nil {
		return first
	}
	return bytes.Join(append([][]byte{first}, all...), []byte{','})
}

// CompressedTypes returns the types that ingress-nginx compresses by default,
// and text/html, which it always does.
func CompressedTypes() []string {
	return strings.Fields("text/html application/atom+xml application/javascript application/x-javascript application/json application/rss+xml" +
		" application/vnd.ms-fontobject application/x-font-ttf application/x-web-app-manifest+json application/xhtml+xml application/xml font/opentype" +
		" image/svg+xml image/x-icon text/css text/javascript text/plain text/x-component")
}
