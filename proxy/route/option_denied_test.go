package route

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// What one Ingress denies is denied on all paths of the host that its namespace has, and on
// no other's; challenges of ACME pass. It ends with its Ingress.
func TestDeniedPathsAreShared(t *testing.T) {
	class := ingressclass.DefaultName
	ingress := func(namespace, name, path, denied string) *networkingv1.Ingress {
		below := networkingv1.PathTypePrefix
		backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: &class,
			Rules: []networkingv1.IngressRule{{Host: "shop.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &below, Backend: backend}}}}}}}}
		if denied != "" {
			ing.Annotations = map[string]string{OwnPrefix + "denied-paths": denied}
		}
		return ing
	}
	service := func(namespace string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	objects := []snapshot.Object{service("a"), service("b"), ingress("a", "root", "/", ""), ingress("a", "api", "/api", "/api/secret\n= / 410"),
		ingress("a", "acme", acmePath+"/token", ""), ingress("b", "b", "/b", "")}
	guarding := ingress("a", "guard", "/guard", `~ /\. 404`)
	o := Options{Classes: ingressclass.Rules{Name: class}}
	with := Compile(snapshot.Of(append(objects, guarding)...), nil, o)
	without := Compile(snapshot.Of(objects...), with, o)
	for _, c := range []struct {
		table *Table
		path  string
		want  int // 0 passes
	}{
		{with, "/", 410}, {with, "/api/secret/x", 403}, {with, "/api", 0}, {with, "/x/.git", 404}, {with, "/guard/.env", 404},
		{with, "/b/.git", 0}, {with, acmePath + "/token", 0}, {with, "/x%2F.git", 404}, {with, "/b%2F.git", 404},
		{without, "/x/.git", 0}, {without, "/api/secret/x", 403}, {without, "/", 410},
	} {
		ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte(c.path), Path: []byte(c.path)}}
		found, guard := c.table.Match(&ex.Request)
		got := 0
		for _, r := range []*Route{found, guard} {
			if r != nil && got == 0 && !filter.GuardsOf(r.Filters, filter.Tools{}).Request(ex) {
				got = ex.Response.Status
			}
		}
		if got != c.want {
			t.Errorf("%s is answered %d, want %d (%s)", c.path, got, c.want, fmt.Sprint(found.Owner))
		}
	}
}
