package assign

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/controller/snapshot"
)

const (
	legacyClassAnnotation  = "kubernetes.io/ingress.class"
	defaultClassAnnotation = "ingressclass.kubernetes.io/is-default-class"

	// An adopted ingress-nginx is meant by its name too.
	nginxController = "k8s.io/ingress-nginx"
	nginxClass      = "nginx"
)

// writeIngresses adds the Ingresses of our classes whose status does not name
// the addresses at which the proxy is reached.
func (w *work) writeIngresses() {
	if w.opts.PublishService == (snapshot.Key{}) && len(w.opts.PublishAddresses) == 0 {
		return
	}
	want := w.published()
	w.classless = w.servesClassless()
	var updates []Update
	for _, in := range w.c.Ingresses.All() {
		if w.isOurIngress(in) && !slices.EqualFunc(in.Status.LoadBalancer.Ingress, want, isSameEntry) {
			next := *in
			next.Status.LoadBalancer.Ingress = want
			updates = append(updates, Update{Was: in, next: &next})
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

// isOurIngress reports whether the proxy serves an Ingress. Which classes are
// ours is decided as in proxy/route, which also reads their quirks.
func (w *work) isOurIngress(in *networkingv1.Ingress) bool {
	if w.opts.WatchNamespace != "" && in.Namespace != w.opts.WatchNamespace {
		return false
	}
	name := in.Annotations[legacyClassAnnotation]
	if in.Spec.IngressClassName != nil {
		name = cmp.Or(*in.Spec.IngressClassName, name)
	}
	if name == "" {
		return w.classless
	}
	if class, ok := w.c.IngressClasses.Get(snapshot.Key{Name: name}); ok {
		return w.isOurClass(class)
	}
	// Names by which users mean us even where no IngressClass exists.
	return name == w.opts.IngressClass || name == nginxClass && slices.Contains(w.opts.AdoptIngressControllers, nginxController)
}

// isOurClass reports whether an IngressClass is ours: the one of our name, so
// that two installations can share a cluster, and those adopted.
func (w *work) isOurClass(class *networkingv1.IngressClass) bool {
	return class.Name == w.opts.IngressClass && class.Spec.Controller == IngressController ||
		slices.Contains(w.opts.AdoptIngressControllers, class.Spec.Controller)
}

// servesClassless reports whether an Ingress that names no class is ours.
func (w *work) servesClassless() bool {
	for _, class := range w.c.IngressClasses.All() {
		if class.Annotations[defaultClassAnnotation] == "true" && w.isOurClass(class) {
			return true
		}
	}
	return w.opts.IngressWithoutClass
}
