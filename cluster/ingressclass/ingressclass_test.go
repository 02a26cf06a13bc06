package ingressclass_test

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// ingressClass is an IngressClass that is so many hours old.
func ingressClass(name, controller string, hours int, isDefault bool) *networkingv1.IngressClass {
	ic := &networkingv1.IngressClass{Spec: networkingv1.IngressClassSpec{Controller: controller}}
	ic.Name, ic.CreationTimestamp = name, metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-time.Duration(hours)*time.Hour))
	if isDefault {
		ic.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	return ic
}

// asks is an Ingress that names a class by the field or by the annotation, or none.
func asks(namespace, field, annotation string) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Annotations: map[string]string{ingressclass.LegacyAnnotation: annotation}}}
	if field != "" {
		ing.Spec.IngressClassName = &field
	}
	return ing
}

// A class that is adopted by its name is served whether or not its IngressClass has gone with
// the chart of ingress-nginx, and not if it is somebody else's by now.
func TestClassesByName(t *testing.T) {
	nginx := []string{ingressclass.NginxController}
	for _, c := range []struct {
		name       string
		rules      ingressclass.Rules
		controller string // of IngressClass public; empty: there is none
		want       ingressclass.Class
		served     bool
	}{
		{"gone", ingressclass.Rules{AdoptNames: []string{"public"}}, "", ingressclass.Class{Nginx: true, Adopted: true}, true},
		{"gone, and not named", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"other"}}, "", ingressclass.Class{}, false},
		{"there", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"public"}}, ingressclass.NginxController, ingressclass.Class{Nginx: true, Adopted: true}, true},
		{"there, and its controller is not adopted", ingressclass.Rules{AdoptNames: []string{"public"}}, ingressclass.NginxController, ingressclass.Class{}, false},
		{"another's", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"public"}}, "example.com/other", ingressclass.Class{}, false},
		{"ours", ingressclass.Rules{Name: "public", AdoptNames: []string{"public"}}, "", ingressclass.Class{}, true},
	} {
		all := snapshot.Of()
		if c.controller != "" {
			all = snapshot.Of(ingressClass("public", c.controller, 1, false))
		}
		classes := ingressclass.Select(&all.Stores, c.rules)
		if got, served := classes.Of(asks("", "public", "")); served != c.served || got != c.want {
			t.Errorf("%s: served: %v as %+v, want %v as %+v", c.name, served, got, c.served, c.want)
		}
	}
	if a := (ingressclass.Rules{AdoptNames: []string{"a"}}); a.Equal(ingressclass.Rules{}) || !a.Equal(a) {
		t.Error("rules with other names are equal")
	}
}

// TestWhoseAnIngressIs by the classes there are, the names that it gives and the default.
func TestWhoseAnIngressIs(t *testing.T) {
	const ours, nginx, other = ingressclass.Controller, ingressclass.NginxController, "example.com/other"
	adopting := ingressclass.Rules{Adopt: []string{nginx}}
	for _, c := range []struct {
		name    string
		rules   ingressclass.Rules
		classes []snapshot.Object
		ing     *networkingv1.Ingress
		want    string // "": it is not ours
	}{
		{"by field, and no class is there", ingressclass.Rules{}, nil, asks("a", "quayside", ""), "own"},
		{"by annotation", ingressclass.Rules{}, nil, asks("a", "", "quayside"), "own"},
		{"the field wins", ingressclass.Rules{}, nil, asks("a", "other", "quayside"), ""},
		{"an empty field says nothing", ingressclass.Rules{}, nil, func() *networkingv1.Ingress {
			ing := asks("a", "", "quayside")
			ing.Spec.IngressClassName = new(string)
			return ing
		}(), "own"},
		{"our name is somebody else's class", ingressclass.Rules{}, []snapshot.Object{ingressClass("quayside", other, 1, false)}, asks("a", "quayside", ""), ""},
		{"another class of our controller", ingressclass.Rules{}, []snapshot.Object{ingressClass("second", ours, 1, false)}, asks("a", "second", ""), ""},
		{"which is adopted", ingressclass.Rules{Adopt: []string{ours}}, []snapshot.Object{ingressClass("second", ours, 1, false)}, asks("a", "second", ""), "own"},
		{"another name", ingressclass.Rules{Name: "edge"}, nil, asks("a", "quayside", ""), ""},
		{"nginx by name alone", adopting, nil, asks("a", "", "nginx"), "nginx"},
		{"nginx, not adopted", ingressclass.Rules{Adopt: []string{other}}, nil, asks("a", "", "nginx"), ""},
		{"a class of nginx", adopting, []snapshot.Object{ingressClass("public", nginx, 1, false)}, asks("a", "public", ""), "nginx"},
		{"a class of others, adopted", ingressclass.Rules{Adopt: []string{other}}, []snapshot.Object{ingressClass("x", other, 1, false)}, asks("a", "x", ""), "adopted"},
		{"no class, and no default", ingressclass.Rules{}, []snapshot.Object{ingressClass("quayside", ours, 1, false)}, asks("a", "", ""), ""},
		{"no class, and ours is the default", ingressclass.Rules{}, []snapshot.Object{ingressClass("quayside", ours, 1, true)}, asks("a", "", ""), "own"},
		{"another's default", ingressclass.Rules{}, []snapshot.Object{ingressClass("quayside", ours, 1, false), ingressClass("x", other, 1, true)}, asks("a", "", ""), ""},
		{"the newest default", adopting, []snapshot.Object{ingressClass("a-nginx", nginx, 3, true), ingressClass("quayside", ours, 2, true)}, asks("a", "", ""), "own"},
		{"the newest default, whatever its name", adopting, []snapshot.Object{ingressClass("a-nginx", nginx, 1, true), ingressClass("quayside", ours, 2, true)}, asks("a", "", ""), "nginx"},
		{"another namespace", ingressclass.Rules{Namespace: "b"}, nil, asks("a", "quayside", ""), ""},
		{"the namespace", ingressclass.Rules{Namespace: "a"}, nil, asks("a", "quayside", ""), "own"},
	} {
		classes := ingressclass.Select(&snapshot.Of(c.classes...).Stores, c.rules)
		class, is := classes.Of(c.ing)
		got := map[ingressclass.Class]string{{}: "own", {Nginx: true, Adopted: true}: "nginx", {Adopted: true}: "adopted"}[class]
		if !is {
			got = ""
		}
		if got != c.want {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
	}
}

// TestNamespacesByLabel: which are served, what is told of the others, and which turn when their
// labels do. Of one that is not known nobody knows the labels.
func TestNamespacesByLabel(t *testing.T) {
	space := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	rules := ingressclass.Rules{Namespaces: labels.SelectorFromSet(labels.Set{"team": "web"})}
	before := snapshot.Of(space("a", "web"), space("b", "db"), space("c", "web"))
	after := before.With(space("a", "db")).With(space("b", "web")).With(space("c", "web")).With(space("d", "web")).With(space("e", "db"))
	classes := ingressclass.Select(&after.Stores, rules)
	for name, serves := range map[string]bool{"a": false, "b": true, "c": true, "d": true, "e": false, "unknown": false} {
		_, is := classes.Of(asks(name, "quayside", ""))
		if is != serves || classes.Elsewhere(asks(name, "quayside", "")) == serves || classes.Elsewhere(asks(name, "other", "")) {
			t.Errorf("namespace %s: ours %v, elsewhere %v", name, is, classes.Elsewhere(asks(name, "quayside", "")))
		}
	}
	if got, want := classes.Turned(before.Namespaces), map[string]bool{"a": true, "b": true, "d": true}; !maps.Equal(got, want) {
		t.Errorf("turned are %v, wanted %v", got, want)
	}
	if why := classes.Why("a"); why != "namespace a does not match --watch-namespace-selector, team=web" {
		t.Error(why)
	}
	one := ingressclass.Select(&after.Stores, ingressclass.Rules{Namespace: "b"})
	if why := one.Why("a"); why != "namespace a is not that of --watch-namespace, b" || one.ByLabels() || len(one.Turned(before.Namespaces)) > 0 {
		t.Errorf("%s; by labels: %v; turned: %v", why, one.ByLabels(), one.Turned(before.Namespaces))
	}
}

// TestSameClasses say the same of every Ingress.
func TestSameClasses(t *testing.T) {
	web := labels.SelectorFromSet(labels.Set{"team": "web"})
	all := snapshot.Of(ingressClass("quayside", ingressclass.Controller, 1, false))
	moved := all.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	byDefault := all.With(ingressClass("quayside", ingressclass.Controller, 1, true))
	for _, c := range []struct {
		name          string
		a, b          *snapshot.Cluster
		rules, others ingressclass.Rules
		same          bool
	}{
		{"nothing changed", all, all, ingressclass.Rules{}, ingressclass.Rules{Name: ingressclass.DefaultName}, true},
		{"a namespace, which nobody looks at", all, moved, ingressclass.Rules{}, ingressclass.Rules{}, true},
		{"a namespace, whose labels count", all, moved, ingressclass.Rules{Namespaces: web}, ingressclass.Rules{Namespaces: web}, false},
		{"the default", all, byDefault, ingressclass.Rules{}, ingressclass.Rules{}, false},
		{"the default of both", byDefault, byDefault, ingressclass.Rules{}, ingressclass.Rules{}, true},
		{"the class", all, snapshot.Of(ingressClass("quayside", "example.com/other", 1, false)), ingressclass.Rules{}, ingressclass.Rules{}, false},
		{"the rules", all, all, ingressclass.Rules{}, ingressclass.Rules{Namespace: "a"}, false},
	} {
		if got := ingressclass.Select(&c.a.Stores, c.rules).Same(ingressclass.Select(&c.b.Stores, c.others)); got != c.same {
			t.Errorf("%s: the same: %v", c.name, got)
		}
	}
	for _, c := range []struct {
		a, b labels.Selector
		same bool
	}{{nil, nil, true}, {nil, web, false}, {web, nil, false}, {web, labels.SelectorFromSet(labels.Set{"team": "web"}), true},
		{labels.Everything(), labels.Nothing(), false}, {nil, labels.Everything(), false}} {
		if got := (ingressclass.Rules{Namespaces: c.a}).Equal(ingressclass.Rules{Namespaces: c.b}); got != c.same {
			t.Errorf("selectors %v and %v are the same: %v", c.a, c.b, got)
		}
	}
}
