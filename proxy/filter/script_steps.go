package filter

import (
	"bytes"
	"regexp"
	"strings"

	"quayside.io/proxy/exchange"
)

// Named is a group of a pattern that gives a variable its value.
type Named struct{ Group, Variable int }

// keepGroups notes what a pattern finds in a value that it is found in, or not. One that finds
// nothing leaves no groups, as in nginx.
func keepGroups(s *exchange.Scripted, pattern *regexp.Regexp, value []byte, named []Named, found bool) {
	s.Groups = [][]byte{}
	if !found || pattern.NumSubexp() == 0 {
		return
	}
	if groups := pattern.FindSubmatch(bytes.Clone(value)); groups != nil {
		s.Groups = groups
		for _, n := range named {
			s.Set(n.Variable, groups[n.Group])
		}
	}
}

// readByNginx is a normalised path as nginx reads it, see AppendDecoded.
func readByNginx(path []byte) []byte {
	if bytes.Contains(path, []byte("%2F")) {
		return AppendDecoded(nil, path)
	}
	return path
}

// If is a block of steps for some requests.
type If struct {
	Condition
	Named []Named // groups of its pattern
	// Bare says that nothing is compared: the condition is whether there is anything.
	Bare bool
	// Than, unless nil, is filled in and compared instead of Text.
	Than *Template
	// Steps are done where it holds.
	Steps []Step
	// Fields is which set of Script.Fields counts then; exchange.NoFields: that stays. OfHost says
	// that it is the script of a host.
	Fields int
	OfHost bool
	// Detour is the number of who is asked in the place of the route's backend, with Fields; 0:
	// nobody is.
	Detour int
	// Refuses says that it refuses by itself, so that every value counts that a backend may
	// read, see DeniedRequest.
	Refuses bool
}

func (i *If) runner(tools *Tools) runner {
	block, at := runners(i.Steps, tools), tools.Place
	came := i.Of.variable == "http_" && strings.EqualFold(i.Of.of, "X-Forwarded-Proto") // whoever sent it, see find
	anyOf := i.Refuses && !came
	kind := kindOf(i.OfHost)
	return func(ex *exchange.Exchange) outcome {
		c := &i.Condition
		if i.Than != nil {
			c = &Condition{Of: c.Of, Not: c.Not, Text: string(i.Than.append(nil, ex, &at, appendAsIs, appendAsIs))}
		}
		value, holds := c.find(ex, &at)
		if c.Pattern != nil && !i.Bare {
			keepGroups(&ex.Script, c.Pattern, value, i.Named, holds != c.Not)
		}
		if !holds && !(anyOf && c.isOfAny(ex, &at)) {
			return goesOn
		}
		if i.Fields != exchange.NoFields {
			ex.Script.Fields[kind], ex.Script.Detour = i.Fields, i.Detour
		}
		return run(block, ex)
	}
}

// Set gives a variable a value.
type Set struct {
	Variable int // as Names numbers it
	Value    *Template
}

// Choose has another asked in the place of the route's backend, as Detour of If numbers them.
type Choose struct{ Detour int }

func (c *Choose) runner(*Tools) runner {
	return func(ex *exchange.Exchange) outcome {
		ex.Script.Chosen = c.Detour
		return goesOn
	}
}

// maxValue bounds the value of a variable in bytes: "set $a $a$a" doubles it.
const maxValue = 8 << 10

func (o *Set) runner(tools *Tools) runner {
	at, fill := tools.Place, o.Value.filler(tools.Place, appendAsIs, appendAsIs)
	return func(ex *exchange.Exchange) outcome {
		var value []byte
		if o.Value.HasGroups() && bytes.ContainsAny(ex.Request.AskedTarget(), "%+") {
			value = o.Value.appendQuoted(nil, ex, &at)
		} else {
			value = fill(ex)
		}
		if len(value) > maxValue {
			ex.Answer(500, "500 Internal Server Error: a variable has grown too long\n")
			return hasAnswered
		}
		ex.Script.Set(o.Variable, value)
		return goesOn
	}
}

// appendQuoted appends t with its variables filled in, and groups as nginx writes them into
// variables where the request has something escaped: as part of a query.
func (t *Template) appendQuoted(dst []byte, ex *exchange.Exchange, at *Place) []byte {
	for i := range t.parts {
		switch p := &t.parts[i]; p.variable {
		case "":
			dst = append(dst, p.literal...)
		case "found", "group":
			dst = appendQuery(dst, p.value(ex, at))
		default:
			dst = append(dst, p.value(ex, at)...)
		}
	}
	return dst
}

// Break ends a script.
type Break struct {
	// Stays says that a path which has been replaced is not looked for again.
	Stays bool
}

func (b *Break) runner(*Tools) runner {
	return func(ex *exchange.Exchange) outcome {
		if b.Stays {
			ex.Script.Moved, ex.Script.Ended = false, true
		}
		return ends
	}
}

// Return answers, or sends elsewhere.
type Return struct {
	Redirect *Redirect // nil: Response is the answer
	Response DirectResponse
	// Type is the media type of the text; empty: text/plain.
	Type string
	// Fails says that the text is the proxy's own, about what is wrong.
	Fails bool
}

func (r *Return) runner(tools *Tools) runner {
	at := tools.Place
	return func(ex *exchange.Exchange) outcome {
		if r.Redirect != nil {
			sendTo(ex, r.Redirect.Code, r.Redirect.To.fill(ex, &at))
			return hasAnswered
		}
		r.Response.answer(ex, r.Response.Text.append(nil, ex, &at, appendAsIs, appendClean), r.Type)
		if r.Fails {
			ex.Response.Fault = r.Response.Status
		}
		return hasAnswered
	}
}

// Move replaces the path.
type Move struct {
	Rewrite
	Named []Named // groups of its pattern
	// Stays says that the request stays with its route, and the path is not rewritten again.
	Stays bool
	// Breaks says that the new path is sent on as it is, wherever it leads.
	Breaks bool
	// Ends says that nothing else of the script follows.
	Ends bool
	// Redirect is the status where clients are sent to the new path; 0: they are not.
	Redirect int
}

func (m *Move) runner(tools *Tools) runner {
	w, normalize := newRewriter(m.Rewrite, tools.Place), tools.Normalize
	w.redirect = m.Redirect
	return func(ex *exchange.Exchange) outcome {
		r := &ex.Request
		searched := readByNginx(r.Path)
		if len(m.Named) > 0 { // they may stand in what comes
			keepGroups(&ex.Script, m.Pattern, searched, m.Named, true)
		}
		passes, found := w.request(ex)
		keepGroups(&ex.Script, m.Pattern, searched, nil, found)
		switch {
		case !found:
			return goesOn
		case !passes:
			return hasAnswered
		}
		to := bytes.Clone(r.Target) // the next is written where it is
		path, ok := normalize(nil, to)
		if !ok {
			ex.Answer(400, "400 Bad Request: the path cannot be rewritten\n")
			return hasAnswered
		}
		r.Target, r.Path = to, path
		ex.Script.Moved, ex.Script.Ended = !m.Stays, m.Stays
		ex.Script.Broke = ex.Script.Broke || m.Breaks
		if m.Ends {
			return ends
		}
		return goesOn
	}
}

// Pass hands a request on to a route of the script's own, without what stands for the one that it
// came to.
type Pass struct{ Passage int } // from 1

func (p *Pass) runner(*Tools) runner {
	return func(ex *exchange.Exchange) outcome {
		ex.Script.Moved, ex.Script.Passage = true, p.Passage
		return ends
	}
}
