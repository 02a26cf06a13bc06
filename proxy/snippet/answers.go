package snippet

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/nginxconf"
)

// AuthAnswer is a variable that auth_request_set makes of a field of what auth-url answers.
type AuthAnswer struct {
	Variable string // without its dollar
	Field    string // in lower case
}

// ParseAuthAnswer returns what a directive makes, if it makes that. Set-Cookie is no such
// field: every one is passed on.
func ParseAuthAnswer(d *nginxconf.Directive) (a AuthAnswer, ok bool) {
	args := d.Args()
	if d.Name() != "auth_request_set" || len(args) != 2 {
		return a, false
	}
	a.Variable, ok = strings.CutPrefix(args[0], "$")
	field, isField := strings.CutPrefix(strings.ToLower(args[1]), "$upstream_http_")
	a.Field = strings.ReplaceAll(field, "_", "-")
	return a, ok && a.Variable != "" && isField && a.Field != "set-cookie" && exchange.IsToken([]byte(a.Field))
}

// named is the field as a variable whose name begins with prefix.
func (a *AuthAnswer) named(prefix string) string {
	return "$" + prefix + strings.ReplaceAll(a.Field, "-", "_")
}

// Fields are what the variables of a snippet stand for, by their names.
type Fields map[string]AuthAnswer

// FieldsOf returns those that answers make; of several for one variable the last counts.
func FieldsOf(answers []AuthAnswer) Fields {
	fields := Fields{}
	for _, a := range answers {
		fields[a.Variable] = a
	}
	return fields
}

// In writes the fields in the place of the variables, as variables whose names begin with
// prefix: http_ is a request's field of that name, upstream_http_ the answer's in auth-signin.
// It reads text once: anybody may have written it, and as many variables.
func (f Fields) In(text, prefix string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, rest := after, ""
		if inside, braced := strings.CutPrefix(after, "{"); braced && strings.Contains(inside, "}") {
			name, rest, _ = strings.Cut(inside, "}")
		} else if end := strings.IndexFunc(after, notOfName); end >= 0 {
			name, rest = after[:end], after[end:]
		}
		if a, known := f[name]; known {
			b.WriteString(a.named(prefix))
			text = rest
		} else {
			b.WriteByte('$')
			text = after
		}
	}
}

// notOfName reports whether a character ends the name of a variable.
func notOfName(r rune) bool {
	return r != '_' && (r < '0' || '9' < r) && (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r)
}

// title is a field's name as people write it.
func title(field string) string {
	words := strings.Split(field, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
	}
	return strings.Join(words, "-")
}

// WithAnswers returns a list whose directives name fields of auth-url's answer as they are
// named here, where a request has them once it has passed, and the fields that it needs for
// that. A field that is to have its own name needs nothing more, nor does a cookie.
func WithAnswers(list []nginxconf.Directive) (left []nginxconf.Directive, fields []string) {
	var made []AuthAnswer
	for i := range list {
		if a, ok := ParseAuthAnswer(&list[i]); ok {
			made, fields = append(made, a), append(fields, title(a.Field))
		}
	}
	named, cookies := FieldsOf(made), cookiesOf(list)
	for _, d := range list {
		if _, isAnswer := ParseAuthAnswer(&d); isAnswer || slices.ContainsFunc(cookies, func(v string) bool { return passesOn(&d, v) }) {
			continue
		}
		d.Words = slices.Clone(d.Words)
		for i := range d.Words {
			d.Words[i] = named.In(d.Words[i], "http_")
		}
		if !slices.ContainsFunc(made, func(a AuthAnswer) bool { return keepsName(&d, a) }) {
			left = append(left, d)
		}
	}
	return left, fields
}

// withoutCookies returns a list without what is so unasked: that cookies of auth-url's answer
// are passed on. The guide of oauth2-proxy has the second of them passed on by Lua.
func withoutCookies(list []nginxconf.Directive) []nginxconf.Directive {
	cookies, second := cookiesOf(list), map[string]bool{}
	for _, d := range list {
		if variable, cookie, ok := namesCookie(&d); ok {
			second[passesSecond(variable, cookie)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(d nginxconf.Directive) bool {
		_, _, names := namesCookie(&d)
		passes := d.Name() == "access_by_lua_block" && second[strings.Join(strings.Fields(d.Lua), " ")]
		return names || passes || slices.ContainsFunc(cookies, func(v string) bool { return passesOn(&d, v) })
	})
}

// namesCookie returns the variable that a directive makes of a cookie of the answer, and the
// name of that, unless it is the first.
func namesCookie(d *nginxconf.Directive) (variable, cookie string, ok bool) {
	if d.Name() != "auth_request_set" || len(d.Args()) != 2 {
		return "", "", false
	}
	cookie, ok = strings.CutPrefix(d.Words[2], "$upstream_cookie_")
	return strings.TrimPrefix(d.Words[1], "$"), cookie, ok || strings.EqualFold(d.Words[2], "$upstream_http_set_cookie")
}

// passesSecond is how the guide passes it on, with the attributes of the first.
func passesSecond(variable, cookie string) string {
	return fmt.Sprintf(`if ngx.var.%[1]s ~= "" then ngx.header["Set-Cookie"] = "%[2]s=" .. ngx.var.%[1]s .. ngx.var.auth_cookie:match("(; .*)") end`, variable, cookie)
}

// cookiesOf are the variables that a list makes of the cookies of an answer.
func cookiesOf(list []nginxconf.Directive) (variables []string) {
	for _, d := range list {
		if d.Name() == "auth_request_set" && len(d.Args()) == 2 && strings.EqualFold(d.Args()[1], "$upstream_http_set_cookie") {
			variables = append(variables, d.Args()[0])
		}
	}
	return variables
}

// passesOn reports whether a directive gives responses such cookies, which they are given
// unasked, by the same statuses.
func passesOn(d *nginxconf.Directive, variable string) bool {
	args := d.Args()
	return d.Name() == "add_header" && len(args) == 2 && strings.EqualFold(args[0], "set-cookie") && args[1] == variable
}

// keepsName reports whether a directive of WithAnswers gives a field its own name.
func keepsName(d *nginxconf.Directive, a AuthAnswer) bool {
	return d.Name() == "proxy_set_header" && len(d.Args()) == 2 && strings.EqualFold(d.Words[1], a.Field) &&
		d.Words[2] == a.named("http_")
}

// answerAdvice is about what a service that is asked by auth-url says.
func answerAdvice(args []string) Advice {
	from := strings.ToLower(args[len(args)-1])
	if strings.HasPrefix(from, "$upstream_cookie_") || from == "$upstream_http_set_cookie" {
		return Needless("every Set-Cookie of auth-url is passed on")
	}
	if a, ok := ParseAuthAnswer(&nginxconf.Directive{Words: append([]string{"auth_request_set"}, args...)}); ok {
		return Use("auth-response-headers", title(a.Field)).But("with all of them in one list; the backend is sent each under its own name")
	}
	return None("only fields of the answer are passed on")
}
