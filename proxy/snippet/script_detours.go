package snippet

import (
	"errors"
	"fmt"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// Detour is who is asked where an if of a location says so by proxy_pass, or where a location
// sets $proxy_upstream_name, by which ingress-nginx knows backends. All else that the location
// and its Ingress say holds there, as in nginx.
type Detour struct {
	Upstream
	To *filter.UpstreamPath // nil: the path is the request's
	// Named, unless empty, is NAMESPACE-SERVICE-PORT of a Service, in the place of Upstream.
	Named string
}

// isChoice reports whether d sets a variable that has a meaning, and that a snippet may set all the
// same.
func isChoice(d *nginxconf.Directive) bool {
	args := d.Args()
	return d.Name() == "set" && len(args) == 2 && d.Block == nil && strings.EqualFold(args[0], "$proxy_upstream_name")
}

// choose makes the step of set $proxy_upstream_name.
func (w *scripter) choose(value string) (filter.Step, error) {
	switch {
	case w.ofHost:
		return nil, errors.New("every location of ingress-nginx sets it again: write it into the configuration-snippet")
	case strings.Contains(value, "$") || strings.Count(value, "-") < 2 || len(value) > maxNamed:
		return nil, errors.New("it is not NAMESPACE-SERVICE-PORT of a Service")
	}
	number, err := w.lead(Detour{Named: value})
	return &filter.Choose{Detour: number}, err
}

// lead adds a detour, and returns its number.
func (w *scripter) lead(d Detour) (number int, err error) {
	if len(w.detours) == maxPassages {
		return 0, fmt.Errorf("there are more than %d backends that ifs and variables name", maxPassages)
	}
	w.detours = append(w.detours, d)
	return len(w.detours), nil
}

// maxNamed bounds NAMESPACE-SERVICE-PORT in bytes: two labels of DNS and the name of a port.
const maxNamed = 63 + 1 + 63 + 1 + 15

// detour makes the one of an if, which d stands in, and returns its number.
func (w *scripter) detour(d, condition *nginxconf.Directive) (int, error) {
	args := d.Args()
	switch {
	case w.ofHost:
		return 0, errors.New("nginx takes no proxy_pass in an if that stands outside of locations, and here in a location it stands outside of ifs")
	case len(args) != 1 || d.Block != nil:
		return 0, errors.New("it is not one address")
	}
	a, u, err := parsePass(args[0], w.constantsIn(condition))
	if err != nil {
		return 0, err
	}
	made := Detour{Upstream: u}
	switch {
	case a.asked:
		made.To = &filter.UpstreamPath{Asked: true}
	case a.uri != "" && !a.filled:
		return 0, errors.New("nginx takes no path in proxy_pass in an if")
	case a.uri != "":
		path, err := w.names.ParseTarget(a.uri)
		if err != nil {
			return 0, err
		}
		made.To = &filter.UpstreamPath{Filled: path}
	}
	return w.lead(made)
}

// constantsIn are the variables that have one text where an if is the last that holds: those that
// are set to it once, and what its block sets, unless they are set behind it and outside of ifs.
func (w *scripter) constantsIn(d *nginxconf.Directive) map[string]string {
	values := constantsOf(w.list)
	set := func(list []nginxconf.Directive, value func(text string) string) {
		for i := range list {
			if args := list[i].Args(); list[i].Name() == "set" && len(args) == 2 {
				values[strings.ToLower(strings.TrimPrefix(args[0], "$"))] = value(args[1])
			}
		}
	}
	set(d.Block, func(text string) string {
		if strings.Contains(text, "$") {
			return ""
		}
		return text
	})
	for i := range w.list {
		if &w.list[i] == d {
			set(w.list[i+1:], func(string) string { return "" })
		}
	}
	return values
}
