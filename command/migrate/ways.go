package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/route"
)

// What ingress-nginx does unasked, and classes of ours do not.

// otherWays is said once of all Ingresses: the Services behind them are not at
// hand here.
const otherWays = "a class of our own reaches a Service with externalTrafficPolicy: Local only through pods on the proxy's own node, " +
	"where ingress-nginx ignores that policy; it sends no Strict-Transport-Security and takes bodies of any size, unless proxy.config in the chart's values says hsts and proxy-body-size; to keep all its ways, leave the Ingresses as they are and serve class nginx: " +
	"ingressClass.adoptControllers={k8s.io/ingress-nginx} in the chart's values"

// redirect is the option with another default in classes of our own.
const redirect = "ssl-redirect"

// nameHosts names the hosts of an Ingress in its tls entries that name none, which in a class of
// ours are for whatever names their certificates have.
func (i *ingress) nameHosts() {
	hosts := slices.DeleteFunc(slices.Sorted(maps.Keys(hostsOf(i.spec))), func(host string) bool { return host == "" })
	named := map[string]bool{}
	for n := range i.spec.TLS {
		if entry := &i.spec.TLS[n]; len(entry.Hosts) == 0 && len(hosts) > 0 {
			entry.Hosts = slices.Clone(hosts)
			i.notes = append(i.notes, fmt.Sprintf("spec.tls: the hosts of this Ingress are named for Secret %s; a class of our own takes an entry without hosts for all names of its certificate", entry.SecretName))
		}
		for _, host := range i.spec.TLS[n].Hosts {
			named[strings.ToLower(host)] = true
		}
	}
	left := slices.DeleteFunc(hosts, func(host string) bool { return named[host] })
	if len(i.spec.TLS) > 0 && len(left) > 0 {
		i.notes = append(i.notes, fmt.Sprintf("spec.tls does not name %s, so a class of our own sends nobody to https there; ingress-nginx does, with a certificate of another entry if one is for that host", strings.Join(left, ", ")))
	}
}

// redirects says the habit of ingress-nginx that classes of our own do not have, of each Ingress of
// a host that one of them has a tls entry for, unless its ConfigMap ends it.
func (m *Migration) redirects() {
	if m.plain {
		return
	}
	secure := map[string]bool{}
	for _, i := range m.ingresses {
		if len(i.spec.TLS) > 0 {
			maps.Copy(secure, hostsOf(i.spec))
		}
		for _, entry := range i.spec.TLS {
			for _, host := range entry.Hosts {
				secure[strings.ToLower(host)] = true
			}
		}
	}
	for _, i := range m.ingresses {
		if _, err := strconv.ParseBool(i.meta.Annotations[route.OwnPrefix+redirect]); err == nil { // another value has no effect there
			continue
		}
		for host := range hostsOf(i.spec) {
			if _, parent, _ := strings.Cut(host, "."); secure[host] || secure["*."+parent] {
				i.meta.Annotations[route.OwnPrefix+redirect] = "true"
			}
		}
	}
}

// takeOptions reads the ConfigMap of ingress-nginx as far as it says what Ingresses do that say
// nothing themselves. The rest of it is for `quayside migrate values`.
func (m *Migration) takeOptions(s *source) error {
	var data map[string]string
	if len(s.Data) > 0 {
		if err := json.Unmarshal(s.Data, &data); err != nil {
			return fmt.Errorf("data: %w", err)
		}
	}
	if off, err := strconv.ParseBool(data[redirect]); err == nil && !off {
		m.plain = true
		m.note("%s says %s: \"false\", so no Ingress is given %s", s, redirect, route.OwnPrefix+redirect)
	}
	for _, key := range []string{"no-auth-locations", "no-tls-redirect-locations"} {
		if data[key] != "" {
			m.note("%s says %s: in a class of our own that is about the paths of requests, with all below; in ingress-nginx about those of rules", s, key)
		}
	}
	m.pass(s)
	return nil
}

// hasOptions reports whether s is that ConfigMap, by the names that the chart and the manifests of
// ingress-nginx give it.
func hasOptions(s *source) bool {
	return s.Metadata.Labels[nameLabel] == ingressNginx && strings.HasSuffix(s.Metadata.Name, "-controller") || s.Metadata.Name == "nginx-configuration"
}

// namePorts names ports of backends as the Services do that are known. ingress-nginx takes the
// targetPort of a port for it, too.
func (m *Migration) namePorts(namespace string, spec networkingv1.IngressSpec) (notes []string) {
	name := func(b *networkingv1.IngressServiceBackend) {
		if b == nil {
			return
		}
		to := target{cmp.Or(namespace, corev1.NamespaceDefault), b.Name}
		asked := b.Port
		if as := route.NginxPort(&corev1.Service{Spec: m.services[to]}, asked); as != nil {
			b.Port = networkingv1.ServiceBackendPort{Number: as.Port}
			notes = append(notes, fmt.Sprintf("port %s of Service %s is the targetPort of its port %d, which is named instead", cmp.Or(asked.Name, strconv.Itoa(int(asked.Number))), to, as.Port))
		}
	}
	if spec.DefaultBackend != nil {
		name(spec.DefaultBackend.Service)
	}
	for at := range pathsOf(spec) {
		name(at.Backend.Service)
	}
	return slices.Compact(notes)
}
