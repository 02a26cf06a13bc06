package exchange

import "bytes"

// Hop is what a message says about its own connection and nobody else's.
type Hop struct {
	// Close is the connection option of that name: no message follows.
	Close bool
	// KeepAlive is the connection option of that name; HTTP/1.0 needs it.
	KeepAlive bool
	// Upgrade is the protocol asked for, or agreed to; nil unless Connection
	// names it too.
	Upgrade []byte
	// Trailers is "TE: trailers", which Connection has to name as well.
	Trailers bool
	// Announced is the value of the first Trailer field, or nil.
	Announced []byte
}

// connectionOptions are those of a Connection field that name what we know.
type connectionOptions struct{ upgrade, te bool }

// StripHop removes the fields that end at this hop and returns what they said:
// every field that Connection names, and those that RFC 9110 section 7.6.1 and
// the older documents list whether named or not. Content-Length and
// Transfer-Encoding go as well, since framing is the front end's.
//
// It runs once per message and mostly finds nothing, so it looks at the length
// of a name before at its letters.
func (h *Header) StripHop() Hop {
	var hop Hop
	var upgrade, te []byte
	var named bool
	var known connectionOptions
	for i := range h.fields {
		f := &h.fields[i]
		switch len(f.Name) {
		case len("TE"):
			if EqualFold(f.Name, "te") && te == nil {
				te = f.Value
			}
		case len("Upgrade"): // and of Trailer
			switch {
			case upgrade == nil && EqualFold(f.Name, "upgrade"):
				upgrade = f.Value
			case hop.Announced == nil && EqualFold(f.Name, "trailer"):
				hop.Announced = f.Value
			}
		case len("Connection"):
			if EqualFold(f.Name, "connection") {
				others := hop.readConnection(f.Value, &known)
				named = named || others
			}
		}
	}
	if named {
		h.stripNamed()
	}
	kept := h.fields[:0]
	for _, f := range h.fields {
		if !endsHere(f.Name) {
			kept = append(kept, f)
		}
	}
	h.fields = kept
	if known.upgrade && len(upgrade) > 0 {
		hop.Upgrade = upgrade
	}
	hop.Trailers = known.te && takesTrailers(te)
	return hop
}

// readConnection takes the options it knows from a Connection field and
// reports whether there are others, which name fields.
func (hop *Hop) readConnection(value []byte, known *connectionOptions) (others bool) {
	for option := range options(value) {
		switch {
		case EqualFold(option, "close"):
			hop.Close = true
		case EqualFold(option, "keep-alive"):
			hop.KeepAlive = true
		case EqualFold(option, "upgrade"):
			known.upgrade = true
		case EqualFold(option, "te"):
			known.te = true
		default:
			others = true
		}
	}
	return others
}

// takesTrailers reports whether the value of a TE field asks for trailers.
func takesTrailers(te []byte) bool {
	for coding := range options(te) {
		if EqualFold(coding, "trailers") {
			return true
		}
	}
	return false
}

// stripNamed removes every field that a Connection field names, save Connection
// itself, which endsHere removes. It is rare enough to allocate. Asking every
// field about every option would not do: 16 KiB of both took 160 ms, which
// anybody could have asked for with each request.
func (h *Header) stripNamed() {
	named := map[string]bool{}
	var buf [64]byte
	for _, f := range h.fields {
		if EqualFold(f.Name, "connection") {
			for option := range options(f.Value) {
				named[string(AppendLower(buf[:0], option))] = true
			}
		}
	}
	h.Keep(func(f Field) bool {
		return EqualFold(f.Name, "connection") || !named[string(AppendLower(buf[:0], f.Name))]
	})
}

// options yields the members of a comma-separated list.
func options(value []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(value) > 0 {
			option, rest, _ := bytes.Cut(value, []byte{','})
			if option = TrimSpace(option); len(option) > 0 && !yield(option) {
				return
			}
			value = rest
		}
	}
}

// endsHere reports whether a field concerns one connection only.
func endsHere(name []byte) bool {
	switch len(name) {
	case 2:
		return EqualFold(name, "te")
	case 7:
		return EqualFold(name, "upgrade") || EqualFold(name, "trailer")
	case 10:
		return EqualFold(name, "connection") || EqualFold(name, "keep-alive")
	case 14:
		return EqualFold(name, "content-length")
	case 16:
		return EqualFold(name, "proxy-connection")
	case 17:
		return EqualFold(name, "transfer-encoding")
	case 18:
		return EqualFold(name, "proxy-authenticate")
	case 19:
		return EqualFold(name, "proxy-authorization")
	}
	return false
}
