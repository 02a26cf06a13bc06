package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"quayside.io/proxy/filter"
)

// parseRedirectedRequests reads lines of what nginx asks with if and rewrite: a condition, an
// address, and perhaps a status.
func parseRedirectedRequests(s *settings, value string) error {
	list, err := parseLines(value, s.parseRedirectedRequest)
	s.filters.RedirectedRequests = slices.Concat(s.filters.RedirectedRequests, list)
	return err
}

func (s *settings) parseRedirectedRequest(line string) (r filter.RedirectedRequest, err error) {
	condition, rest, err := s.parseCondition(line)
	if err != nil {
		return r, err
	}
	target, status := cutWord(rest)
	if target == "" {
		return r, errors.New("it does not say where to")
	}
	r.Condition = condition
	if r.To, err = condition.ParseTarget(target); err != nil {
		return r, err
	}
	r.Code, err = strconv.Atoi(cmp.Or(status, "302"))
	if err != nil || !slices.Contains(redirectStatuses(), r.Code) {
		return r, fmt.Errorf("%.20q is none of the statuses %s", status, listed(redirectStatuses()))
	}
	return r, nil
}
