package filter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"quayside.io/proxy/exchange"
)

// DeniedRequest is what nobody may ask for, whatever the path: requests of which a variable
// is Text, or has Pattern in it.
type DeniedRequest struct {
	Of      Variable
	Not     bool // those of which it is not so
	Text    string
	Pattern *regexp.Regexp // instead of Text
	Status  int            // one of DeniedStatuses
}

// Variable is one of nginx's that says something of a request.
type Variable struct{ part }

// ParseVariable reads "$name". That of the path is an error: a path that is denied is so
// in every spelling, see DeniedPath.
func ParseVariable(text string) (v Variable, err error) {
	name, dollar := strings.CutPrefix(text, "$")
	p, known := variable(name)
	switch {
	case !dollar || wordLength(name) != len(name):
		return v, fmt.Errorf("%.80q is no variable", text)
	case !known || p.variable == "group":
		return v, fmt.Errorf("variable %.80s is not known", text)
	case p.variable == "uri" || p.variable == "document_uri":
		return v, errors.New("denied-paths is about paths")
	}
	return Variable{p}, nil
}

// deniedRequests refuses what the first of list says that is about the request.
func deniedRequests(list []DeniedRequest, at Place) Filter {
	texts := DeniedStatuses()
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for i := range list {
			if d := &list[i]; d.about(ex, &at) {
				ex.Answer(d.Status, texts[d.Status])
				return false
			}
		}
		return true
	}}
}

// about reports whether ex is denied. Of a field, a cookie or an argument that is there
// several times each counts: a backend may read another one than nginx does.
func (d *DeniedRequest) about(ex *exchange.Exchange, at *Place) bool {
	r := &ex.Request
	there, denied := false, false
	next := func(value []byte) bool {
		there, denied = true, d.isOf(value)
		return !denied
	}
	switch name := d.Of.of; d.Of.variable {
	case "http_":
		for _, f := range r.Header.Fields() {
			if exchange.EqualFold(f.Name, name) && !next(f.Value) {
				break
			}
		}
	case "cookie_":
		r.Header.EachCookie(name, next)
	case "arg_":
		exchange.EachArgument(r.Target, name, next)
	default:
		next(d.Of.value(ex, at))
	}
	return denied || !there && d.isOf(nil)
}

func (d *DeniedRequest) isOf(value []byte) bool {
	if d.Pattern != nil {
		return d.Pattern.Match(value) != d.Not
	}
	return string(value) == d.Text != d.Not
}
