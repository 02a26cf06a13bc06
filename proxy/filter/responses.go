package filter

import (
	"bytes"
	"regexp"

	"quayside.io/proxy/exchange"
)

// Replacement puts To in the place of From. A nil From asks for nothing, and an empty one is
// found nowhere. A Pattern instead of From stands for the whole of what it is found in, and
// its groups are $1 to $9 in To.
type Replacement struct {
	From, To *Template
	Pattern  *regexp.Regexp
}

// Asks reports whether anything is to be replaced.
func (o Replacement) Asks() bool { return o.From != nil || o.Pattern != nil }

// Cookies changes attributes of the cookies that an upstream sets: the Domain that
// is From, whose leading dot does not count, and the Path that begins with From.
type Cookies struct{ Domain, Path Replacement }

// replacer is a Replacement whose variables can be filled in.
type replacer struct {
	from, to func(*exchange.Exchange) []byte
	// whole is what takes the place of a text that the pattern is found in; nil: there is none.
	whole func(ex *exchange.Exchange, text []byte) (to []byte, found bool)
}

// filler has the variables of To written by value.
func (o Replacement) filler(at Place, value writer) replacer {
	switch {
	case o.Pattern != nil:
		return replacer{whole: func(ex *exchange.Exchange, text []byte) ([]byte, bool) {
			if !o.Pattern.Match(text) {
				return nil, false
			}
			in := at
			in.Pattern, in.searched, in.theirs = o.Pattern, text, true
			return o.To.append(nil, ex, &in, appendClean, value), true
		}}
	case o.From == nil:
		return replacer{}
	}
	return replacer{from: o.From.filler(at, appendClean, appendClean), to: o.To.filler(at, appendClean, value)}
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
	if r.whole != nil {
		return r.whole(ex, address)
	}
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

// domain returns the Domain of a cookie that takes the place of one.
func (r replacer) domain(ex *exchange.Exchange, text []byte) ([]byte, bool) {
	if r.whole != nil {
		return r.whole(ex, text)
	}
	if r.from == nil || !bytes.EqualFold(trimDot(text), trimDot(r.from(ex))) {
		return nil, false
	}
	if bytes.HasPrefix(text, []byte{'.'}) {
		return concat([]byte{'.'}, trimDot(r.to(ex))), true
	}
	return r.to(ex), true
}

// path is the same of its Path.
func (r replacer) path(ex *exchange.Exchange, text []byte) ([]byte, bool) {
	if r.whole != nil {
		return r.whole(ex, text)
	}
	rest, begins := r.cut(ex, text)
	if !begins {
		return nil, false
	}
	path, attributes := cutAttributes(r.to(ex))
	return concat(path, rest, attributes), true
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
		found := false
		switch trimmed, name := exchange.TrimSpace(text), exchange.TrimSpace(name); {
		case exchange.EqualFold(name, "domain"):
			to, found = r.domain.domain(ex, trimmed)
		case exchange.EqualFold(name, "path"):
			to, found = r.path.path(ex, trimmed)
		}
		if !found {
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
