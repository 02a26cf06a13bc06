package route_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// TestNamesOutside: what a Service of type ExternalName may stand for, and what closes its
// paths and says why.
func TestNamesOutside(t *testing.T) {
	number, named := networkingv1.ServiceBackendPort{Number: 80}, networkingv1.ServiceBackendPort{Name: "web"}
	for _, c := range []struct {
		name    string
		port    networkingv1.ServiceBackendPort
		ports   []corev1.ServicePort
		with    map[string]string
		options route.Options
		why     string // the path is closed; "": it is not
		tls     string // the name that the other side is to show
		http2   bool
	}{
		{name: "shop.example", port: number},
		{name: "Shop.Example.", port: number, with: map[string]string{"backend-protocol": "HTTPS"}, tls: "shop.example"},
		{name: "shop.example", port: number, with: map[string]string{"backend-protocol": "HTTPS", "proxy-ssl-name": "inner.example"}, tls: "inner.example"},
		{name: "shop.example", port: number, with: map[string]string{"backend-protocol": "GRPC"}, http2: true},
		{name: "192.0.2.1", port: number},
		{name: "shop.example", port: named, ports: []corev1.ServicePort{{Name: "web", Port: 81, TargetPort: intstr.FromInt32(8080)}}},
		{name: "shop.example", port: named, why: "no port web in Service n/s, which stands for a name outside: give its number"},
		{name: "localhost", port: number, why: "it is the proxy itself"},
		{name: "169.254.169.254", port: number, why: "169.254.169.254: "},
		{name: "", port: number, why: "it names nothing"},
		{name: "shop.example", port: number, options: route.Options{NoExternalName: true}, why: "--disable-svc-external-name refuses that"},
	} {
		svc := plainService("s")
		svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: c.name, Ports: c.ports}
		ing := plainIngress("i", "a.test", "s", "/")
		ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = c.port
		ing.Annotations = map[string]string{}
		for key, value := range c.with {
			ing.Annotations[route.NginxPrefix+key] = value
		}
		table := route.Compile(snapshot.Of(svc, ing), nil, c.options)
		r := match(table, "a.test", "/")
		told := messages(table)
		if r == nil || (r.Backend < 0) != (c.why != "") || !strings.Contains(told, c.why) || c.why == "" && told != "" {
			t.Errorf("%q, port %v: closed %v, told %q; wanted %q", c.name, c.port, r != nil && r.Backend < 0, told, c.why)
		} else if c.why == "" {
			if b := table.Backends[r.Backend]; b.TLS.Name != c.tls || b.HTTP2 != c.http2 {
				t.Errorf("%q, port %v: over TLS the name is %q, HTTP/2 %v", c.name, c.port, b.TLS.Name, b.HTTP2)
			}
		}
	}
}
