package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy/filter"
)

// parseCustomHeaders names the ConfigMap; finishHeaders looks for it.
func parseCustomHeaders(s *settings, value string) error {
	s.customHeaders = value
	return nil
}

// finishHeaders closes a route whose headers are not to be had: what they are for,
// such as a policy for scripts, may be what keeps its users safe.
func (s *settings) finishHeaders(r refs) *finding {
	var list []filter.Header
	if s.customHeaders != "" {
		var err error
		if list, err = headersOf(r, s.customHeaders); err != nil {
			f := s.closeFor("custom-headers", "", err)
			return &f
		}
	}
	for _, h := range list {
		if s.barsAnswer(h.Name) {
			f := s.close("custom-headers", fmt.Sprintf("sets the field %s, which global-allowed-response-headers of the proxy leaves out", h.Name))
			return &f
		}
	}
	own := s.answers
	if len(s.filters.Scripts) > 0 { // of which they are on top
		s.filters.TopHeaders, own = own, nil
	}
	if len(list)+len(own) > 0 {
		s.filters.Headers = slices.Concat(s.filters.Headers, s.answerFields(list), own)
	}
	return nil
}

// barsAnswer reports whether an Ingress may not set a field of responses.
func (s *settings) barsAnswer(name string) bool {
	return s.mayAnswer != nil && !slices.ContainsFunc(s.mayAnswer, func(may string) bool { return strings.EqualFold(may, name) })
}

// headersOf returns the fields that a ConfigMap holds, ordered by name.
func headersOf(r refs, name string) ([]filter.Header, error) {
	m, err := r.configMap(name)
	if err != nil {
		return nil, err
	}
	return fieldsOf(m)
}

func fieldsOf(m *corev1.ConfigMap) ([]filter.Header, error) {
	list := make([]filter.Header, 0, len(m.Data))
	for _, name := range slices.Sorted(maps.Keys(m.Data)) {
		if _, err := parseToken(name); err != nil || filter.IsFraming(name) {
			return nil, fmt.Errorf("may not set the field %q", name)
		}
		value, err := parseText(m.Data[name])
		if err != nil {
			return nil, fmt.Errorf("has a value for %s that cannot be sent: %w", name, err)
		}
		list = append(list, filter.Header{Name: name, Value: value})
	}
	return list, nil
}
