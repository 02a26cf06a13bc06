package route

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/snippet"
)

// passages are the routes of locations with proxy_pass in the server-snippet of an Ingress, which
// no path leads to, but its script. They have what stands in the location, and what the proxy
// says for all Ingresses: of the Ingress's own options none, as in nginx.
type passages struct {
	owner  snapshot.Ref
	routes []*Route
}

// passages makes those of the Ingress, for each of its hosts.
func (b *unitBuilder) passages() {
	for i := range b.settings.passages {
		b.passage(&b.settings.passages[i])
	}
}

func (b *unitBuilder) passage(p *snippet.Passage) {
	s := *b.w.t.state.global.settingsOf(b.class)
	s.snippets.known = *b.settings.snippets.known.Clone() // so that variables have the same numbers
	own := unitBuilder{unit: b.unit, w: b.w, class: b.class, settings: &s, ingress: &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Annotations: b.annotationsOf(p)}, Spec: b.ingress.Spec,
	}}
	for _, f := range parseOptions(b.w.options, own.ingress.Annotations, &s, &own) {
		if !b.told(f) {
			b.problemf(f.reason, "location %s of its server-snippet: %s", p.Path, f.message)
		}
	}
	if p.To != nil {
		s.filters.UpstreamPath, s.touched = p.To, true
	}
	own.filters, own.terms = s.filtersOf(), own.termsOf()
	service := networkingv1.IngressServiceBackend{Name: p.Service, Port: networkingv1.ServiceBackendPort{Number: p.Port}}
	if b.ref.Namespace != "" && p.Namespace != b.ref.Namespace { // which migrate need not know
		key := snapshot.Key{Namespace: p.Namespace, Name: p.Service}
		own.last = resolved{of: service, backend: Backend{Service: key}, fault: finding{UnsupportedBackend, fmt.Sprintf("Service %s is of another namespace; make an Ingress there, or name a Service of type ExternalName", key)}}
	}
	kind := networkingv1.PathTypePrefix
	if p.Exact {
		kind = networkingv1.PathTypeExact
	}
	for _, c := range b.parts {
		c.passages = append(c.passages, own.route(c.host, p.Path, p.Path, kind, &networkingv1.IngressBackend{Service: &service}))
	}
}

// annotationsOf are what an Ingress would say that were nothing but the location.
func (b *unitBuilder) annotationsOf(p *snippet.Passage) map[string]string {
	all := map[string]string{OwnPrefix + "ssl-redirect": "false"}
	for _, name := range []string{"server-snippet", "enable-global-auth"} {
		for _, prefix := range []string{NginxPrefix, OwnPrefix} {
			if value, ok := b.ingress.Annotations[prefix+name]; ok {
				all[OwnPrefix+name] = value
			}
		}
	}
	if p.Snippet != "" {
		all[OwnPrefix+"configuration-snippet"] = p.Snippet
	}
	for _, o := range p.Options {
		all[OwnPrefix+o.Key] = o.Value
	}
	return all
}

// told reports whether the Ingress has been told of a finding.
func (b *unitBuilder) told(f finding) bool {
	return slices.ContainsFunc(b.problems, func(p snapshot.Problem) bool { return p.Reason == f.reason && p.Message == f.message })
}

// passages are those of all parts as they are on the host.
func (b *hostBuilder) passages(parts []*part) (list []passages) {
	for _, c := range parts {
		if len(c.passages) == 0 {
			continue
		}
		own := passages{owner: c.unit.ref}
		for _, r := range c.passages {
			own.routes = append(own.routes, b.onHost(r))
		}
		list = append(list, own)
	}
	return list
}

// Passage returns the route with a number, from 1, of those that the script of from leads to;
// nil: there is none. The request is one that from was found for.
func (t *Table) Passage(r *exchange.Request, from *Route, number int) *Route {
	var buf [maxHost]byte
	name := appendHost(buf[:0], r.Host)
	for rank := exactly; rank <= anyHost; rank++ {
		h := t.host(name, rank)
		if h == nil {
			continue
		}
		for i := range h.passages {
			if p := &h.passages[i]; p.owner == from.Owner && number <= len(p.routes) {
				return p.routes[number-1]
			}
		}
	}
	return nil
}
