package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

// place is one path that a snippet gives an answer of its own, without a backend. Here that
// is an Ingress of its own.
type place struct {
	path    string // the whole of it
	options []setting
}

// placeIn returns what a directive is about, if that is a place of which nothing is lost.
func placeIn(d *nginxconf.Directive) (place, bool) {
	switch d.Name() {
	case "location":
		return exactPlace(d)
	case "rewrite":
		return redirectedPlace(d)
	}
	return place{}, false
}

// exactPlace reads "location = /path" with an answer in it. Others match what begins with
// their path, in the middle of a name, too, as no rule does.
func exactPlace(d *nginxconf.Directive) (place, bool) {
	args := d.Args()
	if len(args) != 2 || args[0] != "=" {
		return place{}, false
	}
	said := placeAdvice(d)
	p := place{path: args[1], options: said.Options}
	return p, len(said.Global) == 0 && !said.Repeats() && p.answers()
}

// answers reports whether all that is asked for is known, and no backend is among it.
func (p *place) answers() bool {
	answered := false
	for _, o := range p.options {
		if o.Value == "" {
			return false
		}
		answered = answered || slices.Contains([]string{"direct-response", "permanent-redirect", "temporal-redirect"}, o.Key) ||
			o.Key == "denylist-source-range" && o.Value == "0.0.0.0/0,::/0"
	}
	return answered
}

// redirectedPlace reads "rewrite ^(/path)$ $1/ redirect", by which people add a slash.
func redirectedPlace(d *nginxconf.Directive) (place, bool) {
	args := d.Args()
	if len(args) != 3 {
		return place{}, false
	}
	key, known := map[string]string{"redirect": "temporal-redirect", "permanent": "permanent-redirect"}[args[2]]
	path, isOne := onlyMatch(args[0])
	if !known || !isOne {
		return place{}, false
	}
	target, drops := strings.CutSuffix(strings.ReplaceAll(args[1], "$1", path), "?")
	if !drops { // nginx adds the query
		target += "$is_args$args"
	}
	return place{path: path, options: []setting{{Key: key, Value: target}}}, true
}

// onlyMatch returns the one path that a pattern matches, if it is one.
func onlyMatch(pattern string) (path string, isOne bool) {
	inner, begins := strings.CutPrefix(pattern, "^")
	inner, ends := strings.CutSuffix(inner, "$")
	if whole, ok := strings.CutPrefix(inner, "("); ok {
		if whole, ok = strings.CutSuffix(whole, ")"); ok {
			inner = whole
		}
	}
	path = strings.ReplaceAll(inner, `\`, "")
	return path, begins && ends && strings.HasPrefix(path, "/") && strings.ReplaceAll(regexp.QuoteMeta(path), `\-`, "-") == inner
}

// object is the Ingress of a place beside the one whose snippet had it, and false where it
// would not do the same. n is its number.
func (p *place) object(beside Meta, spec networkingv1.IngressSpec, n int) (Object, bool) {
	backend := spec.DefaultBackend
	exact := networkingv1.PathTypeExact
	for at := range pathsOf(spec) {
		if at.Path == p.path && isExact(at) {
			return Object{}, false
		}
		if backend == nil {
			backend = &at.Backend
		}
	}
	if backend == nil {
		return Object{}, false
	}
	own := besideSpec(spec, networkingv1.HTTPIngressPath{Path: p.path, PathType: &exact, Backend: *backend})
	meta := Meta{Name: beside.Name + "-place-" + strconv.Itoa(n), Namespace: beside.Namespace, Labels: beside.Labels, Annotations: map[string]string{}}
	for _, o := range p.options {
		meta.Annotations[route.OwnPrefix+o.Key] = o.Value
	}
	return besideObject(meta, own)
}
