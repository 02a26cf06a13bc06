package route

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// AuthSnippet is what an auth-snippet says: it is obeyed as far as it is about fields, as
// those are that the guides of authentication services have people write.
type AuthSnippet struct {
	Headers  []filter.Header // that auth-url is asked with
	Answers  []AuthAnswer
	Needless []string // directives that ask for what is so anyway, each with the reason
}

// ParseAuthSnippet reads one. A directive that is not known is an error.
func ParseAuthSnippet(text string) (*AuthSnippet, error) {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return nil, err
	}
	s := &AuthSnippet{}
	for i := range list {
		if err := s.take(&list[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", list[i].Line, err)
		}
	}
	return s, nil
}

func (s *AuthSnippet) take(d *nginxconf.Directive) error {
	needless := func(why string) error {
		s.Needless = append(s.Needless, strings.TrimSuffix(d.Text, ";")+": "+why)
		return nil
	}
	if a, ok := ParseAuthAnswer(d); ok {
		s.Answers = append(s.Answers, a)
		return nil
	}
	args := d.Args()
	switch {
	case d.Name() == "proxy_pass_request_body" && slices.Equal(args, []string{"off"}):
		return needless("bodies are not sent to auth-url")
	case d.Name() != "proxy_set_header" || len(args) != 2:
		return fmt.Errorf("of an auth-snippet nothing is obeyed but proxy_set_header and auth_request_set of fields, not %.80q", d.Text)
	case strings.EqualFold(args[0], "content-length") && args[1] == "":
		return needless("bodies are not sent to auth-url")
	case strings.EqualFold(args[0], "x-forwarded-host") && slices.Contains([]string{"$host", "$http_host", "$best_http_host"}, args[1]):
		return needless("it is sent unasked")
	}
	h, err := parseField(args[0], args[1])
	if err != nil {
		return err
	}
	s.Headers = append(s.Headers, h)
	return nil
}

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

// In writes the field in the place of the variable, as a variable whose name begins with
// prefix: http_ is a request's field of that name, upstream_http_ the answer's in auth-signin.
func (a *AuthAnswer) In(text, prefix string) string {
	name := regexp.QuoteMeta(a.Variable)
	return regexp.MustCompile(`\$(`+name+`\b|\{`+name+`\})`).ReplaceAllLiteralString(text, "$"+prefix+strings.ReplaceAll(a.Field, "-", "_"))
}
