package route

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
)

// maxFields is how many fields one annotation may set.
const maxFields = 64

// parseRequestHeaders reads the fields that the backend is sent, on top of those of
// proxy-set-headers. One with a value that is not understood it is not sent at all, as there.
func parseRequestHeaders(s *settings, value string) error {
	list, wrong := parseFieldLines(value, parseField)
	fields, unfilled := s.requestFields(list)
	s.filters.RequestHeaders = slices.Concat(s.filters.RequestHeaders, fields)
	return inPart(len(fields), append(wrong, unfilled...))
}

// parseResponseHeaders reads the fields of responses, on top of those of custom-headers.
func parseResponseHeaders(s *settings, value string) error {
	list, err := s.parseAnswers(value)
	s.answers = slices.Concat(s.answers, list)
	return err
}

// parseSuccessHeaders reads those of responses without an error.
func parseSuccessHeaders(s *settings, value string) error {
	list, err := s.parseAnswers(value)
	s.filters.SuccessHeaders = slices.Concat(s.filters.SuccessHeaders, list)
	return err
}

func (s *settings) parseAnswers(value string) ([]filter.Field, error) {
	list, wrong := parseFieldLines(value, parseField)
	list = slices.DeleteFunc(list, func(h filter.Header) bool {
		barred := s.barsAnswer(h.Name)
		if barred {
			wrong = append(wrong, fmt.Errorf("global-allowed-response-headers of the proxy leaves out %s", h.Name))
		}
		return barred
	})
	return s.answerFields(list), inPart(len(list), wrong)
}

// parseFieldLines reads lines of "Name: value", as a message has them. A field without a
// value is taken out.
func parseFieldLines(text string, parse func(name, value string) (filter.Header, error)) (list []filter.Header, wrong []error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		h, err := parse(name, strings.TrimSpace(value))
		switch {
		case len(list) == maxFields:
			return list, append(wrong, fmt.Errorf("there are more than %d fields", maxFields))
		case !ok:
			wrong = append(wrong, fmt.Errorf("%.80q is no line of NAME: VALUE", line))
		case err != nil:
			wrong = append(wrong, err)
		default:
			list = append(list, h)
		}
	}
	return list, wrong
}

// parseField reads a field that a message may be given.
func parseField(name, value string) (h filter.Header, err error) {
	value, err = parseText(value)
	if _, bad := parseToken(name); err == nil {
		err = bad
	}
	switch {
	case err != nil:
		return h, fmt.Errorf("%.80q is no field: %w", name+": "+value, err)
	case strings.EqualFold(name, "host"):
		return h, fmt.Errorf("%s may not be set here; upstream-vhost sets that of backends", name)
	case filter.IsFraming(name):
		return h, fmt.Errorf("%s may not be set, since it says where the message ends", name)
	}
	return filter.Header{Name: name, Value: value}, nil
}
