package assign

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// writeIngresses adds the Ingresses of our classes whose status does not name
// the addresses at which the proxy is reached, and those of namespaces that are
// not served, or no longer, whose status still does: whoever believes it, such as
// what writes DNS, would send clients to a 404. What others wrote there stays.
func (w *work) writeIngresses() {
	if w.opts.PublishService == (snapshot.Key{}) && len(w.opts.PublishAddresses) == 0 {
		return
	}
	want := w.published()
	classes := ingressclass.Select(&w.c.Stores, w.opts.Classes)
	var updates []Update
	set := func(in *networkingv1.Ingress, to []networkingv1.IngressLoadBalancerIngress) {
		next := *in
		next.Status.LoadBalancer.Ingress = to
		updates = append(updates, Update{Was: in, next: &next})
	}
	for _, in := range w.c.Ingresses.All() {
		same := slices.EqualFunc(in.Status.LoadBalancer.Ingress, want, isSameEntry)
		if _, ours := classes.Of(in); ours && !same {
			set(in, want)
		} else if !ours && same && len(want) > 0 && classes.Elsewhere(in) {
			set(in, nil)
		}
	}
	slices.SortFunc(updates, Update.compare)
	w.plan.Updates = append(w.plan.Updates, updates...)
}

// published returns the addresses of the proxy: those that the Service will
// have when this plan is carried out, so that one plan settles both.
func (w *work) published() (list []networkingv1.IngressLoadBalancerIngress) {
	if w.opts.PublishService == (snapshot.Key{}) {
		for _, a := range w.opts.PublishAddresses {
			list = append(list, networkingv1.IngressLoadBalancerIngress{IP: a.String()})
		}
		return list
	}
	svc, ok := w.c.Services.Get(w.opts.PublishService)
	if !ok {
		return nil
	}
	for _, u := range w.plan.Updates { // there are none but of Services yet
		if u.Was == svc {
			svc = u.verdict.object()
		}
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		list = append(list, networkingv1.IngressLoadBalancerIngress{IP: in.IP, Hostname: in.Hostname})
	}
	return list
}

func isSameEntry(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname && len(a.Ports) == 0
}
