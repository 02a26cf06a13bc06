package route

import (
	"iter"
	"reflect"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// A source makes units from the objects of one kind. Another kind of object that
// asks for routes is another source; Compile knows no more of it than this.
type source interface {
	// kind is that of the objects, as in snapshot.Ref.
	kind() string
	// changed yields the objects that may ask for something else than before. It
	// may yield too many.
	changed(before, after *snapshot.Stores) iter.Seq[snapshot.Key]
	// compile returns what an object asks for, or nil if it is gone or not ours.
	// What the unit depends on beside the object goes into its references.
	compile(w *compiler, key snapshot.Key) *unit
}

// sources returns those of the product.
func sources(c *snapshot.Cluster, o Options) []source {
	all := []source{ingresses{ingressclass.Select(&c.Stores, o.Classes)}}
	if o.DefaultBackend != (snapshot.Key{}) {
		all = append(all, defaultService{o.DefaultBackend})
	}
	return all
}

// Classes say which of the Ingresses that there were are in the Table.
func (t *Table) Classes() ingressclass.Classes {
	return ingressclass.Select(&t.state.seen, t.state.options.Classes)
}

// ingresses are the Ingresses of our classes, in the namespaces that are served.
type ingresses struct{ classes ingressclass.Classes }

func (ingresses) kind() string { return nameOf(snapshot.Ingress) }

func (s ingresses) changed(before, after *snapshot.Stores) iter.Seq[snapshot.Key] {
	return func(yield func(snapshot.Key) bool) {
		for key := range snapshot.Diff(before.Ingresses, after.Ingresses) {
			old, _ := before.Ingresses.Get(key)
			now, _ := after.Ingresses.Get(key)
			if !sameIngress(old, now) && !yield(key) {
				return
			}
		}
		turned := s.classes.Turned(before.Namespaces)
		if len(turned) == 0 {
			return
		}
		for key := range after.Ingresses.All() { // that is rare, so it may look at all of them
			if turned[key.Namespace] && !yield(key) {
				return
			}
		}
	}
}

func (s ingresses) compile(w *compiler, key snapshot.Key) *unit {
	ing, ok := w.c.Ingresses.Get(key)
	if !ok {
		return nil
	}
	class, ours := s.classes.Of(ing)
	if !ours {
		return nil
	}
	return w.compileUnit(ing, class)
}

// sameIngress reports whether two versions of an Ingress ask for the same. Ours
// and other controllers write every one's status when an address changes, and ours
// what is wrong with it.
func sameIngress(a, b *networkingv1.Ingress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.CreationTimestamp.Equal(&b.CreationTimestamp) && sameAnnotations(a.Annotations, b.Annotations) &&
		reflect.DeepEqual(a.Spec, b.Spec)
}

// sameAnnotations compares all but ProblemsAnnotation.
func sameAnnotations(a, b map[string]string) bool {
	asked := func(all map[string]string) int {
		if _, told := all[ProblemsAnnotation]; told {
			return len(all) - 1
		}
		return len(all)
	}
	if asked(a) != asked(b) {
		return false
	}
	for name, value := range a {
		if other, both := b[name]; name != ProblemsAnnotation && (!both || value != other) {
			return false
		}
	}
	return true
}

// keyOf is the key under which something of a kind stands in a Store that holds
// several kinds. No name has a space, so no two are alike.
func keyOf(r snapshot.Ref) snapshot.Key {
	return snapshot.Key{Namespace: r.Namespace, Name: r.Kind + " " + r.Name}
}

// refTo names an object of a kind.
func refTo(k snapshot.Kind, key snapshot.Key) snapshot.Ref {
	return snapshot.Ref{Kind: nameOf(k), Key: key}
}

// nameOf is k.String(), without a search for the kinds that every route names.
func nameOf(k snapshot.Kind) string {
	switch k {
	case snapshot.Ingress:
		return "Ingress"
	case snapshot.Service:
		return "Service"
	}
	return k.String()
}
