package filter

import (
	"bytes"

	"quayside.io/proxy/exchange"
)

// Replacement puts To in the place of From. A nil From asks for nothing, and an empty one is
// found nowhere.
type Replacement struct{ From, To *Template }

// Cookies changes attributes of the cookies that an upstream sets: the Domain that
// is From, whose leading dot does not count, and the Path that begins with From.
type Cookies struct{ Domain, Path Replacement }

// replacer is a Replacement whose variables can be filled in.
type replacer struct {
	from, to func(*exchange.Exchange) []byte
}

// filler has the variables of To written by value.
func (o Replacement) filler(at Place, value writer) replacer {
	if o.From == nil {
		return replacer{}
	}
	return replacer{o.From.filler(at, appendClean, appendClean), o.To.filler(at, appendClean, value)}
}

// cut returns what follows From in b.
func (r replacer) cut(ex *exchange.Exchange, b []byte) (rest []byte, found bool) {
	if r.from == nil {
		return nil, false
	}
	from := r.from(ex)
	rest, found = bytes.CutPrefix(b, from)
	return rest, found && len(from) > 0
}

// replace returns the address that takes the place of one which begins with From. Behind a
// root no second slash is left: "//host" would be an authority to browsers.
func (r replacer) replace(ex *exchange.Exchange, address []byte) ([]byte, bool) {
	rest, found := r.cut(ex, address)
	if !found {
		return nil, false
	}
	to := r.to(ex)
	if string(to) == "/" {
		rest = bytes.TrimLeft(rest, "/")
	}
	return concat(to, rest), true
}

// location replaces the beginning of where the upstream sends the client.
func location(o Replacement, at Place) Filter {
	r := o.filler(at, appendAddress)
	return Filter{Upstream: func(ex *exchange.Exchange) {
		fields := ex.Response.Header.Fields()
		for i := range fields {
			f := &fields[i]
			switch {
			case exchange.EqualFold(f.Name, "Location"):
				if to, ok := r.replace(ex, f.Value); ok {
					f.Value = to
				}
			case exchange.EqualFold(f.Name, "Refresh"):
				at := behindURL(f.Value)
				if to, ok := r.replace(ex, f.Value[at:]); ok && at > 0 {
					f.Value = concat(f.Value[:at], to)
				}
			}
		}
	}}
}

// behindURL returns where the address in a value of Refresh begins, or 0. Pages write
// "url=" in any letter case.
func behindURL(value []byte) int {
	const key = "url="
	for end := len(key); end <= len(value); end++ {
		if exchange.EqualFold(value[end-len(key):end], key) {
			return end
		}
	}
	return 0
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// cookies changes Set-Cookie. The value of a cookie ends at its first semicolon.
func cookies(o *Cookies, at Place) Filter {
	r := cookieRewriter{o.Domain.filler(at, appendAttribute), o.Path.filler(at, appendAttribute)}
	return Filter{Upstream: func(ex *exchange.Exchange) {
		fields := ex.Response.Header.Fields()
		for i := range fields {
			if exchange.EqualFold(fields[i].Name, "Set-Cookie") {
				fields[i].Value = r.rewrite(ex, fields[i].Value)
			}
		}
	}}
}

// appendAttribute appends b without what would end an attribute of a cookie.
func appendAttribute(dst, b []byte) []byte {
	for part := range bytes.SplitSeq(b, []byte{';'}) {
		dst = appendClean(dst, part)
	}
	return dst
}

// cutAttributes cuts off what To has behind a path: people add "; Secure" so.
func cutAttributes(to []byte) (path, attributes []byte) {
	if i := bytes.IndexByte(to, ';'); i >= 0 {
		return to[:i], to[i:]
	}
	return to, nil
}

type cookieRewriter struct{ domain, path replacer }

// rewrite returns one value of Set-Cookie as the client is sent it.
func (r *cookieRewriter) rewrite(ex *exchange.Exchange, value []byte) []byte {
	parts := bytes.Split(value, []byte{';'})
	changed := false
	for i := 1; i < len(parts); i++ {
		name, text, ok := bytes.Cut(parts[i], []byte{'='})
		if !ok {
			continue
		}
		var to []byte
		switch trimmed := exchange.TrimSpace(text); {
		case exchange.EqualFold(exchange.TrimSpace(name), "domain"):
			if r.domain.from == nil || !bytes.EqualFold(trimDot(trimmed), trimDot(r.domain.from(ex))) {
				continue
			}
			to = r.domain.to(ex)
		case exchange.EqualFold(exchange.TrimSpace(name), "path"):
			rest, begins := r.path.cut(ex, trimmed)
			if !begins {
				continue
			}
			path, attributes := cutAttributes(r.path.to(ex))
			to = concat(path, rest, attributes)
		default:
			continue
		}
		parts[i] = concat(name, []byte{'='}, to)
		changed = true
	}
	if !changed {
		return value
	}
	return bytes.Join(parts, []byte{';'})
}

func trimDot(domain []byte) []byte { return bytes.TrimPrefix(domain, []byte{'.'}) }
