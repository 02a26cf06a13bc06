package exchange

// Trailer is what comes behind a body: the fields of RFC 9110 section 6.5.
type Trailer struct {
	// Header are the fields. They are known once the body has been read to its
	// end; those that may not stand there are never among them.
	Header Header
	// Announced is the value of the Trailer field, which names what may come; nil
	// if there was none. Fields may come unannounced.
	Announced []byte
}

func (t *Trailer) reset() Trailer { return Trailer{Header: t.Header.reset()} }

// Add appends a copy of a field unless it may not stand behind a body. The next
// reader might merge it into the head, so whatever frames, routes, authenticates
// or says where a message comes from is dropped (RFC 9110 section 6.5.1).
func (t *Trailer) Add(name, value []byte) {
	if !allowedInTrailer(name) || !IsFieldValue(value) {
		return
	}
	kept := appendString(&t.Header, name)
	t.Header.fields = append(t.Header.fields, Field{kept, appendString(&t.Header, value)})
}

// allowedInTrailer reports whether a field may come behind a body.
func allowedInTrailer(name []byte) bool {
	if len(name) == 0 || !IsToken(name) || endsHere(name) {
		return false
	}
	for _, prefix := range [...]string{"content-", "x-forwarded-", "if-", "proxy-"} {
		if len(name) > len(prefix) && EqualFold(name[:len(prefix)], prefix) {
			return false
		}
	}
	for _, forbidden := range [...]string{
		"host", "range", "expect", "cookie", "age", "date", "vary", "warning", "expires", "location", "forwarded", "x-real-ip", "set-cookie",
		"retry-after", "authorization", "cache-control", "max-forwards", "pragma", "www-authenticate", "authentication-info",
	} {
		if EqualFold(name, forbidden) {
			return false
		}
	}
	return true
}
