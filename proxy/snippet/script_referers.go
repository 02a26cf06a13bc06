package snippet

import (
	"errors"
	"fmt"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// validReferers is the directive that says which pages may lead here.
const validReferers = "valid_referers"

// maxReferers bounds the pages that one place names.
const maxReferers = 256

// referers has the variable $invalid_referer go by what a list says of pages, if it says
// anything, and returns what undoes that.
func (w *scripter) referers(list []nginxconf.Directive) (undo func(), err error) {
	v := filter.Referers{Hosts: map[string]string{}}
	said := 0
	for i := range list {
		d := &list[i]
		if d.Name() != validReferers {
			continue
		}
		if len(d.Args()) == 0 || d.Block != nil {
			return nil, at(d, errors.New("it does not name pages"))
		}
		for _, arg := range d.Args() {
			if said++; said > maxReferers {
				return nil, at(d, fmt.Errorf("more than %d pages are named", maxReferers))
			}
			if err := page(&v, arg); err != nil {
				return nil, at(d, err)
			}
		}
	}
	switch {
	case said == 0:
		return func() {}, nil
	case !v.Own && len(v.Hosts)+len(v.Wild)+len(v.Patterns) == 0:
		return nil, errors.New(validReferers + ": nginx wants a valid page beside none and blocked: server_names, the name of a host, or a pattern")
	}
	before := w.names.SetReferers(&v)
	return func() { w.names.SetReferers(before) }, nil
}

// page enters one argument.
func page(v *filter.Referers, text string) error {
	switch text {
	case "none":
		v.None = true
		return nil
	case "blocked":
		v.Blocked = true
		return nil
	case "server_names":
		v.Own = true
		return nil
	}
	if pattern, is := strings.CutPrefix(text, "~"); is {
		re, err := filter.CompilePattern("(?i)" + pattern)
		v.Patterns = append(v.Patterns, re)
		return err
	}
	host, path := text, ""
	if slash := strings.IndexByte(text, '/'); slash >= 0 {
		host, path = text[:slash], text[slash:]
	}
	if strings.HasPrefix(path, "//") {
		return fmt.Errorf("%q: nginx wants no scheme here, and reads a host of that name", printable.Cut(text, MaxQuoted))
	}
	host = strings.ToLower(host)
	if name, isWild := hostOf(host); isWild {
		v.Wild = append(v.Wild, filter.RefererHosts{Name: name, Path: path})
		if !strings.HasPrefix(host, ".") {
			return nil
		}
		host = host[1:]
	}
	if _, twice := v.Hosts[host]; twice || host == "" || strings.Contains(host, "*") || strings.Contains(host, "..") {
		return fmt.Errorf("%q is no name of a host, or there twice", printable.Cut(text, MaxQuoted))
	}
	v.Hosts[host] = path
	return nil
}
