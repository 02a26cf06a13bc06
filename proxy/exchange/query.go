package exchange

import "bytes"

// Query returns what stands behind the question mark of a request target.
func Query(target []byte) []byte {
	_, q, _ := bytes.Cut(target, []byte{'?'})
	return q
}

// Argument returns an argument of the query as it was sent, or nil. Names compare
// without regard to case, as in nginx.
func Argument(target []byte, name string) []byte {
	for pair := range bytes.SplitSeq(Query(target), []byte{'&'}) {
		if key, value, _ := bytes.Cut(pair, []byte{'='}); EqualFold(key, name) {
			return value
		}
	}
	return nil
}

// Cookie returns the value of the first cookie of that name, or nil. Names compare without
// regard to case, as nginx's do where a variable names a cookie.
func (h *Header) Cookie(name string) []byte {
	for _, f := range h.fields {
		if !EqualFold(f.Name, "cookie") {
			continue
		}
		for pair := range bytes.SplitSeq(f.Value, []byte{';'}) {
			if key, value, ok := bytes.Cut(TrimSpace(pair), []byte{'='}); ok && EqualFold(key, name) {
				return value
			}
		}
	}
	return nil
}
