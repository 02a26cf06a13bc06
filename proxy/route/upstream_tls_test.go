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

// A backend that has the certificate of its host is another one for each host, and for each of
// its further names; where a host is not one name, its paths are closed.
func TestUpstreamNameOfTheHost(t *testing.T) {
	class, below := ingressclass.DefaultName, networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 443}}}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "i", Annotations: map[string]string{
		NginxPrefix + "backend-protocol": "HTTPS", NginxPrefix + "server-alias": "c.test",
		NginxPrefix + "configuration-snippet": "proxy_ssl_server_name on; proxy_ssl_name $host;",
	}}, Spec: networkingv1.IngressSpec{IngressClassName: &class}}
	for _, host := range []string{"a.test", "b.test", "*.d.test"} {
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &below, Backend: backend}}}}})
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
	table := Compile(snapshot.Of(ing, service), nil, Options{Classes: ingressclass.Rules{Name: class}})
	for host, want := range map[string]string{"a.test": "a.test", "b.test": "b.test", "c.test": "c.test", "x.d.test": ""} {
		r, _ := table.Match(&exchange.Request{Method: []byte("GET"), Host: []byte(host), Target: []byte("/"), Path: []byte("/")})
		got := ""
		if r.Backend >= 0 {
			tls := table.Backends[r.Backend].TLS
			if got = tls.Name; !tls.SendName {
				t.Errorf("%s: the name is not sent", host)
			}
		}
		if got != want || (r.Closed != "") != (want == "") {
			t.Errorf("%s: the name is %q, want %q; closed %q", host, got, want, r.Closed)
		}
	}
	if len(table.Problems) != 1 || !strings.Contains(table.Problems[0].Message, `"*.d.test" is not one name`) {
		t.Errorf("told is %v", table.Problems)
	}
}
