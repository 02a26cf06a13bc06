package route

import (
	"strings"

	"quayside.io/cluster/snapshot"
)

// wildcardAbove returns the wildcard host that is one label above a host, or "".
func wildcardAbove(name string) string {
	_, parent, dotted := strings.Cut(name, ".")
	if !dotted || strings.HasPrefix(name, "*") {
		return ""
	}
	return "*." + parent
}

// hasTLS reports whether an Ingress has both rules and a tls entry for a host: one of a namespace,
// or where that is empty of any.
func (w *compiler) hasTLS(name, namespace string) bool {
	users, _ := w.byHost.get(snapshot.Key{Name: name})
	for key := range users.All() {
		u, _ := w.units.get(key)
		if c := u.find(name); c.named && c.tls && (namespace == "" || u.ref.Namespace == namespace) {
			return true
		}
	}
	return false
}

// tlsAbove reports whether clients of a host are shown the certificate of a wildcard host that has
// TLS. As in ingress-nginx it is redirected to https then, as if it had TLS itself; but where hosts
// belong to namespaces, by nobody else.
func (w *compiler) tlsAbove(name string, parts []*part) bool {
	above, namespace := wildcardAbove(name), ""
	if above == "" || len(parts) == 0 {
		return false
	}
	if w.t.state.options.FirstNamespace {
		namespace = parts[0].unit.ref.Namespace
	}
	return w.hasTLS(above, namespace)
}

// alsoBelow has the hosts compiled again that are below wildcard hosts whose TLS comes or goes.
func (w *compiler) alsoBelow() {
	turned := map[string]bool{}
	for name := range w.hosts {
		if strings.HasPrefix(name, "*") {
			before := w.t.hosts.get([]byte(hostKey(name)))
			had := before != nil && before.tls
			if had != w.hasTLS(name, "") || w.t.state.options.FirstNamespace { // then it matters whose it is
				turned[name] = true
			}
		}
	}
	if len(turned) == 0 {
		return
	}
	for h := range w.t.hosts.all() {
		if turned[wildcardAbove(h.name)] {
			w.hosts[h.name] = true
		}
	}
}
