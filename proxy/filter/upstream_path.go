package filter

import (
	"bytes"

	"quayside.io/proxy/exchange"
)

// UpstreamPath is what backends are asked for in the place of the path: nginx's proxy_pass with
// one. All other filters see the request's.
type UpstreamPath struct {
	// Location is what paths begin with, and To takes the place of that, as it goes over the wire;
	// it may have a query, and the rest of the path stands behind it. A path that a script has
	// rewritten for good is sent as it is.
	Location, To string
	// Filled, unless nil, is all that is asked for, a path and perhaps a query.
	Filled *Target
	// Asked says that backends are asked for what the client asked for, whatever became of that.
	Asked bool
}

// upstreamPath puts the target back once a backend has answered.
func upstreamPath(o *UpstreamPath, at Place) Filter {
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			r := &ex.Request
			ex.Script.Target = r.Target
			switch {
			case o.Asked:
				r.Target = r.AskedTarget()
			case o.Filled != nil:
				return sendsTo(ex, o.Filled.appendPath(nil, ex, &at))
			case !ex.Script.Broke:
				return replaceLocation(ex, o.Location, o.To)
			}
			return true
		},
		Upstream: func(ex *exchange.Exchange) { ex.Request.Target = ex.Script.Target },
	}
}

// upstreamPaths are those of a route and of the detours of its script; nil: that of the request.
func upstreamPaths(own *UpstreamPath, detours []*UpstreamPath, at Place) Filter {
	made := make([]Filter, 1+len(detours))
	for i, o := range append([]*UpstreamPath{own}, detours...) {
		if o != nil {
			made[i] = upstreamPath(o, at)
		}
	}
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			f := made[ex.Script.Detour].Request
			return f == nil || f(ex)
		},
		Upstream: func(ex *exchange.Exchange) {
			if f := made[ex.Script.Detour].Upstream; f != nil {
				f(ex)
			}
		},
	}
}

// replaceLocation puts to in the place of what the path begins with. It reports false where that
// has been answered.
func replaceLocation(ex *exchange.Exchange, location, to string) bool {
	r := &ex.Request
	rest, found := bytes.CutPrefix(readByNginx(r.Path), []byte(location))
	if !found {
		return true
	}
	b := appendPath([]byte(to), rest)
	if query := exchange.Query(r.Target); len(query) > 0 {
		b = append(append(b, '?'), query...)
	}
	return sendsTo(ex, b)
}

// sendsTo makes b the target of the request. It reports false where that has been answered.
func sendsTo(ex *exchange.Exchange, b []byte) bool {
	if b = ofOneSlash(b); refusesClimbing(ex, b) {
		return false
	}
	ex.Request.Target = b
	return true
}

// appendPath appends t, which is a path. What comes of the client's path stays part of a path.
func (t *Target) appendPath(dst []byte, ex *exchange.Exchange, at *Place) []byte {
	for i := range t.text.parts {
		switch p := &t.text.parts[i]; p.variable {
		case "":
			dst = appendClean(dst, p.literal)
		case "uri", "document_uri", "group", "found":
			dst = appendPath(dst, p.value(ex, at))
		default:
			dst = appendAddress(dst, p.value(ex, at))
		}
	}
	return dst
}
