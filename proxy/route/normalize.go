package route

import "bytes"

// Normalize appends the path of a request target to dst, in the form in which
// paths are compared, and reports whether the target is fit to be routed: if it
// is not, the answer is 400. The path ends at the query. It allocates nothing if
// dst has room for target.
//
// Escapes are decoded, repeated slashes are one and dot segments are resolved,
// so that no spelling of a path escapes the rule meant for it. Escapes stay, in
// upper case, where the bare character would mean something else: '/', '\', '%',
// '?', '#' and control characters. Refused is what no honest client sends and
// backends understand differently: a NUL, a bare backslash, '#' or control
// character, a broken escape, a path that climbs above its root or climbs
// after a repeated slash (which counts as an element or not), and dot segments
// hidden between escaped slashes or before parameters, as in "/a/..;x/b". A '#'
// is refused in the query, too: no target has a fragment (RFC 9112 section 3.2),
// and what stands behind one is the query's for some backends, while for others,
// and for the engine of the firewall, it is nothing.
//
// Normalizing twice is normalizing once.
func Normalize(dst, target []byte) (path []byte, ok bool) {
	if len(target) == 0 || target[0] != '/' {
		return dst, false
	}
	base, repeated, at := len(dst), false, 0
	for more := true; more; {
		slash := len(dst)
		dst = append(dst, '/')
		if dst, at, ok = appendElement(dst, target, at+1); !ok {
			return dst, false
		}
		more = at < len(target) && target[at] == '/'
		switch element := dst[slash+1:]; {
		case len(element) == 0 && more: // a repeated slash
			dst, repeated = dst[:slash], true
		case string(element) == ".":
			dst = endWith(dst[:slash], !more)
		case string(element) == "..":
			if slash == base || repeated {
				return dst, false
			}
			parent := base + bytes.LastIndexByte(dst[base:slash], '/')
			dst = endWith(dst[:parent], !more)
		case hidesDots(element):
			return dst, false
		}
	}
	return dst, bytes.IndexByte(target[at:], '#') < 0
}

// endWith appends the slash that remains of a dot segment at the end of a path.
func endWith(dst []byte, slash bool) []byte {
	if slash {
		return append(dst, '/')
	}
	return dst
}

// appendElement appends the element that begins at target[i] and returns the
// index of what ends it.
func appendElement(dst, target []byte, i int) ([]byte, int, bool) {
	for ; i < len(target); i++ {
		c := target[i]
		switch {
		case c == '/' || c == '?':
			return dst, i, true
		case c == '%':
			if i+2 >= len(target) {
				return dst, i, false
			}
			high, low := unhex(target[i+1]), unhex(target[i+2])
			if high > 15 || low > 15 || high|low == 0 {
				return dst, i, false
			}
			if c = high<<4 | low; plain(c) {
				dst = append(dst, c)
			} else {
				dst = append(dst, '%', "0123456789ABCDEF"[high], "0123456789ABCDEF"[low])
			}
			i += 2
		case !plain(c):
			return dst, i, false
		default:
			dst = append(dst, c)
		}
	}
	return dst, i, true
}

// plain reports whether c may stand in a normalised element without an escape.
func plain(c byte) bool {
	return c >= ' ' && c != 0x7f && c != '/' && c != '\\' && c != '%' && c != '?' && c != '#'
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// hidesDots reports whether a backend that takes escaped slashes for slashes, or
// takes parameters off before it resolves dots as servlet containers do, would
// find a dot segment in element.
func hidesDots(element []byte) bool {
	for start, i := 0, 0; ; i++ {
		end := i == len(element)
		if !end && (element[i] != '%' || string(element[i:i+3]) != "%2F" && string(element[i:i+3]) != "%5C") {
			continue
		}
		if part, _, _ := bytes.Cut(element[start:i], []byte{';'}); string(part) == "." || string(part) == ".." {
			return true
		}
		if end {
			return false
		}
		start = i + 3
	}
}
