package migrate

import (
	"slices"
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

// answersRequests has options say which requests the snippet sends elsewhere or answers, and
// reports whether that is the same: what is said of hosts has to hold for all of their paths.
func (r *replacement) answersRequests(spec networkingv1.IngressSpec) bool {
	if len(r.redirected)+len(r.answered) == 0 {
		return true
	}
	r.lines("redirected-requests", r.redirected)
	r.lines("answered-requests", r.answered)
	return r.key == "configuration-snippet" || len(r.own)+len(r.moved) == 0 && hasAllPaths(spec)
}

// lines has an option of the Ingress take lines, if there are any.
func (r *replacement) lines(key string, list []string) {
	if len(list) > 0 {
		r.options = append(r.options, setting{Key: key, Value: strings.Join(list, "\n")})
	}
}

// hasAllPaths reports whether every path of every host is one of spec's.
func hasAllPaths(spec networkingv1.IngressSpec) bool {
	isAll := func(at networkingv1.HTTPIngressPath) bool { return at.Path == "/" && !isExact(at) }
	lacks := func(rule networkingv1.IngressRule) bool {
		return rule.HTTP == nil || !slices.ContainsFunc(rule.HTTP.Paths, isAll)
	}
	return len(spec.Rules) > 0 && !slices.ContainsFunc(spec.Rules, lacks)
}
