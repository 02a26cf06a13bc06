package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// authAnswer is a variable that auth_request_set makes of a field of what auth-url answers.
type authAnswer struct{ variable, field string }

// authAnswerIn returns what a directive makes, if that is one.
func authAnswerIn(d *directive) (a authAnswer, ok bool) {
	args := d.args()
	if d.name() != "auth_request_set" || len(args) != 2 {
		return a, false
	}
	a.variable, ok = strings.CutPrefix(args[0], "$")
	field, isField := strings.CutPrefix(strings.ToLower(args[1]), "$upstream_http_")
	a.field = strings.ReplaceAll(field, "_", "-")
	return a, ok && a.variable != "" && isField && a.field != "set-cookie" && exchange.IsToken([]byte(a.field))
}

// in writes another variable in the place of this one.
func (a *authAnswer) in(text, variable string) string {
	name := regexp.QuoteMeta(a.variable)
	return regexp.MustCompile(`\$(`+name+`\b|\{`+name+`\})`).ReplaceAllLiteralString(text, "$"+variable+strings.ReplaceAll(a.field, "-", "_"))
}

// title is the field as people write it.
func (a *authAnswer) title() string {
	words := strings.Split(a.field, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
	}
	return strings.Join(words, "-")
}

// withAnswers returns a list whose directives name fields of auth-url's answer as they are
// named here, where a request has them once it has passed, and the fields that it needs for
// that. A field that is to have its own name needs nothing more.
func withAnswers(list []directive) (left []directive, fields []string) {
	var made []authAnswer
	for i := range list {
		if a, ok := authAnswerIn(&list[i]); ok {
			made, fields = append(made, a), append(fields, a.title())
		}
	}
	for _, d := range list {
		if _, isAnswer := authAnswerIn(&d); isAnswer {
			continue
		}
		d.words = slices.Clone(d.words)
		for _, a := range made {
			for i := range d.words {
				d.words[i] = a.in(d.words[i], "http_")
			}
		}
		if !slices.ContainsFunc(made, func(a authAnswer) bool { return a.isOwn(&d) }) {
			left = append(left, d)
		}
	}
	return left, fields
}

// isOwn reports whether a directive of withAnswers gives the field its own name.
func (a *authAnswer) isOwn(d *directive) bool {
	return d.name() == "proxy_set_header" && len(d.args()) == 2 && strings.EqualFold(d.words[1], a.field) &&
		d.words[2] == a.in("$"+a.variable, "http_")
}

// withoutAuthSnippet returns an Ingress with options in the place of an auth-snippet that do
// the same, and what has become of it. One of which anything would be lost stays whole.
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
// the place to sign in. It reports whether all is known, and anything there.
func (r *replacement) asks(text, signin string) bool {
	list, err := parseSnippet(text)
	before, lines := signin, []string{}
	for i := range list {
		d := &list[i]
		answer, isAnswer := authAnswerIn(d)
		line, why, known := askedWith(d)
		switch {
		case isAnswer:
			signin = answer.in(signin, "upstream_http_")
		case !known:
			return false
		case why != "":
			r.needed = append(r.needed, d.quoted()+": "+why)
		default:
			lines = append(lines, line)
		}
	}
	if signin != before {
		r.options = append(r.options, setting{"auth-signin", signin})
	}
	if len(lines) > 0 {
		r.options = append(r.options, setting{"auth-request-headers", strings.Join(lines, "\n")})
	}
	return err == nil && len(list) > 0
}

// askedWith returns the line of auth-request-headers that does what a directive does about the
// question to auth-url, or why none is needed. It reports whether either is known.
func askedWith(d *directive) (line, why string, known bool) {
	args := d.args()
	if len(args) != 2 || d.block != nil {
		return "", "bodies are not sent to auth-url", d.name() == "proxy_pass_request_body" && slices.Equal(args, []string{"off"})
	}
	name, value := args[0], args[1]
	switch lower := strings.ToLower(name); {
	case d.name() != "proxy_set_header" || !exchange.IsToken([]byte(name)) || !exchange.IsFieldValue(value):
		return "", "", false
	case lower == "content-length" && value == "":
		return "", "bodies are not sent to auth-url", true
	case lower == "x-forwarded-host" && slices.Contains([]string{"$host", "$http_host", "$best_http_host"}, value):
		return "", "it is sent unasked", true
	}
	return strings.TrimRight(fmt.Sprintf("%s: %s", name, value), " "), "", true
}
