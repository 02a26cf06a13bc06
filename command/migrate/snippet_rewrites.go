package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

// rewritten is what a server-snippet asks under another path: "rewrite ^/a /b last". Here
// that is an Ingress beside, with all that is asked of the first, since nginx goes on as if
// the client had asked for the other path.
type rewritten struct{ pattern, target string }

// rewrittenIn returns what list[i] is about, if it is a rewrite. Without a flag nginx goes on
// to the next one.
func rewrittenIn(list []nginxconf.Directive, i int) (w rewritten, ok bool) {
	args := list[i].Args()
	if list[i].Name() != "rewrite" || len(args) < 2 || len(args) > 3 {
		return w, false
	}
	last := !slices.ContainsFunc(list[i+1:], nginxconf.IsNamed("rewrite"))
	if len(args) == 2 && !last || len(args) == 3 && args[2] != "last" && args[2] != "break" {
		return w, false
	}
	pattern, begins := strings.CutPrefix(args[0], "^")
	w = rewritten{pattern: pattern, target: args[1]}
	return w, begins && strings.HasPrefix(pattern, "/") && strings.HasPrefix(w.target, "/")
}

// isText reports whether the pattern has no more in it than dots of a regular expression.
func (w rewritten) isText() bool {
	return strings.NewReplacer(`\.`, ".", `\-`, "-").Replace(regexp.QuoteMeta(w.pattern)) == w.pattern
}

// about reports whether path is rewritten.
func (w rewritten) about(path string) bool {
	re, err := regexp.Compile("(?i)^(?:" + w.pattern + ")")
	return err != nil || re.MatchString(path)
}

// rewrites makes an Ingress of each rewritten path, numbered on, and reports whether all do
// the same. One that an earlier one takes is never reached.
func (r *replacement) rewrites(spec networkingv1.IngressSpec) bool {
	var taken []rewritten
	for _, w := range r.moved {
		if slices.ContainsFunc(taken, func(t rewritten) bool { return strings.HasPrefix(w.pattern, t.pattern) }) {
			r.needed = append(r.needed, fmt.Sprintf("rewrite ^%s is never reached", w.pattern))
			continue
		}
		if len(r.moved) > 1 && !w.isText() || !r.leavesAlone(w, spec) {
			return false
		}
		taken = append(taken, w)
		o, same := w.object(r.meta, r.annotations(), spec, len(r.beside)+1)
		if !same {
			return false
		}
		o.Notes = []string{fmt.Sprintf("what %s of Ingress %s asks under another path, here in any letter case", r.key, r.meta.fullName())}
		r.beside = append(r.beside, o)
	}
	return true
}

// leavesAlone reports whether a rewritten path meets nothing here that it would not meet in
// nginx, which looks at rules, and at what is refused, for the new one.
func (r *replacement) leavesAlone(w rewritten, spec networkingv1.IngressSpec) bool {
	to, _, _ := strings.Cut(w.target, "?")
	for _, l := range r.refused {
		if l.About(to) || l.About(w.pattern) || strings.Contains(to, "$") {
			return false
		}
	}
	if slices.ContainsFunc(r.own, func(p place) bool { return w.about(p.path) }) {
		return false
	}
	for at := range pathsOf(spec) {
		if w.about(at.Path) {
			return false
		}
	}
	return true
}

// object is the Ingress beside: with all options, for every host, and before the one backend
// that there is.
func (w rewritten) object(beside Meta, annotations map[string]string, spec networkingv1.IngressSpec, n int) (Object, bool) {
	for _, key := range []string{"rewrite-target", "use-regex", "app-root", "canary", "configuration-snippet"} {
		if annotations[route.OwnPrefix+key] != "" {
			return Object{}, false
		}
	}
	specific := networkingv1.PathTypeImplementationSpecific
	var backend *networkingv1.IngressBackend
	for at := range pathsOf(spec) {
		if backend != nil && (backend.Service == nil || at.Backend.Service == nil || *backend.Service != *at.Backend.Service) {
			return Object{}, false
		}
		backend = &at.Backend
	}
	if backend == nil || slices.ContainsFunc(spec.Rules, func(r networkingv1.IngressRule) bool { return r.HTTP == nil }) {
		return Object{}, false
	}
	own := besideSpec(spec, networkingv1.HTTPIngressPath{Path: w.pattern, PathType: &specific, Backend: *backend})
	meta := Meta{Name: beside.Name + "-rewrite-" + strconv.Itoa(n), Namespace: beside.Namespace, Labels: beside.Labels, Annotations: maps.Clone(annotations)}
	maps.DeleteFunc(meta.Annotations, func(name, _ string) bool { return !strings.HasPrefix(name, route.OwnPrefix) }) // what others read is said once
	meta.Annotations[route.OwnPrefix+"use-regex"], meta.Annotations[route.OwnPrefix+"rewrite-target"] = "true", w.target
	return besideObject(meta, own)
}
