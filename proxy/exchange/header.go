package exchange

import "slices"

// Field is one header field. Names compare without regard to case.
type Field struct{ Name, Value []byte }

// Header is a list of fields in order. The zero value is empty. It is a list
// and not a map because a proxy mostly passes fields through, and a request
// has a dozen of them.
type Header struct {
	fields []Field
	text   []byte // backing store of names and values that we made up ourselves
}

// Fields returns the fields; the slice is valid until the next change.
func (h *Header) Fields() []Field { return h.fields }

// AddBorrowed appends a field whose bytes belong to someone else and outlive
// the exchange.
func (h *Header) AddBorrowed(name, value []byte) {
	h.fields = append(h.fields, Field{name, value})
}

// Add appends a field.
func (h *Header) Add(name, value string) {
	h.fields = append(h.fields, Field{appendString(h, name), appendString(h, value)})
}

// Set makes value the only value of name.
func (h *Header) Set(name, value string) { h.setOwned(name, appendString(h, value)) }

// SetBytes makes a copy of value the only value of name.
func (h *Header) SetBytes(name string, value []byte) {
	h.setOwned(name, appendString(h, value))
}

// AddParts appends a field whose value is the concatenation of parts.
func (h *Header) AddParts(name string, parts ...[]byte) {
	value := h.Copy(parts...)
	h.fields = append(h.fields, Field{appendString(h, name), value})
}

// Copy returns the concatenation of parts, which lasts as long as the exchange: for values that
// several fields borrow, or fields whose names are borrowed.
func (h *Header) Copy(parts ...[]byte) []byte {
	start := len(h.text)
	for _, part := range parts {
		h.text = append(h.text, part...)
	}
	return h.text[start:len(h.text):len(h.text)]
}

// Keep drops every field that keep refuses. The order stays.
func (h *Header) Keep(keep func(Field) bool) {
	kept := h.fields[:0]
	for _, f := range h.fields {
		if keep(f) {
			kept = append(kept, f)
		}
	}
	clear(h.fields[len(kept):])
	h.fields = kept
}

// Get returns the first value of name, or nil.
func (h *Header) Get(name string) []byte {
	for i := range h.fields {
		if EqualFold(h.fields[i].Name, name) {
			return h.fields[i].Value
		}
	}
	return nil
}

// Del removes every field called name.
func (h *Header) Del(name string) {
	h.fields = slices.DeleteFunc(h.fields, func(f Field) bool { return EqualFold(f.Name, name) })
}

func (h *Header) setOwned(name string, value []byte) {
	for i := range h.fields {
		if EqualFold(h.fields[i].Name, name) {
			h.fields[i].Value = value
			rest := slices.DeleteFunc(h.fields[i+1:], func(f Field) bool { return EqualFold(f.Name, name) })
			h.fields = h.fields[:i+1+len(rest)]
			return
		}
	}
	h.fields = append(h.fields, Field{appendString(h, name), value})
}

func (h *Header) reset() Header { return Header{h.fields[:0], h.text[:0]} }

// appendString keeps s in h.text and returns the kept bytes. When text has to
// grow, older fields keep pointing into the old array, which stays valid.
func appendString[S string | []byte](h *Header, s S) []byte {
	start := len(h.text)
	h.text = append(h.text, s...)
	return h.text[start:len(h.text):len(h.text)]
}
