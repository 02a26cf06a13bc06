// Package ingressclass decides which Ingresses are ours: the proxy serves them,
// the controller writes their statuses, and both must agree.
//
// It is pure, and any package may import it. This file is all of it.
package ingressclass

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/snapshot"
)

const (
	// Controller is spec.controller of the IngressClasses that are ours.
	Controller = "quayside.io/ingress"
	// DefaultName is the name of our IngressClass where Rules give none.
	DefaultName = "quayside"

	// NginxController is spec.controller of the classes of ingress-nginx.
	NginxController = "k8s.io/ingress-nginx"
	// NginxName is the value of the legacy annotation for ingress-nginx.
	NginxName = "nginx"

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
	// AdoptNames are classes that are served as those of ingress-nginx while there is no
	// IngressClass of that name: its chart takes its own away when it is uninstalled. Where
	// NginxController is adopted, NginxName is one.
	AdoptNames []string
	// Namespace, if set, is the only one whose Ingresses are served.
	Namespace string
	// Namespaces, if set, selects those whose Ingresses are served, by their labels.
	Namespaces labels.Selector
}

// Equal reports whether r and o select the same Ingresses.
func (r Rules) Equal(o Rules) bool {
	return cmp.Or(r.Name, DefaultName) == cmp.Or(o.Name, DefaultName) && r.Namespace == o.Namespace &&
		sameSelector(r.Namespaces, o.Namespaces) && slices.Equal(r.Adopt, o.Adopt) && slices.Equal(r.AdoptNames, o.AdoptNames)
}

func sameSelector(a, b labels.Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Empty() == b.Empty() && a.String() == b.String() // nothing is written like everything
}

// serves reports whether Ingresses of a namespace may be ours. Of one that is not
// known, or not yet, nobody knows the labels, so no selector selects it.
func (r Rules) serves(namespace string, all snapshot.Store[*corev1.Namespace]) bool {
	if r.Namespace != "" && r.Namespace != namespace {
		return false
	}
	if r.Namespaces == nil {
		return true
	}
	n, known := all.Get(snapshot.Key{Name: namespace})
	return known && r.Namespaces.Matches(labels.Set(n.Labels))
}

// Class is how the Ingresses of one IngressClass are read.
type Class struct {
	Nginx   bool // with the quirks of ingress-nginx
	Adopted bool // of another controller, which may serve them still
}

// Classes are those that are ours, in the namespaces that are served.
type Classes struct {
	rules      Rules
	namespaces snapshot.Store[*corev1.Namespace]
	byName     map[string]Class
	fallback   *Class // of an Ingress that names none; nil: it is not ours
}

// Select returns the classes that are ours. A name alone is enough where no
// IngressClass of that name exists, as with manifest files: nobody else can
// claim an absent class.
func Select(all *snapshot.Stores, r Rules) Classes {
	ours := cmp.Or(r.Name, DefaultName)
	k := Classes{rules: r, namespaces: all.Namespaces, byName: map[string]Class{}}
	for _, name := range r.AdoptNames {
		k.byName[name] = Class{Nginx: true, Adopted: true}
	}
	if slices.Contains(r.Adopt, NginxController) {
		k.byName[NginxName] = Class{Nginx: true, Adopted: true}
	}
	k.byName[ours] = Class{}
	// Several classes may be marked as the default; the newest is meant, as in
	// the API server.
	var newest *networkingv1.IngressClass
	for _, ic := range all.IngressClasses.Sorted() {
		adopted := slices.Contains(r.Adopt, ic.Spec.Controller)
		if !adopted && (ic.Name != ours || ic.Spec.Controller != Controller) {
			delete(k.byName, ic.Name)
			continue
		}
		k.byName[ic.Name] = Class{Nginx: ic.Spec.Controller == NginxController, Adopted: ic.Spec.Controller != Controller}
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

// Same reports whether k and o say the same of every Ingress; it may also say no
// where they do.
func (k Classes) Same(o Classes) bool {
	return k.rules.Equal(o.rules) && (!k.ByLabels() || k.namespaces == o.namespaces) &&
		maps.Equal(k.byName, o.byName) && (k.fallback == nil) == (o.fallback == nil) && (k.fallback == nil || *k.fallback == *o.fallback)
}

// Of returns the class of an Ingress, and false if the Ingress is not ours.
func (k Classes) Of(ing *networkingv1.Ingress) (Class, bool) {
	if !k.rules.serves(ing.Namespace, k.namespaces) {
		return Class{}, false
	}
	return k.named(ing)
}

// Elsewhere reports whether an Ingress is of a class of ours, but not ours, because
// its namespace is not served.
func (k Classes) Elsewhere(ing *networkingv1.Ingress) bool {
	_, ours := k.named(ing)
	return ours && !k.rules.serves(ing.Namespace, k.namespaces)
}

// ByLabels reports whether it takes the labels of its namespace to say if an Ingress
// is ours.
func (k Classes) ByLabels() bool { return k.rules.Namespaces != nil }

// Why says in words why a namespace is not served, of which Elsewhere says so.
func (k Classes) Why(namespace string) string {
	if !k.ByLabels() {
		return fmt.Sprintf("namespace %s is not that of --watch-namespace, %s", namespace, k.rules.Namespace)
	}
	return fmt.Sprintf("namespace %s does not match --watch-namespace-selector, %s", namespace, k.rules.Namespaces)
}

// Turned returns the namespaces whose Ingresses may be ours, and might not before
// with those namespaces, or the other way round.
func (k Classes) Turned(before snapshot.Store[*corev1.Namespace]) map[string]bool {
	turned := map[string]bool{}
	if !k.ByLabels() {
		return turned
	}
	for key := range snapshot.Diff(before, k.namespaces) {
		if k.rules.serves(key.Name, before) != k.rules.serves(key.Name, k.namespaces) {
			turned[key.Name] = true
		}
	}
	return turned
}

// named returns the class of an Ingress of any namespace.
func (k Classes) named(ing *networkingv1.Ingress) (Class, bool) {
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
