package migrate

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/route"
	"quayside.io/proxy/snippet"
)

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
	if named := snippet.FieldsOf(s.Answers).In(signin, "upstream_http_"); named != signin {
		r.options = append(r.options, setting{Key: "auth-signin", Value: named})
	}
	var lines []string
	for _, h := range s.Headers {
		lines = append(lines, strings.TrimRight(h.Name+": "+h.Value, " "))
	}
	if len(lines) > 0 {
		r.options = append(r.options, setting{Key: "auth-request-headers", Value: strings.Join(lines, "\n")})
	}
	r.needed = s.Needless
	return true
}
