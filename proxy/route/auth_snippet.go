package route

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/snippet"
)

// AuthSnippet is what an auth-snippet says: it is obeyed as far as it is about fields, as
// those are that the guides of authentication services have people write.
type AuthSnippet struct {
	Headers  []filter.Header // that auth-url is asked with
	Answers  []snippet.AuthAnswer
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
		s.Needless = append(s.Needless, snippet.Quoted(d)+": "+why)
		return nil
	}
	if a, ok := snippet.ParseAuthAnswer(d); ok {
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
