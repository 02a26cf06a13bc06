package migrate

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// deniesRequests has denied-requests say which requests the snippet refuses, of the places beside,
// too: nginx asks before it looks for one. It reports whether that is the same.
func (r *replacement) deniesRequests() bool {
	if len(r.requests) == 0 {
		return true
	}
	said := setting{Key: "denied-requests", Value: strings.Join(r.requests, "\n")}
	r.options = append(r.options, said)
	for i := range r.own {
		r.own[i].options = append(r.own[i].options, said)
	}
	return true
}

// redirects has redirected-requests say which requests the snippet sends elsewhere, and reports
// whether that is the same: what is said of hosts has to hold for all of their paths.
func (r *replacement) redirects(spec networkingv1.IngressSpec) bool {
	if len(r.redirected) == 0 {
		return true
	}
	r.options = append(r.options, setting{Key: "redirected-requests", Value: strings.Join(r.redirected, "\n")})
	return r.key == "configuration-snippet" || len(r.own)+len(r.moved) == 0 && hasAllPaths(spec)
}

// hasAllPaths reports whether every path of every host is one of spec's.
func hasAllPaths(spec networkingv1.IngressSpec) bool {
	for _, rule := range spec.Rules {
		all := false
		if rule.HTTP != nil {
			for i := range rule.HTTP.Paths {
				p := &rule.HTTP.Paths[i]
				all = all || p.Path == "/" && !isExact(*p)
			}
		}
		if !all {
			return false
		}
	}
	return len(spec.Rules) > 0
}
