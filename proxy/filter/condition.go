package filter

import (
	"fmt"
	"regexp"
	"strings"

	"quayside.io/proxy/exchange"
)

// Condition is what nginx asks with if: whether a variable of a request is Text, or has
// Pattern in it.
type Condition struct {
	Of      Variable
	Not     bool // it is not so
	Text    string
	Pattern *regexp.Regexp // instead of Text
}

// Variable is one of nginx's that says something of a request.
type Variable struct{ part }

// ParseVariable reads "$name".
func ParseVariable(text string) (v Variable, err error) {
	name, dollar := strings.CutPrefix(text, "$")
	p, known := variable(name)
	switch {
	case !dollar || wordLength(name) != len(name):
		return v, fmt.Errorf("%.80q is no variable", text)
	case !known || p.variable == "group":
		return v, unknownVariable(name)
	}
	return Variable{p}, nil
}

// IsPath reports whether v is the path, which has more than one spelling.
func (v Variable) IsPath() bool { return v.variable == "uri" || v.variable == "document_uri" }

// isOf reports whether the condition holds where the variable has this value.
func (c *Condition) isOf(value []byte) bool {
	if c.Pattern != nil {
		return c.Pattern.Match(value) != c.Not
	}
	return string(value) == c.Text != c.Not
}

// isOfAny reports whether the condition holds of a value that ex has for the variable: of a
// field, a cookie or an argument that is there several times each counts, since a backend may
// read another one than nginx does. One that is not there is empty.
func (c *Condition) isOfAny(ex *exchange.Exchange, at *Place) bool {
	r := &ex.Request
	there, holds := false, false
	next := func(value []byte) bool {
		there, holds = true, c.isOf(value)
		return !holds
	}
	switch name := c.Of.of; c.Of.variable {
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
		next(c.Of.value(ex, at))
	}
	return holds || !there && c.isOf(nil)
}

// find returns the value of the variable as nginx reads it, and whether the condition holds of
// that.
func (c *Condition) find(ex *exchange.Exchange, at *Place) (value []byte, holds bool) {
	switch r := &ex.Request; {
	case c.Of.variable == "http_" && strings.EqualFold(c.Of.of, "X-Forwarded-Proto"):
		value = r.Asked.Proto
	case c.Of.IsPath():
		value = readByNginx(r.Path)
	default:
		value = c.Of.value(ex, at)
	}
	return value, c.isOf(value)
}

// foundIn returns a place whose groups are those of the condition's pattern in a value.
func (c *Condition) foundIn(value []byte, at Place) *Place {
	if c.Pattern != nil && !c.Not {
		at.Pattern, at.searched = c.Pattern, append([]byte{}, value...)
	}
	return &at
}
