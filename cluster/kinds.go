package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// isOurs reports whether the kind is a custom resource, which the server
// speaks in JSON only, and which may be missing.
func isOurs(r snapshot.Resource) bool { return r.Group == v1alpha1.GroupVersion() }

// resources is the table of the kinds that can be watched.
func resources() map[snapshot.Kind]snapshot.Resource {
	table := map[snapshot.Kind]snapshot.Resource{}
	for k := range snapshot.Kinds() {
		table[k] = k.Resource()
	}
	return table
}

// newScheme knows the types that are read and written, and no others: a scheme
// of everything costs megabytes.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	for _, r := range resources() {
		s.AddKnownTypes(r.Group, r.New(), r.NewList())
		metav1.AddToGroupVersion(s, r.Group)
	}
	return s, nil
}
