package route

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
)

// The Service of --default-backend-service is asked what nobody else is for, and stands in
// for the backends of Ingresses that name nobody themselves, as it comes and goes.
func TestDefaultService(t *testing.T) {
	pages := snapshot.Key{Namespace: "edge", Name: "pages"}
	o := Options{DefaultBackend: pages, ConfigMap: snapshot.Key{Namespace: "edge", Name: "wide"},
		Classes: ingressclass.Rules{Name: ingressclass.DefaultName, Adopt: []string{ingressclass.NginxController}}}
	service := func(namespace, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	ingress := func(name, class string, annotations map[string]string, rules ...networkingv1.IngressRule) *networkingv1.Ingress {
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Annotations: annotations}, Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: rules}}
		if len(rules) == 0 {
			ing.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
		}
		return ing
	}
	rule := func(host, path string) networkingv1.IngressRule {
		exact := networkingv1.PathTypeExact
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
			{Path: path, PathType: &exact, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}
	}
	nginx := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
	wide := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "wide"}, Data: map[string]string{"custom-http-errors": "404,503"}}
	objects := []snapshot.Object{nginx, wide, service("a", "web"), service("a", "own"),
		ingress("ours", ingressclass.DefaultName, nil, rule("ours.test", "/a")), ingress("theirs", "nginx", nil, rule("theirs.test", "/a")),
		ingress("named", ingressclass.DefaultName, map[string]string{OwnPrefix + "default-backend": "own"}, rule("named.test", "/a")),
		ingress("both", ingressclass.DefaultName, map[string]string{OwnPrefix + "default-backend": "own", OwnPrefix + "custom-http-errors": "404"}, rule("both.test", "/a")),
		ingress("grpc", ingressclass.DefaultName, map[string]string{OwnPrefix + "backend-protocol": "GRPC"}, rule("grpc.test", "/a")),
		ingress("off", ingressclass.DefaultName, map[string]string{OwnPrefix + "disable-proxy-intercept-errors": "true"}, rule("off.test", "/a"))}
	to := func(table *Table, host, path string) *Route {
		r, _ := table.Match(&exchange.Request{Host: []byte(host), Target: []byte(path), Path: []byte(path)})
		return r
	}
	none := Compile(snapshot.Of(objects...), nil, o)
	if r := to(none, "theirs.test", "/b"); to(none, "nobody.test", "/") != nil || !r.NoRule || r.Backend >= 0 || to(none, "ours.test", "/a").Errors != nil {
		t.Error("a Service that is not there is asked")
	}
	told := false
	for _, p := range none.Problems {
		told = told || p.Object.Key == pages && p.Reason == MissingService && strings.Contains(p.Message, "--default-backend-service has no effect")
	}
	if !told {
		t.Errorf("nobody is told of %v: %v", pages, none.Problems)
	}
	some := Compile(snapshot.Of(append(objects, service("edge", "pages"))...), none, o)
	for _, c := range []struct{ host, path string }{{"nobody.test", "/"}, {"ours.test", "/b"}, {"theirs.test", "/b"}} {
		if r := to(some, c.host, c.path); r == nil || r.Service != pages || some.Backends[r.Backend].Service != pages || r.NoRule != (c.host == "theirs.test") || !r.NoRule && (r.Errors != nil || !r.LeftOver()) {
			t.Errorf("%s%s is not left to %v: %+v", c.host, c.path, pages, r)
		}
	}
	own := snapshot.Key{Namespace: "a", Name: "own"}
	for host, want := range map[string][2]snapshot.Key{"ours.test": {pages}, "theirs.test": {pages}, "named.test": {pages, own}, "both.test": {own, own}} {
		r := to(some, host, "/a")
		var got [2]snapshot.Key
		if page := r.Errors; page != nil && page.Replaces(404) && page.Shared == (want[0] == pages) {
			if got[0] = some.Backends[page.Backend].Service; page.Standby >= 0 {
				got[1] = some.Backends[page.Standby].Service
			}
		}
		if got != want {
			t.Errorf("%s: who answers for errors, and for a backend without endpoints, is %v, want %v: %+v", host, got, want, r.Errors)
		}
	}
	for _, host := range []string{"off.test", "grpc.test"} {
		if r := to(some, host, "/a"); r.Errors != nil {
			t.Errorf("%s: who wants none has a page", host)
		}
	}
	if len(some.Problems) > 0 {
		t.Errorf("told: %v", some.Problems)
	}
	gone := ingress("gone", "nginx", nil, rule("gone.test", "/a"))
	gone.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "gone"
	lost := Compile(snapshot.Of(append(objects, service("edge", "pages"), gone)...), some, o)
	if r := to(lost, "gone.test", "/a"); r.Closed != "" || r.Backend >= 0 || !r.Errors.Replaces(503) || len(lost.Problems) != 1 || !strings.HasSuffix(lost.Problems[0].Message, "are answered by the Service of --default-backend-service") {
		t.Errorf("a Service that does not exist has no page: %+v %v", r, lost.Problems)
	}
	all := Compile(snapshot.Of(append(objects, service("edge", "pages"), ingress("all", ingressclass.DefaultName, nil))...), some, o)
	if r := to(all, "nobody.test", "/"); r == nil || r.LeftOver() {
		t.Error("the default backend of an Ingress is not asked before")
	}
	if again := Compile(snapshot.Of(objects...), all, o); to(again, "nobody.test", "/") != nil || to(again, "ours.test", "/a").Errors != nil {
		t.Error("a Service that has gone is asked")
	}
}
