package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
	"quayside.io/proxy/snippet"
)

// isPlain reports whether what advice names does the same as a directive, and may stand beside
// annotations.
func isPlain(a advice, annotations map[string]string) bool {
	taken := func(o setting) bool {
		return annotations[route.OwnPrefix+o.Key] != "" && !slices.Contains(snippet.LineKeys(), o.Key)
	}
	return a.IsPlain() && !slices.ContainsFunc(a.Options, taken)
}

// withoutSnippets returns an Ingress with options in the place of snippets that do the same,
// and the Ingresses beside it that are for paths which a snippet answers itself. A snippet of
// which anything would be lost stays whole. alone says that no other Ingress has its hosts.
// notes say what has become of the others.
func withoutSnippets(meta Meta, spec networkingv1.IngressSpec, alone bool) (_ Meta, beside []Object, notes []string) {
	alone = alone && meta.Annotations[route.OwnPrefix+"configuration-snippet"] == "" // whose fields come before those of the host
	for _, key := range []string{"configuration-snippet", "server-snippet"} {
		list, err := nginxconf.Parse(meta.Annotations[route.OwnPrefix+key])
		if err != nil || len(list) == 0 {
			continue
		}
		r := replacement{key: key, meta: meta, alone: alone}
		if !r.takesAll(r.answers(list)) || !r.deniesRequests() || !r.answersRequests(spec) || !r.deniesPaths(spec) || !r.act(spec) || !r.places(spec, len(beside)) || !r.rewrites(spec) {
			continue
		}
		meta.Annotations, beside, notes = r.annotations(), append(beside, r.beside...), append(notes, r.note())
	}
	meta, ofAuth := withoutAuthSnippet(meta, spec)
	return meta, beside, append(notes, ofAuth...)
}

// replacement is what comes to the place of one snippet.
type replacement struct {
	key        string
	meta       Meta // of the Ingress that has it
	alone      bool // what it says of its hosts is said of this Ingress
	options    []setting
	plain      advice // options of fields and the like
	ofPlaces   bool   // which are of own, too
	own        []place
	refused    []snippet.Denial
	requests   []string // lines of denied-requests
	redirected []string // of redirected-requests
	answered   []string // of answered-requests
	rewritten  []string // and of rewritten-paths
	moved      []rewritten
	ends       bool // nginx goes no further with some paths, or never
	beside     []Object
	needed     []string // why nothing has to be written for the others
}

// takesAll reports whether each directive has a replacement.
func (r *replacement) takesAll(list []nginxconf.Directive) bool {
	takes := r.takesOfHost
	if r.key == "configuration-snippet" {
		takes = r.takesInPlace
	}
	for i := range list {
		if !takes(list, i) && !r.takesAnywhere(&list[i]) {
			return false
		}
	}
	r.options = append(r.options, r.plain.Options...)
	r.lines("rewritten-paths", r.rewritten)
	return !r.plain.Repeats() && !(r.ofPlaces && len(r.own) > 0)
}

// takesInPlace takes list[i] from a configuration-snippet.
func (r *replacement) takesInPlace(list []nginxconf.Directive, i int) bool {
	d := &list[i]
	if d.Name() != "location" && r.takesCondition(d) {
		return true
	}
	if line, ok := snippet.RewrittenPath(d); ok {
		r.rewritten, r.ends = append(r.rewritten, line), true
		return true
	}
	return d.Name() != "default_type" && r.takesPlain(d)
}

// takesOfHost takes list[i] from a server-snippet, which is of other Ingresses, too, unless
// this one is alone.
func (r *replacement) takesOfHost(list []nginxconf.Directive, i int) bool {
	d := &list[i]
	if p, ok := placeIn(d); ok {
		r.own = append(r.own, p)
		return true
	}
	if w, ok := rewrittenIn(list, i); ok {
		r.moved, r.ends = append(r.moved, w), true
		return true
	}
	if !r.alone {
		return false
	}
	if r.takesCondition(d) {
		return true
	}
	taken := r.inherits(d) && r.takesPlain(d)
	r.ofPlaces = r.ofPlaces || taken && shown(d)
	return taken
}

// takesCondition takes what refuses some requests, sends them elsewhere or answers them. What
// is answered comes behind the others here.
func (r *replacement) takesCondition(d *nginxconf.Directive) bool {
	if r.ends {
		return false
	}
	if line, ok := snippet.AnsweredRequest(d); ok && d.Name() == "if" {
		r.answered = append(r.answered, line)
		return true
	}
	if len(r.answered) > 0 {
		return false
	}
	if line, ok := snippet.DeniedRequest(d); ok {
		r.requests = append(r.requests, line)
		return true
	}
	line, ok := snippet.RedirectedRequest(d)
	if ok {
		r.redirected, r.ends = append(r.redirected, line), snippet.IsForAll(line)
	}
	return ok
}

// takesPlain takes what is about fields and the like.
func (r *replacement) takesPlain(d *nginxconf.Directive) bool {
	said := adviceOn(d, false)
	if said.Needless || d.Block != nil || !isPlain(said, r.meta.Annotations) {
		return false
	}
	r.plain = r.plain.And(advice{Options: said.Options})
	return true
}

// takesAnywhere takes what is the same in both.
func (r *replacement) takesAnywhere(d *nginxconf.Directive) bool {
	if p, ok := placeIn(d); ok && d.Name() == "location" {
		r.own = append(r.own, p)
		return true
	}
	if l, ok := denialIn(d); ok {
		r.refused = append(r.refused, l)
		return true
	}
	said := adviceOn(d, false)
	if said.Needless {
		r.needed = append(r.needed, snippet.Quoted(d)+": "+said.Remark)
	}
	return said.Needless
}

// answers has auth-response-headers give requests what the snippet makes variables of, and
// returns the other directives. Without auth-url there is none to give.
func (r *replacement) answers(list []nginxconf.Directive) []nginxconf.Directive {
	left, fields := snippet.WithAnswers(list)
	if len(fields) == 0 || r.key != "configuration-snippet" || r.meta.Annotations[route.OwnPrefix+"auth-url"] == "" {
		return list
	}
	r.options = append(r.options, setting{Key: "auth-response-headers", Value: strings.Join(fields, ",")})
	return left
}

// inherits reports whether the locations of the Ingress take over what a directive says for
// the host.
func (r *replacement) inherits(d *nginxconf.Directive) bool {
	adds := d.Name() == "add_header" || d.Name() == "expires"
	return snippet.IsInherited(d) && !(adds && r.meta.Annotations[route.OwnPrefix+"auth-url"] != "") // which adds cookies
}

// shown reports whether places that nginx answers itself have what a directive says, too.
func shown(d *nginxconf.Directive) bool {
	return slices.Contains([]string{"add_header", "expires", "more_set_headers", "more_clear_headers"}, d.Name())
}

// deniesPaths has denied-paths say what the snippet refuses, and reports whether that is the same.
func (r *replacement) deniesPaths(spec networkingv1.IngressSpec) bool {
	lines, same := deniedPaths(r.refused, r.own, r.meta, spec)
	r.lines("denied-paths", lines)
	return same
}

// act reports whether the proxy understands every option.
func (r *replacement) act(spec networkingv1.IngressSpec) bool {
	alone := Meta{Namespace: r.meta.Namespace, Name: r.meta.Name, Annotations: map[string]string{}}
	for _, o := range r.options {
		alone.Annotations[route.OwnPrefix+o.Key] = o.Value
		if strings.HasPrefix(o.Key, "auth-") { // which goes with this
			alone.Annotations[route.OwnPrefix+"auth-url"] = r.meta.Annotations[route.OwnPrefix+"auth-url"]
		}
	}
	return len(judge(alone, spec)) == 0
}

// places makes an Ingress of each place, numbered on, and reports whether all do the same.
func (r *replacement) places(spec networkingv1.IngressSpec, before int) bool {
	for i := range r.own {
		o, same := r.own[i].object(r.meta, spec, before+i+1)
		if !same {
			return false
		}
		o.Notes = []string{fmt.Sprintf("what %s of Ingress %s says of %s", r.key, r.meta.fullName(), r.own[i].path)}
		r.beside = append(r.beside, o)
	}
	return true
}

// annotations are those of the Ingress without the snippet.
func (r *replacement) annotations() map[string]string {
	out := maps.Clone(r.meta.Annotations)
	delete(out, route.OwnPrefix+r.key)
	for _, o := range r.options {
		between := "\n"
		switch o.Key {
		case "auth-response-headers":
			between = ","
		case "auth-signin": // is what it was, in other words
			delete(out, route.OwnPrefix+o.Key)
		}
		out[route.OwnPrefix+o.Key] = strings.TrimLeft(out[route.OwnPrefix+o.Key]+between+o.Value, between)
	}
	return out
}

func (r *replacement) note() string {
	var into, why []string
	for _, o := range r.options {
		into = append(into, o.Key)
	}
	if slices.ContainsFunc(r.options, func(o setting) bool { return slices.Contains(snippet.LineKeys(), o.Key) }) {
		why = append(why, "fields are set in every request and response, in the place of those that are there")
	}
	if r.key == "server-snippet" && slices.ContainsFunc(r.options, func(o setting) bool { return o.Key != "denied-paths" }) {
		why = append(why, "no other Ingress of those that were read has its hosts")
	}
	for _, o := range r.beside {
		into = append(into, o.String())
	}
	if len(r.refused) > 0 {
		why = append(why, "denied-paths holds for all Ingresses of its hosts in its namespace, and not for those of others")
	}
	if why = append(why, r.needed...); len(into) == 0 {
		return fmt.Sprintf("%s is left out: %s", r.key, strings.Join(why, "; "))
	}
	return strings.TrimSuffix(fmt.Sprintf("%s has become %s; %s", r.key, strings.Join(into, " and "), strings.Join(why, "; ")), "; ")
}
