package exchange

import "bytes"

// Query returns what stands behind the question mark of a request target.
func Query(target []byte) []byte {
	_, q, _ := bytes.Cut(target, []byte{'?'})
	return q
}

// Argument returns an argument of the query as it was sent, the first of several, or nil.
// Names compare without regard to case, as in nginx.
func Argument(target []byte, name string) (first []byte) {
	EachArgument(target, name, func(value []byte) bool { first = value; return false })
	return first
}

// EachArgument hands all arguments of that name to yield, in their order, until it returns
// false. As an iterator it would allocate.
func EachArgument(target []byte, name string, yield func(value []byte) bool) {
	for pair := range bytes.SplitSeq(Query(target), []byte{'&'}) {
		if key, value, _ := bytes.Cut(pair, []byte{'='}); EqualFold(key, name) && !yield(value) {
			return
		}
	}
}

// Cookie returns the value of the first cookie of that name, or nil. Names compare without
// regard to case, as nginx's do where a variable names a cookie.
func (h *Header) Cookie(name string) (first []byte) {
	h.EachCookie(name, func(value []byte) bool { first = value; return false })
	return first
}

// EachCookie hands the values of all cookies of that name to yield, in their order, until it
// returns false.
func (h *Header) EachCookie(name string, yield func(value []byte) bool) {
	for _, f := range h.fields {
		if !EqualFold(f.Name, "cookie") {
			continue
		}
		for pair := range bytes.SplitSeq(f.Value, []byte{';'}) {
			key, value, ok := bytes.Cut(TrimSpace(pair), []byte{'='})
			if ok && EqualFold(key, name) && !yield(value) {
				return
			}
		}
	}
}
