package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/route"
)

// What ingress-nginx takes from one Ingress for all paths of its hosts, a class of ours takes for
// that Ingress alone. So it is written on each that it was true of.

const (
	canary        = route.OwnPrefix + "canary"
	useRegex      = route.OwnPrefix + "use-regex"
	rewriteTarget = route.OwnPrefix + "rewrite-target"
	clientOptions = route.OwnPrefix + "auth-tls-"
)

// hostOf is a host as one namespace has it: clients are not asked for certificates by Ingresses of
// others, here as in adopted classes.
type hostOf struct{ namespace, host string }

// shareHosts writes on each Ingress what others of its hosts say of all paths there. The first that
// says it counts.
func shareHosts(ingresses []ingress) {
	patterns, clients := map[string]*ingress{}, map[hostOf]*ingress{}
	for n := range ingresses {
		i := &ingresses[n]
		for host := range hostsOf(i.spec) {
			if patterns[host] == nil && i.hasPatterns() {
				patterns[host] = i
			}
			if at := (hostOf{i.meta.Namespace, host}); clients[at] == nil && i.asksClients() {
				clients[at] = i
			}
		}
	}
	for n := range ingresses {
		i := &ingresses[n]
		if i.isOn(canary) { // which has the ways of the one that it is of
			continue
		}
		for _, host := range slices.Sorted(maps.Keys(hostsOf(i.spec))) {
			i.takePatterns(patterns[host], host)
			i.takeClients(clients[hostOf{i.meta.Namespace, host}], host)
		}
	}
}

// hasPatterns reports whether paths are patterns since the Ingress says so: by use-regex, or by
// what they are rewritten to.
func (i *ingress) hasPatterns() bool {
	if i.isOn(useRegex) {
		return true
	}
	target := i.meta.Annotations[rewriteTarget]
	return target != "" && i.hasPath(func(at networkingv1.HTTPIngressPath) bool { return at.Path != target })
}

func (i *ingress) isOn(option string) bool {
	on, err := strconv.ParseBool(i.meta.Annotations[option])
	return err == nil && on
}

func (i *ingress) hasPath(is func(networkingv1.HTTPIngressPath) bool) bool {
	for at := range pathsOf(i.spec) {
		if is(at) {
			return true
		}
	}
	return false
}

// takePatterns has paths of i be patterns if of makes those of a host such.
func (i *ingress) takePatterns(of *ingress, host string) {
	loose := func(at networkingv1.HTTPIngressPath) bool { return !isExact(at) }
	if of == nil || i.isOn(useRegex) || !i.hasPath(loose) {
		return
	}
	i.meta.Annotations[useRegex] = "true"
	if of != i {
		i.notes = append(i.notes, fmt.Sprintf("use-regex: in ingress-nginx all paths of a host are patterns if some are, and those of Ingress %s on host %q are", of.meta.fullName(), host))
	}
}

func (i *ingress) asksClients() bool {
	for key := range i.meta.Annotations {
		if strings.HasPrefix(key, clientOptions) {
			return true
		}
	}
	return false
}

// takeClients asks clients of i for the certificates that of asks for.
func (i *ingress) takeClients(of *ingress, host string) {
	if of == nil || i.asksClients() {
		return
	}
	for key, value := range of.meta.Annotations {
		if strings.HasPrefix(key, clientOptions) {
			i.meta.Annotations[key] = value
		}
	}
	note := fmt.Sprintf("auth-tls-*: in ingress-nginx what Ingress %s asks clients of host %q for holds for all paths there", of.meta.fullName(), host)
	if len(hostsOf(i.spec)) > 1 {
		note += ", and here for all hosts of this one; split it if some are open"
	}
	i.notes = append(i.notes, note)
}
