package route

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
)

// parseAnsweredRequests reads lines of what nginx's return answers: a condition, a status, and
// perhaps a text, in quotes behind its type.
func parseAnsweredRequests(s *settings, value string) error {
	list, err := parseLines(value, s.parseAnsweredRequest)
	s.filters.AnsweredRequests = slices.Concat(s.filters.AnsweredRequests, list)
	return err
}

func (s *settings) parseAnsweredRequest(line string) (a filter.AnsweredRequest, err error) {
	condition, rest, err := s.parseCondition(line)
	if err != nil {
		return a, err
	}
	status, text := cutWord(rest)
	if kind, behind := cutWord(text); strings.Contains(kind, "/") && strings.HasPrefix(behind, `"`) {
		if a.Type, text = kind, behind; !isMediaType(kind) {
			return a, fmt.Errorf("%.80q is no media type", kind)
		}
	}
	if inside, quoted := strings.CutPrefix(text, `"`); quoted {
		var ends bool
		if text, ends = strings.CutSuffix(inside, `"`); !ends {
			return a, errors.New("its text does not end with the double quotes that it begins with")
		}
	}
	direct, err := directOf(status, strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t").Replace(text))
	if err != nil {
		return a, err
	}
	if direct.Status >= 300 {
		return a, fmt.Errorf("%d refuses, which denied-paths and denied-requests do", direct.Status)
	}
	a.Condition, a.DirectResponse = condition, *direct
	if a.Type != "" && a.Type != "application/json" && direct.Text.HasVariables() {
		return a, errors.New("a text with variables is text/plain or application/json, so that nobody's words become a page")
	}
	return a, nil
}

// isMediaType reports whether text is a type, perhaps with parameters without blanks.
func isMediaType(text string) bool {
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && strings.Count(kind, "/") == 1 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
