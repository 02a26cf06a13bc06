package migrate

import (
	"slices"
	"strings"

	"quayside.io/proxy/nginxconf"
)

// deniesRequests has denied-requests say which requests the snippet refuses, of the places beside,
// too: nginx asks before it looks for one. It reports whether that is the same, which it is
// not behind a rewrite: directives of both are obeyed in their order.
func (r *replacement) deniesRequests(list []nginxconf.Directive) bool {
	if len(r.requests) == 0 {
		return true
	}
	first := slices.IndexFunc(list, nginxconf.IsNamed("rewrite"))
	if first >= 0 && slices.ContainsFunc(list[first:], nginxconf.IsNamed("if")) {
		return false
	}
	said := setting{Key: "denied-requests", Value: strings.Join(r.requests, "\n")}
	r.options = append(r.options, said)
	for i := range r.own {
		r.own[i].options = append(r.own[i].options, said)
	}
	return true
}
