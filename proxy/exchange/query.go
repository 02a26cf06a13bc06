package exchange

import (
	"bytes"
	"slices"
	"strings"
)

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

// Asked returns what a request has in a field, the first of several; of cookies it returns all.
func (h *Header) Asked(name string) []byte {
	if strings.EqualFold(name, "cookie") {
		return h.Cookies()
	}
	return h.Get(name)
}

// Cookies returns as one what stands in all Cookie fields, into which a client may have cut its
// cookies (RFC 9113 section 8.2.3).
func (h *Header) Cookies() []byte {
	all := make([][]byte, 0, 16)
	for _, f := range h.fields {
		if EqualFold(f.Name, "cookie") {
			all = append(all, f.Value)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return bytes.Join(all, []byte("; "))
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

// AddedForwardedFor returns what a request came with in X-Forwarded-For, from whomever, and behind
// it whom it came from: $proxy_add_x_forwarded_for of nginx.
func (h *Header) AddedForwardedFor() []byte {
	ours, told := h.Get("X-Forwarded-For"), h.Get(Told("X-Forwarded-For"))
	if len(told) == 0 || len(ours) > len(told) && string(ours[:len(told)]) == string(told) && ours[len(told)] == ',' {
		return ours // which goes on with it
	}
	return slices.Concat(told, []byte(", "), ours)
}

// Told returns the name of the field that has what a request came with in the field called name:
// X-Forwarded-For and X-Forwarded-Host say what this proxy knows, and X-Original-Forwarded-For and
// X-Original-Forwarded-Host what it was told by whomever.
func Told(name string) string {
	for _, told := range [...]string{"X-Original-Forwarded-For", "X-Original-Forwarded-Host"} {
		if strings.EqualFold(name, "X-"+told[len("X-Original-"):]) {
			return told
		}
	}
	return name
}
