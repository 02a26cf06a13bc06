// Package ingressclass decides which Ingresses are ours: the proxy serves them,
// the controller writes their statuses, and both must agree.
//
// It is pure, and any package may import it. This file is all of it.
package ingressclass

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
)

const (
	// Controller is spec.controller of the IngressClasses that are ours.
	Controller = "quayside.io/ingress"
	// DefaultName is the name of our IngressClass where Rules give none.
	DefaultName = "quayside"

	// NginxController is spec.controller of the classes of ingress-nginx, and
	// NginxName what its users wrote into the legacy annotation.
	NginxController = "k8s.io/ingress-nginx"
	NginxName       = "nginx"

	// LegacyAnnotation names the class of an Ingress, as before Kubernetes 1.18.
	LegacyAnnotation = "kubernetes.io/ingress.class"
)

// Rules are what the operator decides. The zero value selects the class
// "quayside" of the controller "quayside.io/ingress" in every namespace.
type Rules struct {
	// Name of the class that is ours, also in the legacy annotation; empty:
	// DefaultName. Other classes of our controller are left alone, because a second
	// Quayside may serve them; to serve them all, adopt the controller.
	Name string
	// Adopt are further controllers, all of whose classes are served.
	Adopt []string
	// Namespace, if set, is the only one whose Ingresses are served.
	Namespace string
}

// Equal reports whether r and o select the same Ingresses.
func (r Rules) Equal(o Rules) bool {
	return cmp.Or(r.Name, DefaultName) == cmp.Or(o.Name, DefaultName) && r.Namespace == o.Namespace && slices.Equal(r.Adopt, o.Adopt)
}

// Class is how the Ingresses of one IngressClass are read.
type Class struct {
	Nginx bool // with the quirks of ingress-nginx
}

// Classes are those that are ours.
type Classes struct {
	namespace string
	byName    map[string]Class
	fallback  *Class // of an Ingress that names none; nil: it is not ours
}

// Select returns the classes that are ours. A name alone is enough where no
// IngressClass of that name exists, as with manifest files: nobody else can
// claim an absent class.
func Select(all snapshot.Store[*networkingv1.IngressClass], r Rules) Classes {
	ours := cmp.Or(r.Name, DefaultName)
	k := Classes{namespace: r.Namespace, byName: map[string]Class{ours: {}}}
	if slices.Contains(r.Adopt, NginxController) {
		k.byName[NginxName] = Class{Nginx: true}
	}
	// Several classes may be marked as the default; the newest is meant, as in
	// the API server.
	var newest *networkingv1.IngressClass
	for _, ic := range all.Sorted() {
		adopted := slices.Contains(r.Adopt, ic.Spec.Controller)
		if !adopted && (ic.Name != ours || ic.Spec.Controller != Controller) {
			delete(k.byName, ic.Name)
			continue
		}
		k.byName[ic.Name] = Class{Nginx: ic.Spec.Controller == NginxController}
		if ic.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" &&
			(newest == nil || newest.CreationTimestamp.Time.Before(ic.CreationTimestamp.Time)) {
			newest = ic
		}
	}
	if newest != nil {
		c := k.byName[newest.Name]
		k.fallback = &c
	}
	return k
}

// Of returns the class of an Ingress, and false if the Ingress is not ours.
func (k Classes) Of(ing *networkingv1.Ingress) (Class, bool) {
	if k.namespace != "" && k.namespace != ing.Namespace {
		return Class{}, false
	}
	name := NameOf(ing)
	if name == "" {
		if k.fallback == nil {
			return Class{}, false
		}
		return *k.fallback, true
	}
	c, ok := k.byName[name]
	return c, ok
}

// NameOf returns the name of the class that an Ingress asks for, or "". The
// field wins over the annotation.
func NameOf(ing *networkingv1.Ingress) string {
	if name := ing.Spec.IngressClassName; name != nil && *name != "" {
		return *name
	}
	return ing.Annotations[LegacyAnnotation]
}
