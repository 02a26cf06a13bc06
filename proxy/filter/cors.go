package filter

import (
	"strconv"
	"strings"

	"quayside.io/proxy/exchange"
)

// origin is a pattern of an Origin field: what stands before and behind one label,
// or all of it.
type origin struct {
	before, after string
	wild          bool
}

func originOf(pattern string) origin {
	before, after, wild := strings.Cut(pattern, "*")
	return origin{before, after, wild}
}

// matches compares without regard to case, as ingress-nginx does.
func (o origin) matches(b []byte) bool {
	if !o.wild {
		return exchange.EqualFold(b, o.before)
	}
	n := len(b) - len(o.before) - len(o.after)
	if n < 1 || !exchange.EqualFold(b[:len(o.before)], o.before) || !exchange.EqualFold(b[len(o.before)+n:], o.after) {
		return false
	}
	for _, c := range b[len(o.before) : len(o.before)+n] {
		if (c < 'a' || 'z' < c) && (c < 'A' || 'Z' < c) && (c < '0' || '9' < c) && c != '-' {
			return false
		}
	}
	return true
}

// allowed is a CORS, ready to be written.
type allowed struct {
	any     bool
	origins []origin
	fields  []Header
}

// cors answers preflights itself and marks every response, errors too, for the
// origins that are allowed.
func cors(o *CORS) Filter {
	a := &allowed{}
	for _, pattern := range o.Origins {
		a.any = a.any || pattern == "*"
		a.origins = append(a.origins, originOf(pattern))
	}
	add := func(name, value string) {
		if value != "" {
			a.fields = append(a.fields, Header{name, string(clean(value))})
		}
	}
	if o.Credentials {
		add("Access-Control-Allow-Credentials", "true")
	}
	add("Access-Control-Allow-Methods", o.Methods)
	add("Access-Control-Allow-Headers", o.Headers)
	add("Access-Control-Expose-Headers", o.Expose)
	add("Access-Control-Max-Age", strconv.Itoa(o.MaxAge)) // 0 too: without it browsers remember for 5 s
	return Filter{Request: a.preflight, Response: a.mark}
}

// origin returns what to answer to the client's origin, or nil.
func (a *allowed) origin(ex *exchange.Exchange) []byte {
	given := ex.Request.Header.Get("Origin")
	for _, o := range a.origins {
		if len(given) > 0 && o.matches(given) {
			return given
		}
	}
	return nil
}

func (a *allowed) preflight(ex *exchange.Exchange) bool {
	if string(ex.Request.Method) != "OPTIONS" || !a.any && a.origin(ex) == nil {
		return true
	}
	ex.Answer(204, "")
	return false
}

func (a *allowed) mark(ex *exchange.Exchange) {
	h := &ex.Response.Header
	if a.any {
		h.Set("Access-Control-Allow-Origin", "*")
	} else {
		vary(h, "Origin") // also for those that are told nothing
		given := a.origin(ex)
		if given == nil {
			return
		}
		h.SetBytes("Access-Control-Allow-Origin", given)
	}
	for i := range a.fields {
		h.Set(a.fields[i].Name, a.fields[i].Value)
	}
}
