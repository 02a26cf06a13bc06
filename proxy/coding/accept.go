package coding

import "bytes"

// Coding is a content coding.
type Coding uint8

// The codings that there are. Identity leaves a body as it is.
const (
	Identity Coding = iota
	Gzip
	Brotli
)

// String returns the name in Content-Encoding.
func (c Coding) String() string {
	switch c {
	case Gzip:
		return "gzip"
	case Brotli:
		return "br"
	}
	return "identity"
}

// Set is some codings.
type Set uint8

// SetOf returns the set of list.
func SetOf(list ...Coding) (s Set) {
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// Has reports whether c is in s.
func (s Set) Has(c Coding) bool { return s&(1<<c) != 0 }

// quality is a weight in thousandths; unsaid is none.
const (
	unsaid  = -1
	highest = 1000
)

// Accepted returns the one of the offered codings that a client likes best, of
// equals the one that is smaller on the wire. The client said accept in
// Accept-Encoding, with several fields in one list; a client that said nothing gets
// Identity. What is malformed in it counts as not said.
func Accepted(accept []byte, offered Set) Coding {
	said := [...]int{Identity: unsaid, Gzip: unsaid, Brotli: unsaid}
	any := unsaid
	for len(accept) > 0 {
		var part []byte
		part, accept, _ = bytes.Cut(accept, []byte{','})
		name, parameters, weighted := bytes.Cut(part, []byte{';'})
		q := highest
		if weighted {
			q = weight(trim(parameters))
		}
		switch name = trim(name); {
		case q == unsaid:
		case string(name) == "*":
			any = q
		case bytes.EqualFold(name, []byte("gzip")), bytes.EqualFold(name, []byte("x-gzip")):
			said[Gzip] = max(said[Gzip], q)
		case bytes.EqualFold(name, []byte("br")):
			said[Brotli] = max(said[Brotli], q)
		case bytes.EqualFold(name, []byte("identity")):
			said[Identity] = q
		}
	}
	best, most := Identity, max(said[Identity], 0)
	for _, c := range [...]Coding{Gzip, Brotli} {
		q := said[c]
		if q == unsaid {
			q = any
		}
		if offered.Has(c) && q > 0 && q >= most {
			best, most = c, q
		}
	}
	return best
}

// trim removes what a list may have around its members.
func trim(b []byte) []byte { return bytes.Trim(b, " \t") }

// weight reads "q=0.5" in thousandths (RFC 9110 section 12.4.2).
func weight(b []byte) int {
	if len(b) < len("q=0") || len(b) > len("q=0.000") || b[0]|0x20 != 'q' || b[1] != '=' || b[2] != '0' && b[2] != '1' {
		return unsaid
	}
	q := int(b[2]-'0') * highest
	if b = b[3:]; len(b) > 0 && b[0] != '.' {
		return unsaid
	}
	unit := highest / 10
	for i := 1; i < len(b); i++ {
		if b[i] < '0' || '9' < b[i] {
			return unsaid
		}
		q += int(b[i]-'0') * unit
		unit /= 10
	}
	if q > highest {
		return unsaid
	}
	return q
}
