package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// fields are what the directives of one block do to responses. nginx's own come behind those
// of the module headers-more, and what it hides of a backend's before.
type fields struct {
	hidden, more, age, added []filter.FieldChange
	aged                     bool // expires is there, and may be off
}

// all are the changes in their order.
func (f *fields) all() []filter.FieldChange { return slices.Concat(f.hidden, f.more, f.age, f.added) }

// under returns what a block in the place of outer does that has f: it adds to the changes of
// headers-more, and replaces the others.
func (f *fields) under(outer *fields) fields {
	inner := fields{hidden: f.hidden, more: slices.Concat(outer.more, f.more), age: f.age, added: f.added}
	if len(inner.hidden) == 0 {
		inner.hidden = outer.hidden
	}
	if !f.aged {
		inner.age = outer.age
	}
	if len(inner.added) == 0 {
		inner.added = outer.added
	}
	return inner
}

// take takes a directive that is about fields of responses.
func (f *fields) take(d *nginxconf.Directive, names *filter.Names) (taken bool, err error) {
	read, known := map[string]func([]string, *filter.Names) error{
		"add_header": f.add, "expires": f.expire, "more_set_headers": f.set, "more_clear_headers": f.clear, "proxy_hide_header": f.hide, "grpc_hide_header": f.hide,
	}[d.Name()]
	switch {
	case !known:
		return false, nil
	case d.Block != nil || len(d.Args()) == 0:
		return true, errors.New("it has no arguments, or a block")
	}
	return true, read(d.Args(), names)
}

// add reads add_header NAME VALUE [always].
func (f *fields) add(args []string, names *filter.Names) error {
	always := len(args) == 3 && args[2] == "always"
	if len(args) != 2 && !always {
		return errors.New("it is not a name, a value and perhaps always")
	}
	c, err := changeOf(args[0], args[1], names)
	if err != nil || c == nil {
		return err
	}
	c.Successful, c.Kind = !always, filter.FieldIsAdded
	c.Adds = !slices.Contains([]string{"content-type", "etag", "last-modified"}, strings.ToLower(c.Name)) // of which there is one
	f.added = append(f.added, *c)
	return nil
}

// set reads more_set_headers [-a] [-s STATUSES] [-t TYPES] "NAME: VALUE"...
func (f *fields) set(args []string, names *filter.Names) error {
	only, args, err := filtersOf(args)
	if err != nil {
		return err
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, ":")
		c, err := changeOf(strings.TrimSpace(name), strings.TrimSpace(value), names)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if c.Statuses, c.Types, c.Adds = only.Statuses, only.Types, only.Adds; value == "" {
			c.Value = nil
		}
		f.more = append(f.more, *c)
	}
	return nil
}

// clear reads more_clear_headers [-s STATUSES] [-t TYPES] NAME...
func (f *fields) clear(args []string, _ *filter.Names) error {
	only, args, err := filtersOf(args)
	if err != nil {
		return err
	}
	for _, name := range args {
		name, _, _ = strings.Cut(name, ":")
		if name = strings.TrimSpace(name); !exchange.IsToken([]byte(name)) || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return fmt.Errorf("%q is not a field of HTTP", printable.Cut(name, MaxQuoted))
		}
		f.more = append(f.more, filter.FieldChange{Name: name, Statuses: only.Statuses, Types: only.Types})
	}
	return nil
}

// hide reads proxy_hide_header NAME.
func (f *fields) hide(args []string, _ *filter.Names) error {
	if len(args) != 1 || !exchange.IsToken([]byte(args[0])) || strings.Contains(args[0], "*") {
		return errors.New("it is not one field of HTTP")
	}
	f.hidden = append(f.hidden, filter.FieldChange{Name: args[0], Kind: filter.FieldIsHidden})
	return nil
}

// filtersOf reads which responses a directive of headers-more is about.
func filtersOf(args []string) (only filter.FieldChange, rest []string, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-a":
			only.Adds, args = true, args[1:]
			continue
		case len(args) < 2:
			return only, nil, errors.New("it names nothing")
		case args[0] == "-s":
			for _, word := range strings.Fields(args[1]) {
				status, err := strconv.Atoi(word)
				if err != nil {
					return only, nil, fmt.Errorf("%q is no status", printable.Cut(word, MaxQuoted))
				}
				only.Statuses = append(only.Statuses, status)
			}
		case args[0] == "-t":
			only.Types = append(only.Types, strings.Fields(strings.ToLower(args[1]))...)
		default:
			return only, nil, fmt.Errorf("%q is not understood", printable.Cut(args[0], MaxQuoted))
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return only, nil, errors.New("it names no field")
	}
	return only, args, nil
}

// changeOf returns the change that sets a field; nil where the front end does that.
func changeOf(name, value string, names *filter.Names) (*filter.FieldChange, error) {
	if !exchange.IsToken([]byte(name)) || !exchange.IsFieldValue(value) {
		return nil, errors.New("it is not a field of HTTP")
	}
	if isFraming(name) {
		if strings.EqualFold(name, "content-length") && value == "0" { // as people write beside return 204
			return nil, nil
		}
		return nil, fmt.Errorf("%s may not be set", name)
	}
	t, err := names.ParseOfResponse(value)
	return &filter.FieldChange{Name: name, Value: t}, err
}

// expire reads expires TIME, or off, epoch or max.
func (f *fields) expire(args []string, _ *filter.Names) error {
	fixed := func(expires, control string) {
		for _, h := range [][2]string{{"Expires", expires}, {"Cache-Control", control}} {
			f.age = append(f.age, filter.FieldChange{Name: h[0], Value: filter.Literal(h[1]), Kind: filter.FieldOfAge, Successful: true})
		}
	}
	f.age, f.aged = nil, true
	switch n, isTime := SecondsOf(strings.TrimPrefix(args[0], "-")); {
	case len(args) > 1:
		return errors.New("the age of a file is not known here")
	case args[0] == "off":
		f.age = append(f.age, filter.FieldChange{Kind: filter.FieldOfAge})
	case args[0] == "epoch":
		fixed("Thu, 01 Jan 1970 00:00:01 GMT", "no-cache")
	case args[0] == "max":
		fixed("Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000")
	case !isTime:
		return fmt.Errorf("%s is not a time in whole seconds", printable.Cut(args[0], MaxQuoted))
	default:
		age := time.Duration(n) * time.Second
		if strings.HasPrefix(args[0], "-") {
			age = -age
		}
		f.age = append(f.age, filter.FieldChange{Age: &age, Kind: filter.FieldOfAge, Successful: true})
	}
	return nil
}
