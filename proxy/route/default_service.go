package route

import (
	"fmt"
	"iter"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// defaultService is the Service of Options.DefaultBackend. It is asked what no rule and no
// default backend of an Ingress is for, and stands in for backends that answer with a status
// of custom-http-errors, where their Ingress names nobody itself.
type defaultService struct{ key snapshot.Key }

func (defaultService) kind() string { return nameOf(snapshot.Service) }

func (s defaultService) changed(before, after *snapshot.Stores) iter.Seq[snapshot.Key] {
	return func(yield func(snapshot.Key) bool) {
		old, _ := before.Services.Get(s.key)
		if now, _ := after.Services.Get(s.key); now != old || now == nil {
			yield(s.key)
		}
	}
}

func (s defaultService) compile(w *compiler, key snapshot.Key) *unit {
	if key != s.key {
		return nil
	}
	w.settings = *w.t.state.global.settingsOf(ingressclass.Class{})
	b := unitBuilder{
		unit: &unit{ref: refTo(snapshot.Service, key)}, w: w, settings: &w.settings,
		ingress: &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
	}
	b.settings.globalOff = true // who is unknown gets its pages, as he would get a 404
	for _, f := range parseOptions(w.options, nil, b.settings, &b) {
		b.problem(f)
	}
	backend, fault := b.errorBackend(key)
	if fault.reason != "" {
		b.problem(finding{fault.reason, fmt.Sprintf("--default-backend-service has no effect: %s", fault.message)})
		return b.unit
	}
	b.settings.errors.off = true // it would stand in for itself
	b.fallback = &Route{Terms: b.termsOf(), Backend: w.acquire(backend), Filters: b.settings.filtersOf(),
		Service: backend.Service, Port: backend.Port.String(), Closed: b.settings.closed}
	b.backends = append(b.backends, b.fallback.Backend)
	return b.unit
}

// LeftOver reports whether r is for what no rule is for: that of Options.DefaultBackend.
func (r *Route) LeftOver() bool { return r.Owner.Kind == nameOf(snapshot.Service) }

// leftOver is the route of what no rule is for; nil: there is none.
func (w *compiler) leftOver() *Route {
	u, ok := w.units.get(keyOf(refTo(snapshot.Service, w.t.state.options.DefaultBackend)))
	if !ok {
		return nil
	}
	return u.fallback
}
