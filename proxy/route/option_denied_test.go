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
	objects := []snapshot.Object{deniedService("a"), deniedService("b"), deniedIngress("a", "root", "/", ""), deniedIngress("a", "api", "/api", "/api/secret\n= / 410"),
		deniedIngress("a", "acme", acmePath+"/token", ""), deniedIngress("b", "b", "/b", "")}
	guarding := deniedIngress("a", "guard", "/guard", `~ /\. 404`)
	o := Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}}
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
		if got, owner := deniedBy(c.table, c.path); got != c.want {
			t.Errorf("%s is answered %d, want %d (%s)", c.path, got, c.want, owner)
		}
	}
}

// What the Ingresses of a namespace deny together has a bound, and over it nothing of theirs
// passes. Lines that several of them have count once.
func TestDeniedPathsHaveABound(t *testing.T) {
	lines := func(from int) (text string) {
		for i := range maxLines {
			text += fmt.Sprintf("~ ^/denied/%d$\n", from+i)
		}
		return text
	}
	objects := []snapshot.Object{deniedService("a"), deniedService("b"), deniedIngress("b", "b", "/b", ""), deniedIngress("a", "acme", acmePath+"/token", "")}
	for i := range 6 {
		objects = append(objects, deniedIngress("a", fmt.Sprint("i", i), fmt.Sprint("/", i), lines(min(i, 3)*maxLines)))
	}
	o := Options{Classes: ingressclass.Rules{Name: ingressclass.DefaultName}}
	full := Compile(snapshot.Of(objects...), nil, o)
	if problems := full.Problems; len(problems) != 0 {
		t.Fatal(problems)
	}
	over := Compile(snapshot.Of(append(objects, deniedIngress("a", "over", "/over", "/one-more"))...), full, o)
	if problems := over.Problems; len(problems) != 1 || problems[0].Reason != RouteClosed || problems[0].Object.Key.Name != "over" {
		t.Errorf("told is %v", problems)
	}
	for path, want := range map[string]int{"/0": 403, "/over": 403, "/b": 0, acmePath + "/token": 0} {
		if got, _ := deniedBy(over, path); got != want {
			t.Errorf("over the bound %s is answered %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]int{"/0": 0, "/0/x": 0, "/5": 0} {
		if got, _ := deniedBy(full, path); got != want {
			t.Errorf("%s is answered %d, want %d", path, got, want)
		}
	}
}

func deniedIngress(namespace, name, path, denied string) *networkingv1.Ingress {
	class, below := ingressclass.DefaultName, networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: &class,
		Rules: []networkingv1.IngressRule{{Host: "shop.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &below, Backend: backend}}}}}}}}
	if denied != "" {
		ing.Annotations = map[string]string{OwnPrefix + "denied-paths": denied}
	}
	return ing
}

func deniedService(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// deniedBy returns what a request for path is refused with, or 0, and whose path it is.
func deniedBy(table *Table, path string) (status int, owner snapshot.Ref) {
	ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte(path), Path: []byte(path)}}
	found, guard := table.Match(&ex.Request)
	for _, r := range []*Route{found, guard} {
		if r != nil && status == 0 && !filter.GuardsOf(r.Filters, filter.Tools{}).Request(ex) {
			status = ex.Response.Status
		}
	}
	return status, found.Owner
}
