package route

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// guarded is an Ingress whose certificate and users are in Secrets, and whose
// headers are in a ConfigMap.
func guarded() *networkingv1.Ingress {
	class, prefix := "quayside", networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site", Annotations: map[string]string{
			OwnPrefix + "auth-type": "basic", OwnPrefix + "auth-secret": "users", OwnPrefix + "custom-headers": "headers"}},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			TLS:              []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: "tls"}},
			Rules: []networkingv1.IngressRule{{Host: "shop.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}},
				}}},
			}}},
		},
	}
}

// What could not be read is not missing: the route is closed all the same, says
// why, and is judged anew as soon as more is known, by the next table as by a
// first one.
func TestUnreadIsNotMissing(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	c := snapshot.Unread().With(guarded(), web)
	key := func(name string) snapshot.Key { return snapshot.Key{Namespace: "shop", Name: name} }
	options := Options{DefaultCertificate: key("default"), ConfigMap: key("options")}
	var table *Table
	for _, step := range []struct {
		kind  snapshot.Kind
		reads string
		want  []string // "Reason object" of the Problems; what is named last is in the message
		shut  bool     // for more than what could not be read
	}{
		{snapshot.Service, "", []string{"UnreadReference default", "UnreadReference headers", "UnreadReference options", "UnreadReference tls", "UnreadReference users"}, false},
		{snapshot.Secret, "tls", []string{"MissingSecret tls", "UnreadReference default", "UnreadReference headers", "UnreadReference options", "UnreadReference users"}, false},
		{snapshot.Secret, "default", []string{"MissingSecret default", "MissingSecret tls", "UnreadReference headers", "UnreadReference options", "UnreadReference users"}, false},
		{snapshot.ConfigMap, "options", []string{"MissingConfigMap options", "MissingSecret default", "MissingSecret tls", "UnreadReference headers", "UnreadReference users"}, false},
		{snapshot.Secret, "users", []string{"MissingConfigMap options", "MissingSecret default", "MissingSecret tls", "RouteClosed users", "UnreadReference headers"}, true},
		{snapshot.ConfigMap, "headers", []string{"MissingConfigMap options", "MissingSecret default", "MissingSecret tls", "RouteClosed headers", "RouteClosed users"}, true},
	} {
		if step.reads != "" {
			c = c.WithReach(step.kind, key(step.reads))
		}
		table = Compile(c, table, options)
		for when, table := range map[string]*Table{"next": table, "first": Compile(c, nil, options)} {
			var got []string
			for _, p := range table.Problems {
				for _, name := range []string{"default", "headers", "options", "tls", "users"} {
					if strings.Contains(p.Message, "shop/"+name+" ") {
						got = append(got, p.Reason+" "+name)
					}
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, step.want) {
				t.Errorf("%s table once %s is read: %q, want %q", when, step.reads, got, step.want)
			}
			for r := range table.Routes() {
				if r.Closed == "" || r.Unread == step.shut {
					t.Errorf("%s table once %s is read: route closed %q, unread %v", when, step.reads, r.Closed, r.Unread)
				}
			}
		}
	}
}

// The proxy-wide options may hold a guard: until they can be read, nothing is open.
func TestUnreadOptionsCloseEveryRoute(t *testing.T) {
	open := guarded()
	open.Annotations = nil
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	name := snapshot.Key{Namespace: "shop", Name: "options"}
	c := snapshot.Unread().With(open, web)
	var table *Table
	for i, closed := range []bool{true, false} {
		if i == 1 {
			c = c.WithReach(snapshot.ConfigMap, name)
		}
		table = Compile(c, table, Options{ConfigMap: name})
		for r := range table.Routes() {
			if (r.Closed != "") != closed || r.Unread != closed {
				t.Errorf("table %d: closed %q, unread %v", i, r.Closed, r.Unread)
			}
		}
	}
}
