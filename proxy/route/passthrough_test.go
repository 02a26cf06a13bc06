package route

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// A default-backend that stands in for a Service that is gone cannot answer a connection
// that nobody decrypts: it is ended, and requests without TLS are answered.
func TestPassthroughToWhatIsMissing(t *testing.T) {
	ing := fuzzIngress("n", "a.test", map[string]string{NginxPrefix + "ssl-passthrough": "true", NginxPrefix + "default-backend": "web"}, "/")
	ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service = &networkingv1.IngressServiceBackend{Name: "gone", Port: networkingv1.ServiceBackendPort{Number: 80}}
	table := Compile(newCrime().others.With(ing), nil, crimeOptions())
	if p := table.Passthrough("a.test"); p == nil || p.Backend != -1 || !strings.Contains(p.Closed, "default-backend") {
		t.Errorf("connections go to %+v", p)
	}
	for r := range table.Routes() {
		if r.Host == "a.test" && (r.Closed != "" || r.Errors == nil) {
			t.Errorf("requests without TLS get %+v", r)
		}
	}
}

// Another Ingress of the namespace has the addresses that hold for all, as the connections have:
// the one by which a certificate is proved ends none. One with addresses of its own does.
func TestPassthroughBesideAddressesForAll(t *testing.T) {
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "options"}, Data: map[string]string{"denylist-source-range": "10.0.0.0/8"}}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	first := fuzzIngress("n", "a.test", map[string]string{NginxPrefix + "ssl-passthrough": "true"}, "/")
	for annotation, passes := range map[string]bool{"": true, "allowlist-source-range": false, "denylist-source-range": false} {
		second := fuzzIngress("n", "a.test", nil, "/.well-known/acme-challenge/x")
		if second.Name = "solver"; annotation != "" {
			second.Annotations = map[string]string{NginxPrefix + annotation: "192.0.2.0/24"}
		}
		for _, i := range []*networkingv1.Ingress{first, second} {
			i.Spec.IngressClassName = new("nginx")
		}
		o := Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}, ConfigMap: snapshot.Key{Namespace: "edge", Name: "options"}}
		table := Compile(snapshot.Of(class, options, svc, first, second), nil, o)
		p := table.Passthrough("a.test")
		if p == nil || (p.Closed == "") != passes || p.Access == nil {
			t.Errorf("beside %q: %+v, want it to pass: %v; %v", annotation, p, passes, table.Problems)
		}
	}
}
