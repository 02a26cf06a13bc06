package route

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/controller/snapshot"
)

const (
	legacyClassAnnotation  = "kubernetes.io/ingress.class"
	defaultClassAnnotation = "ingressclass.kubernetes.io/is-default-class"
)

// class is how the Ingresses of one IngressClass are read.
type class struct {
	nginx bool // with the quirks of ingress-nginx
}

// classes are the IngressClasses that are ours, by name.
type classes struct {
	byName   map[string]class
	fallback *class // of an Ingress that names none; nil: it is not ours
}

func compileClasses(all snapshot.Store[*networkingv1.IngressClass], o Options) classes {
	k := classes{byName: map[string]class{}}
	// Names by which our users mean us even where no IngressClass exists.
	k.byName[o.IngressClass] = class{}
	if slices.Contains(o.AdoptControllers, nginxController) {
		k.byName[nginxClass] = class{nginx: true}
	}
	// Several classes may be marked as the default; the newest is meant, as in
	// the API server.
	var newest *networkingv1.IngressClass
	for _, ic := range all.Sorted() {
		adopted := slices.Contains(o.AdoptControllers, ic.Spec.Controller)
		if !adopted && (ic.Name != o.IngressClass || ic.Spec.Controller != o.Controller) {
			delete(k.byName, ic.Name)
			continue
		}
		k.byName[ic.Name] = class{nginx: ic.Spec.Controller == nginxController}
		if ic.Annotations[defaultClassAnnotation] == "true" &&
			(newest == nil || newest.CreationTimestamp.Time.Before(ic.CreationTimestamp.Time)) {
			newest = ic
		}
	}
	switch {
	case newest != nil:
		c := k.byName[newest.Name]
		k.fallback = &c
	case o.WithoutClass:
		k.fallback = &class{}
	}
	return k
}

// of returns the class of an Ingress, and false if it is not ours. The field
// wins over the annotation.
func (k classes) of(ing *networkingv1.Ingress) (class, bool) {
	name := ing.Annotations[legacyClassAnnotation]
	if ing.Spec.IngressClassName != nil {
		name = cmp.Or(*ing.Spec.IngressClassName, name)
	}
	if name == "" {
		if k.fallback == nil {
			return class{}, false
		}
		return *k.fallback, true
	}
	c, ok := k.byName[name]
	return c, ok
}
