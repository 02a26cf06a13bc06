package filter

import (
	"bytes"
	"cmp"
	"slices"

	"quayside.io/proxy/exchange"
)

// rewrites replaces the path as the first of list says whose pattern is found in it.
func rewrites(list []Rewrite, at Place) Filter {
	made := make([]*rewriter, len(list))
	for i := range list {
		made[i] = newRewriter(list[i], at)
	}
	return Filter{Request: func(ex *exchange.Exchange) bool {
		if ex.Script.Ended {
			return true
		}
		for _, w := range made {
			if passes, found := w.request(ex); found {
				return passes
			}
		}
		return true
	}}
}

// newRewriter replaces the path as nginx's rewrite does: by a template, if the pattern
// is found, with the client's query behind that of the template. A template that
// ends with "?" drops the client's query.
func newRewriter(o Rewrite, at Place) *rewriter {
	w := &rewriter{Rewrite: o, place: at, elsewhere: o.Target.IsURL()}
	for _, p := range o.Target.parts {
		if p.variable == "" {
			p.literal = appendEscaped(nil, p.literal)
		}
		w.parts = append(w.parts, p)
		w.groups = w.groups || p.variable == "group"
	}
	if n := len(w.parts); n > 0 {
		w.parts[n-1].literal, w.drop = bytes.CutSuffix(w.parts[n-1].literal, []byte{'?'})
	}
	w.query = slices.ContainsFunc(w.parts, func(p part) bool { return bytes.IndexByte(p.literal, '?') >= 0 })
	if o.Pattern != nil {
		w.simple = simplify(o.Pattern)
	}
	return w
}

type rewriter struct {
	Rewrite
	place       Place
	simple      *simple // nil: Pattern has to be asked
	parts       []part  // of Target, with literals as they go over the wire
	groups      bool    // of the pattern are among them
	drop, query bool
	elsewhere   bool // the target is a URL
	redirect    int  // the status with which clients are sent to the target; 0: to a URL alone, by 302
}

// request writes the new target into memory of the exchange. A pattern that is not
// simple costs the one allocation that package regexp makes for captures.
func (w *rewriter) request(ex *exchange.Exchange) (passes, found bool) {
	r := &ex.Request
	var buf [2 * 10]int
	b, path := ex.Scratch[:0], r.Path
	var groups []int
	if w.Decode && bytes.Contains(path, []byte("%2F")) {
		b = AppendDecoded(b, path)
		if groups, found = w.find(buf[:0], b); found {
			path = b
		}
	}
	if !found {
		groups, found = w.find(buf[:0], path)
	}
	if !found {
		return true, false
	}
	b = w.expand(b[len(b):], ex, path, groups)
	if !w.elsewhere && refusesClimbing(ex, b) {
		return false, true
	}
	if _, query, has := bytes.Cut(r.Target, []byte{'?'}); has && len(query) > 0 && !w.drop {
		if w.query {
			b = append(b, '&')
		} else {
			b = append(b, '?')
		}
		b = append(b, query...)
	}
	ex.Scratch = b
	if w.elsewhere || w.redirect != 0 {
		sendTo(ex, cmp.Or(w.redirect, 302), b)
		return false, true
	}
	r.Target = b
	return true, true
}

// AppendDecoded appends a normalised path as nginx reads it: %2F is a slash, and
// repeated slashes are one. Dot segments between such slashes are refused before.
func AppendDecoded(dst, path []byte) []byte {
	base := len(dst)
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) && string(path[i:i+3]) == "%2F" {
			c, i = '/', i+2
		}
		if c != '/' || len(dst) == base || dst[len(dst)-1] != '/' {
			dst = append(dst, c)
		}
	}
	return dst
}

// find returns where the pattern and its captures are in path.
func (w *rewriter) find(found []int, path []byte) (indexes []int, matches bool) {
	if w.Pattern == nil {
		return nil, true
	}
	if w.simple != nil {
		if found, matches, ok := w.simple.match(found, path); ok {
			return found, matches
		}
	}
	if !w.groups {
		return nil, w.Pattern.Match(path)
	}
	found = w.Pattern.FindSubmatchIndex(path)
	return found, found != nil
}

// expand appends the target with its variables filled in, escaped as a path has to be.
func (w *rewriter) expand(dst []byte, ex *exchange.Exchange, path []byte, found []int) []byte {
	if !w.elsewhere && (len(w.parts) == 0 || !bytes.HasPrefix(w.parts[0].literal, []byte{'/'})) {
		dst = append(dst, '/')
	}
	for i := range w.parts {
		switch p := &w.parts[i]; p.variable {
		case "":
			dst = append(dst, p.literal...)
		case "group":
			if n := 2 * p.group; n+1 < len(found) && found[n] >= 0 {
				dst = appendEscaped(dst, path[found[n]:found[n+1]])
			}
		default:
			dst = appendPath(dst, p.value(ex, &w.place))
		}
	}
	if w.elsewhere {
		return dst
	}
	return ofOneSlash(dst)
}

// ofOneSlash returns a target without the slashes that it begins with but one: "//host" would be
// an authority to some.
func ofOneSlash(target []byte) []byte {
	for len(target) > 1 && target[1] == '/' {
		target = target[1:]
	}
	return target
}

// appendPath appends b as part of a path, which no query or fragment follows.
func appendPath(dst, b []byte) []byte {
	base := len(dst)
	dst = appendAddress(dst, b)
	if bytes.IndexByte(dst[base:], '?') < 0 {
		return dst
	}
	return append(dst[:base], bytes.ReplaceAll(dst[base:], []byte{'?'}, []byte("%3F"))...)
}

// refusesClimbing answers, and reports so, where the path of target has a dot segment.
func refusesClimbing(ex *exchange.Exchange, target []byte) bool {
	if !climbs(target) {
		return false
	}
	ex.Answer(400, "400 Bad Request: the path cannot be rewritten\n")
	return true
}

// climbs reports whether the path of target has a dot segment. The client's path
// has none, but captures may have been put together to one.
func climbs(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte{'?'})
	for segment := range bytes.SplitSeq(path, []byte{'/'}) {
		if string(segment) == "." || string(segment) == ".." {
			return true
		}
	}
	return false
}
