package manifest

import (
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/snapshot"
)

// kind is one row of what a manifest may hold.
type kind struct {
	name       string
	namespaced bool
	make       func() metav1.Object
	convert    func(metav1.Object) snapshot.Object // nil: it is read as it is
	note       string
}

// kinds is the table of what is read.
func kinds() map[metav1.TypeMeta]kind {
	const oldIngress = "no API server serves it since Kubernetes 1.22; read as networking.k8s.io/v1"
	table := map[metav1.TypeMeta]kind{}
	add := func(apiVersion, name string, k kind) {
		k.name = apiVersion + " " + name
		table[metav1.TypeMeta{APIVersion: apiVersion, Kind: name}] = k
	}
	for k := range snapshot.Kinds() {
		r := k.Resource()
		add(r.Group.String(), k.String(), kind{namespaced: r.Namespaced, make: func() metav1.Object { return r.New() }})
	}
	for _, version := range []string{"extensions/v1beta1", "networking.k8s.io/v1beta1"} {
		// The two are alike in every field, so one Go type reads both.
		add(version, "Ingress", kind{
			namespaced: true,
			make:       func() metav1.Object { return &networkingv1beta1.Ingress{} },
			convert:    convertIngress, note: oldIngress})
	}
	return table
}

// unread says why a kind is not read and what to do instead, if anything.
func unread(t metav1.TypeMeta) string {
	for known := range kinds() {
		if known.Kind == t.Kind {
			return "not read in this version; write apiVersion " + newest(t.Kind)
		}
	}
	switch gv, _ := schema.ParseGroupVersion(t.APIVersion); {
	case gv.Group == "metallb.io":
		return "not read; `quayside migrate` prints what Quayside has for it"
	case t == metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}:
		return "not read; write an EndpointSlice"
	}
	return "nothing here reads it"
}

// newest returns the apiVersion of a kind that is read as it is.
func newest(name string) string {
	for t, k := range kinds() {
		if t.Kind == name && k.convert == nil {
			return t.APIVersion
		}
	}
	return ""
}
