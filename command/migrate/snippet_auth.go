package migrate

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

// title is a field's name as people write it.
func title(field string) string {
	words := strings.Split(field, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
	}
	return strings.Join(words, "-")
}

// withAnswers returns a list whose directives name fields of auth-url's answer as they are
// named here, where a request has them once it has passed, and the fields that it needs for
// that. A field that is to have its own name needs nothing more.
func withAnswers(list []nginxconf.Directive) (left []nginxconf.Directive, fields []string) {
	var made []route.AuthAnswer
	for i := range list {
		if a, ok := route.ParseAuthAnswer(&list[i]); ok {
			made, fields = append(made, a), append(fields, title(a.Field))
		}
	}
	for _, d := range list {
		if _, isAnswer := route.ParseAuthAnswer(&d); isAnswer {
			continue
		}
		d.Words = slices.Clone(d.Words)
		for _, a := range made {
			for i := range d.Words {
				d.Words[i] = a.In(d.Words[i], "http_")
			}
		}
		if !slices.ContainsFunc(made, func(a route.AuthAnswer) bool { return keepsName(&d, a) }) {
			left = append(left, d)
		}
	}
	return left, fields
}

// keepsName reports whether a directive of withAnswers gives a field its own name.
func keepsName(d *nginxconf.Directive, a route.AuthAnswer) bool {
	return d.Name() == "proxy_set_header" && len(d.Args()) == 2 && strings.EqualFold(d.Words[1], a.Field) &&
		d.Words[2] == a.In("$"+a.Variable, "http_")
}

// withoutAuthSnippet returns an Ingress with options in the place of an auth-snippet, and what
// has become of it. One that the proxy does not understand stays.
func withoutAuthSnippet(meta Meta, spec networkingv1.IngressSpec) (_ Meta, notes []string) {
	r := replacement{key: "auth-snippet", meta: meta}
	known := r.asks(meta.Annotations[route.OwnPrefix+r.key], meta.Annotations[route.OwnPrefix+"auth-signin"])
	if !known || !r.act(spec) {
		return meta, nil
	}
	meta.Annotations = r.annotations()
	return meta, []string{r.note()}
}

// asks has options say what a snippet says of the question to auth-url, and of the answer in
// the place to sign in. It reports whether it says anything, and all is known.
func (r *replacement) asks(text, signin string) bool {
	s, err := route.ParseAuthSnippet(text)
	if err != nil || len(s.Headers)+len(s.Answers)+len(s.Needless) == 0 {
		return false
	}
	before := signin
	for _, a := range s.Answers {
		signin = a.In(signin, "upstream_http_")
	}
	if signin != before {
		r.options = append(r.options, setting{"auth-signin", signin})
	}
	var lines []string
	for _, h := range s.Headers {
		lines = append(lines, strings.TrimRight(h.Name+": "+h.Value, " "))
	}
	if len(lines) > 0 {
		r.options = append(r.options, setting{"auth-request-headers", strings.Join(lines, "\n")})
	}
	r.needed = s.Needless
	return true
}
