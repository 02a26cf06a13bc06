package route

import (
	"cmp"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
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
	var all []*unitBuilder
	parts := map[*unitBuilder][]*part{}
	for _, c := range b.parts {
		d := b.on(c)
		if parts[d] == nil {
			all = append(all, d)
		}
		parts[d] = append(parts[d], c)
	}
	for _, d := range all {
		for i := range d.settings.passages {
			d.passage(&d.settings.passages[i], parts[d])
		}
	}
}

func (b *unitBuilder) passage(p *snippet.Passage, parts []*part) {
	own, findings := b.with(b.annotationsOf(p), &b.settings.snippets.known)
	s := own.settings
	for _, f := range findings {
		if !b.told(f) {
			own.problemf(f.reason, "location %s of its server-snippet: %s", p.Path, f.message)
		}
	}
	to := p.To
	if p.Filled != "" {
		filled, err := s.snippets.known.ParsePath(p.Filled)
		if err != nil {
			s.closed = cmp.Or(s.closed, fmt.Sprintf("location %s of its server-snippet: %v", p.Path, err)) // which has been read before
		}
		to = &filter.UpstreamPath{Filled: filled}
	}
	if to != nil {
		s.filters.UpstreamPath, s.touched = to, true
	}
	own.filters, own.terms = s.filtersOf(), own.termsOf()
	service := networkingv1.IngressServiceBackend{Name: cmp.Or(p.Service, p.Outside), Port: networkingv1.ServiceBackendPort{Number: p.Port}}
	own.last.of = service
	own.last.backend, own.last.fault = own.passed(&p.Upstream, service.Port)
	kind := networkingv1.PathTypePrefix
	if p.Exact {
		kind = networkingv1.PathTypeExact
	}
	for _, c := range parts {
		c.passages = append(c.passages, own.route(c.host, p.Path, p.Path, kind, &networkingv1.IngressBackend{Service: &service}))
	}
}

// with makes a builder of the Ingress as it would be with other annotations. known are the
// variables that it begins with, by the same numbers; nil: those of all Ingresses.
func (b *unitBuilder) with(annotations map[string]string, known *snippet.Known) (own *unitBuilder, findings []finding) {
	s := *b.w.t.state.global.settingsOf(b.class)
	if known != nil {
		s.snippets.known = *known.Clone()
	}
	own = &unitBuilder{unit: b.unit, w: b.w, class: b.class, settings: &s, quiet: b.lent != nil,
		ingress: &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: b.ingress.Spec}}
	return own, parseOptions(b.w.options, annotations, &s, own)
}

// passed returns the backend that a passage or a detour leads to. Other namespaces and what is
// outside of the cluster are there for whoever may make a Service of type ExternalName.
func (b *unitBuilder) passed(p *snippet.Upstream, port networkingv1.ServiceBackendPort) (Backend, finding) {
	own, key, why := b.ref.Namespace, snapshot.Key{Namespace: p.Namespace, Name: p.Service}, ""
	switch {
	case p.Outside != "":
		return b.outside(b.to(snapshot.Key{Namespace: own, Name: p.Outside}, port))
	case own == "": // migrate need not know of which it is
		key.Namespace = own
	case p.Namespace == own:
	case b.w.t.state.options.NoExternalName:
		why = "--disable-svc-external-name refuses that"
	case key == snapshot.Key{Namespace: "default", Name: "kubernetes"}:
		why = "it is the API server's"
	}
	if why != "" {
		return b.to(key, port), finding{UnsupportedBackend, fmt.Sprintf("Service %s is of another namespace, and %s; make an Ingress there", key, why)}
	}
	return b.service(key, port)
}

// ofHostAlone are what an Ingress would say of its server-snippet alone.
func (b *unitBuilder) ofHostAlone() map[string]string {
	all := map[string]string{OwnPrefix + "ssl-redirect": "false"}
	for _, key := range []string{"server-snippet", "enable-global-auth"} {
		if value := annotation(b.ingress.Annotations, key); value != "" {
			all[OwnPrefix+key] = value
		}
	}
	return all
}

// annotationsOf are what an Ingress would say that were nothing but the location.
func (b *unitBuilder) annotationsOf(p *snippet.Passage) map[string]string {
	all := b.ofHostAlone()
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
	name := appendHost(buf[:0], r.AskedHost())
	for rank := exactly; rank <= anyHost; rank++ {
		h := t.host(name, rank)
		if h == nil {
			continue
		}
		for i := range h.passages {
			if p := &h.passages[i]; p.owner == from.Scripted() && number <= len(p.routes) {
				return p.routes[number-1]
			}
		}
	}
	return nil
}
