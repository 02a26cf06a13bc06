package filter

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// Names are the variables that scripts set, beside those that are known everywhere. The zero
// value has none.
type Names struct {
	of map[string]*name // by the name in lower case, as nginx compares them
	// GroupsOfHost says that $1 to $9 are parts of the host that a client came by.
	GroupsOfHost bool
	// Groups says that a template has some of them.
	Groups   bool
	places   Places    // nil: it is not known where clients are
	referers *Referers // nil: nobody says which pages may lead here
}

// Clone returns a copy for another snippet, in which others can be set. What no client decides
// yet stays so.
func (n *Names) Clone() Names {
	c := Names{GroupsOfHost: n.GroupsOfHost, Groups: n.Groups, places: n.places, referers: n.referers}
	for key, one := range n.of {
		if c.of == nil {
			c.of = map[string]*name{}
		}
		c.of[key] = &name{index: one.index, open: one.open, fixed: !one.open, path: one.path, told: one.told, said: one.said, only: one.only, ahead: one.ahead, table: one.table, early: one.early, late: one.late, place: one.place}
	}
	return c
}

// name is one variable.
type name struct {
	index int
	open  bool // what clients send may decide its value, and not only which host they came by
	fixed bool // that must not become so, since another snippet may rely on it
	path  bool // whatever its value is, that begins with a slash
	told  bool // an authentication service may say what it is
	said  bool // a snippet may say so, too
	only  bool // none may, since a snippet relies on it
	ahead bool // another snippet sets it, which is read later
	table *Table
	early bool // the table's value does not wait for what scripts do
	late  bool // but for a response
	place func(netip.Addr) []byte
}

// HostSet is a variable that says which host a backend is asked for: that which the client asked
// for, unless a snippet sets another. In ingress-nginx each location sets it so.
const HostSet = "best_http_host"

// MaxNames is how many variables the scripts of an Ingress may set.
const MaxNames = 64

// Indexes are those of the variables that have been set, in the order of their names. Names of one
// snippet have the same order wherever it is read.
func (n *Names) Indexes() (all []int) {
	for _, key := range slices.Sorted(maps.Keys(n.of)) {
		if one := n.of[key]; !one.ahead {
			all = append(all, one.index)
		}
	}
	return all
}

// Set makes a variable known that gets a value; nil: parts of what clients send. One that
// means something else already is an error.
func (n *Names) Set(variableName string, value *Template) (index int, err error) {
	return n.enter(variableName, value, false)
}

// enter is Set, or where told is true SetAnswer.
func (n *Names) enter(variableName string, value *Template, told bool) (index int, err error) {
	lower := strings.ToLower(variableName)
	known := n.of[lower]
	if known == nil {
		_, taken := variable(lower)
		_, isTold := n.told(lower)
		if taken && lower != HostSet || isTold || lower == "" || wordLength(lower) != len(lower) {
			return 0, fmt.Errorf("variable $%.80s cannot be set", variableName)
		}
		if len(n.of) == MaxNames {
			return 0, fmt.Errorf("there are more than %d variables", MaxNames)
		}
		if n.of == nil {
			n.of = map[string]*name{}
		}
		known = &name{index: len(n.of), path: true}
		n.of[lower] = known
	}
	if known.table != nil || known.place != nil {
		return 0, fmt.Errorf("variable $%.80s has a table", variableName)
	}
	if known.only && !told {
		return 0, fmt.Errorf("variable $%.80s is what an authentication service says to another snippet", variableName)
	}
	if known.ahead { // until now nothing was known of it
		known.ahead, known.open, known.path, known.said = false, false, true, false
	}
	known.told, known.said = known.told || told, known.said || !told
	known.path = known.path && (value == nil || value.isPath(n))
	known.open = known.open || value == nil || !value.isOfHost()
	if known.open && known.fixed {
		return 0, fmt.Errorf("variable $%.80s is another snippet's, and here clients would decide it", variableName)
	}
	return known.index, nil
}

// SetTable makes a variable known that has a table, and some values.
func (n *Names) SetTable(variableName string, t *Table, values []*Template) error {
	for _, v := range append(values, Literal("")) {
		if _, err := n.Set(variableName, v); err != nil {
			return err
		}
	}
	known := n.of[strings.ToLower(variableName)]
	known.table, known.early = t, true
	for _, v := range append(values, t.Of) {
		known.early, known.late = known.early && v.isEarly(n), known.late || v.isLate(n)
	}
	return nil
}

// isEarly reports whether t can be filled in before any script has run.
func (t *Template) isEarly(n *Names) bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return !p.isEarly(n) })
}

// isEarly is that of one part.
func (p *part) isEarly(n *Names) bool {
	switch p.variable {
	case "set", "found":
		return false
	case "table":
		return n.of[strings.ToLower(p.of)].early
	}
	return true
}

// Declare makes a variable known that a snippet sets which is read later: told says that an
// authentication service decides its value, and else clients may.
func (n *Names) Declare(variableName string, told bool) error {
	if n.of[strings.ToLower(variableName)] != nil {
		return nil
	}
	_, err := n.SetAnswer(variableName)
	if err == nil {
		known := n.of[strings.ToLower(variableName)]
		known.told, known.ahead = told, true
	}
	return err
}

// SetAnswer makes a variable known that gets what an authentication service says.
func (n *Names) SetAnswer(variableName string) (index int, err error) {
	if index, err = n.enter(variableName, nil, true); err == nil {
		n.of[strings.ToLower(variableName)].path = false
	}
	return index, err
}

// SetGroups makes the named groups of a pattern known, and returns which variables they set.
// ofHost says that they are parts of the host that a client came by.
func (n *Names) SetGroups(pattern *regexp.Regexp, ofHost bool) (named []Named, err error) {
	var value *Template
	if ofHost {
		value = Literal("")
	}
	for group, name := range pattern.SubexpNames() {
		if name == "" {
			continue
		}
		index, err := n.Set(name, value)
		if err != nil {
			return nil, err
		}
		named = append(named, Named{Group: group, Variable: index})
	}
	return named, nil
}

// ParseTemplate is the function of that name with n. Groups are those that the last pattern
// of a script has found that was found in something.
func (n *Names) ParseTemplate(text string) (*Template, error) {
	return n.parse(text, n.grouped)
}

// grouped is variable, and knows that groups are those that a pattern of the script has found.
func (n *Names) grouped(name string) (part, bool) {
	p, known := n.variable(name)
	if p.variable == "group" {
		p.variable, p.ofHost, n.Groups = "found", n.GroupsOfHost, true
	}
	return p, known
}

// ParseReplacement is ParseTemplate of what takes the place of a path, with the groups that
// are found in that.
func (n *Names) ParseReplacement(text string) (*Template, error) {
	return n.parse(text, n.variable)
}

// ParseAnswer is ParseTemplate of what is known once an authentication service has answered:
// $upstream_http_NAME is a field of that answer, and $upstream_status its status.
func (n *Names) ParseAnswer(text string) (*Template, error) {
	return n.parse(text, func(name string) (part, bool) {
		if p, ok := n.set(name); ok {
			return p, true
		}
		return variableOfAnswer(name)
	})
}

// ParseVariable is the function of that name with n.
func (n *Names) ParseVariable(text string) (v Variable, err error) {
	if p, ok := n.set(strings.TrimPrefix(text, "$")); ok && strings.HasPrefix(text, "$") {
		return Variable{p}, nil
	}
	v, err = ParseVariable(text)
	return v, n.judge(err)
}

// parse is parseTemplate, and tells why a variable is not known here.
func (n *Names) parse(text string, known func(name string) (part, bool)) (*Template, error) {
	t, err := parseTemplate(text, known)
	return t, n.judge(err)
}

// judge returns err, or why a variable that has a table is not known here.
func (n *Names) judge(err error) error {
	var name unknownVariable
	if errors.As(err, &name) {
		if known := n.of[strings.ToLower(string(name))]; known != nil && known.late {
			return fmt.Errorf("variable $%.80s is about responses, and so only fields of these and the log may have it", string(name))
		}
	}
	return err
}

// ParseEarly is ParseVariable of one whose value does not wait for what scripts do.
func (n *Names) ParseEarly(text string) (v Variable, err error) {
	if v, err = n.ParseVariable(text); err == nil && !v.isEarly(n) {
		err = fmt.Errorf("variable %.80s is not known before snippets have set it", text)
	}
	return v, err
}

// ParseAnswered is ParseTarget of where those are sent whom an authentication service refuses,
// which it may decide itself: text may be a variable that it sets, and nobody else.
func (n *Names) ParseAnswered(text string) (*Target, error) {
	if known := n.of[strings.ToLower(strings.TrimPrefix(text, "$"))]; known != nil && known.told && !known.said && strings.HasPrefix(text, "$") {
		known.only = true
		t, err := n.ParseTemplate(text)
		return &Target{text: t, told: true}, err
	}
	return n.ParseTarget(text)
}

// ParseTarget is the function of that name with n. One that begins with the path is a path.
func (n *Names) ParseTarget(text string) (*Target, error) {
	t, err := n.ParseTemplate(text)
	if err == nil && n.MayLead(t) {
		return nil, fmt.Errorf("%s may be a path or an address: begin with a slash, or with http:// or https://", t.parts[0].name())
	}
	if strings.HasPrefix(text, "$") && !strings.Contains(text, "://") {
		text = "/" + text
		t, err = n.ParseTemplate(text)
	}
	return targetOf(text, t, err, n.GroupsOfHost)
}

func (n *Names) variable(name string) (part, bool) {
	if p, ok := n.set(name); ok {
		return p, true
	}
	return variable(name)
}

// told is a variable that nothing sets: a function tells it.
func (n *Names) told(name string) (part, bool) {
	if n.referers != nil && strings.EqualFold(name, InvalidReferer) {
		return part{variable: "function", of: name, tell: n.referers.value}, true
	}
	return n.place(name)
}

func (n *Names) set(name string) (part, bool) {
	known := n.of[strings.ToLower(name)]
	switch {
	case known == nil:
		return n.told(name)
	case known.late: // only later knows it
		return part{}, false
	}
	return known.part(name), true
}

// part is a variable that is written so.
func (known *name) part(name string) part {
	p := part{variable: "set", of: name, group: known.index, ofHost: !known.open, table: known.table, asked: strings.EqualFold(name, HostSet)}
	switch {
	case known.table != nil:
		p.variable = "table"
	case known.place != nil:
		p.variable, p.tell = "function", placeOf(known.place)
	}
	return p
}

// Teller returns what tells the value that a variable of n has for an exchange that has ended, or
// nil: n does not know it.
func (n *Names) Teller(name string) func(ex *exchange.Exchange, at Place) []byte {
	p, known := n.later(n.set)(name)
	if !known || p.variable == "response" {
		return nil
	}
	return func(ex *exchange.Exchange, at Place) []byte { return p.value(ex, &at) }
}

// MayLead reports whether t begins with a variable of a script that may be an address, and a
// path.
func (n *Names) MayLead(t *Template) bool {
	return len(t.parts) > 0 && (t.parts[0].variable == "set" || t.parts[0].variable == "table") && !t.isPath(n)
}

// isPath reports whether t begins with a slash, or is empty.
func (t *Template) isPath(n *Names) bool {
	if len(t.parts) == 0 {
		return true
	}
	switch p := &t.parts[0]; p.variable {
	case "":
		return p.literal[0] == '/'
	case "uri", "document_uri", "request_uri":
		return true
	case "set", "table":
		return n.of[strings.ToLower(p.of)].path
	}
	return false
}

// isOfHost reports whether t is a text, or the host that a client came by, so that it may
// stand in another's place.
func (t *Template) isOfHost() bool {
	for _, p := range t.parts {
		switch p.variable {
		case "", "host", "http_host", "best_http_host", "server_name", "namespace", "ingress_name", "service_name", "service_port":
		default:
			if !p.ofHost {
				return false
			}
		}
	}
	return true
}

// tableValue is what a table says, which is asked once.
func (p *part) tableValue(ex *exchange.Exchange, at *Place) []byte {
	if s := &ex.Script; p.group < len(s.Values) && s.Values[p.group] != nil {
		return s.Values[p.group]
	}
	value := p.table.value(ex, at)
	ex.Script.Set(p.group, value)
	return value
}

// scriptValue is what a variable stands for that only scripts have, or a group, which until one of
// a script has found something is of the path.
func (p *part) scriptValue(ex *exchange.Exchange, at *Place) (value []byte) {
	s := &ex.Script
	switch {
	case p.variable == "found" && s.Groups == nil:
		return at.group(p.group, ex.Request.Path)
	case p.variable == "found" && p.group < len(s.Groups):
		return s.Groups[p.group]
	case p.variable == "set" && p.group < len(s.Values):
		value = s.Values[p.group]
	}
	if value == nil && p.asked {
		return ex.Request.AskedHost()
	}
	return value
}
