package assign

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// ingressMemo is what the last Compile left to do for Ingresses. One that is neither
// in it nor changed since needs nothing as long as what is wanted is the same.
type ingressMemo struct {
	want    []networkingv1.IngressLoadBalancerIngress
	classes ingressclass.Classes
	seen    snapshot.Store[*networkingv1.Ingress]
	left    map[snapshot.Key]bool
}

// writeIngresses adds the Ingresses of our classes whose status does not name
// the addresses at which the proxy is reached, and those of namespaces that are
// not served, or no longer, whose status still does: whoever believes it, such as
// what writes DNS, would send clients to a 404. What others wrote there stays.
func (w *work) writeIngresses() {
	if w.opts.PublishService == (snapshot.Key{}) && len(w.opts.PublishAddresses) == 0 {
		return
	}
	m, want := &w.ingresses, w.published()
	classes := ingressclass.Select(&w.c.Stores, w.opts.Classes)
	if m.left == nil || !slices.EqualFunc(want, m.want, isSameEntry) || !classes.Same(m.classes) {
		*m = ingressMemo{want: want, left: map[snapshot.Key]bool{}} // and all are looked at
	}
	for key := range snapshot.Diff(m.seen, w.c.Ingresses) {
		m.left[key] = true
	}
	m.seen, m.classes = w.c.Ingresses, classes
	var updates []Update
	for key := range m.left {
		in, _ := w.c.Ingresses.Get(key)
		if to, wrong := m.correct(in); wrong {
			next := *in
			next.Status.LoadBalancer.Ingress = to
			updates = append(updates, Update{Was: in, next: &next})
		} else {
			delete(m.left, key)
		}
	}
	slices.SortFunc(updates, Update.compare)
	w.plan.Updates = append(w.plan.Updates, updates...)
}

// correct returns what is to be in the status of an Ingress, and whether something
// else is there. There is nothing to correct in none, and nothing in one of an adopted
// class while we have no address: what is there is of the controller that serves it until
// then, and whatever writes DNS by it would take the name away.
func (m *ingressMemo) correct(in *networkingv1.Ingress) (to []networkingv1.IngressLoadBalancerIngress, wrong bool) {
	if in == nil {
		return nil, false
	}
	same := slices.EqualFunc(in.Status.LoadBalancer.Ingress, m.want, isSameEntry)
	if class, ours := m.classes.Of(in); ours {
		return m.want, !same && (len(m.want) > 0 || !class.Adopted)
	}
	return nil, same && len(m.want) > 0 && m.classes.Elsewhere(in)
}

// published returns the addresses of the proxy: those that the Service will
// have when this plan is carried out, so that one plan settles both, and those that it
// lists in spec.externalIPs, at which every kube-proxy takes its traffic.
func (w *work) published() (list []networkingv1.IngressLoadBalancerIngress) {
	if w.opts.PublishService == (snapshot.Key{}) {
		for _, a := range w.opts.PublishAddresses {
			list = append(list, networkingv1.IngressLoadBalancerIngress{IP: a.String()})
		}
		return list
	}
	svc, ok := w.c.Services.Get(w.opts.PublishService)
	if !ok {
		w.problem(snapshot.Ref{Kind: "Service", Key: w.opts.PublishService}, ReasonPublishServiceNotFound,
			"it does not exist, so that no Ingress names an address in its status; create it, or name the Service of the proxies in --publish-service")
		return nil
	}
	for _, u := range w.plan.Updates { // there are none but of Services yet
		if u.Was == svc {
			svc = u.outcome.object()
		}
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		list = append(list, networkingv1.IngressLoadBalancerIngress{IP: in.IP, Hostname: in.Hostname})
	}
	for _, a := range loadbalancer.Listed(svc) {
		entry := networkingv1.IngressLoadBalancerIngress{IP: a.String()}
		if !slices.ContainsFunc(list, func(e networkingv1.IngressLoadBalancerIngress) bool { return isSameEntry(e, entry) }) {
			list = append(list, entry)
		}
	}
	return list
}

func isSameEntry(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname && len(a.Ports) == 0
}
