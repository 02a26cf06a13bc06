package dispatch_test

import (
	"maps"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// staffed is an upstream that answers with its name, unless it has nobody to ask.
type staffed struct {
	name  string
	empty bool
}

func (s *staffed) Empty() bool { return s.empty }

func (s *staffed) Forward(ex *exchange.Exchange) {
	if s.empty {
		ex.Answer(503, "nobody")
		return
	}
	ex.Answer(200, s.name)
}

// pathIngress leads / of the host shop to a Service.
func pathIngress(name, service string, said map[string]string) *networkingv1.Ingress {
	class, kind := "quayside", networkingv1.PathTypePrefix
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}}}
	for key, value := range said {
		ing.Annotations[route.OwnPrefix+key] = value
	}
	ing.Spec.IngressClassName = &class
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: "shop", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}
	return ing
}

// A canary that has no endpoint, such as one whose pods are still starting, leaves its
// share to the Ingress that it is of, at no cost.
func TestCanaryWithoutEndpoints(t *testing.T) {
	svc := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	get, shop, root := []byte("GET"), []byte("shop"), []byte("/")
	for _, sessions := range []map[string]string{nil, {"affinity": "cookie"}} {
		canary := map[string]string{"canary": "true", "canary-weight": "100"}
		maps.Copy(canary, sessions)
		table := route.Compile(snapshot.Of(svc("old"), svc("young"), pathIngress("main", "old", sessions), pathIngress("new", "young", canary)), nil, route.Options{})
		for _, k := range []struct {
			old, young bool // without endpoints
			want       string
		}{{false, false, "young"}, {true, false, "young"}, {false, true, "old"}, {true, true, "nobody"}} {
			d := dispatch.New(dispatch.Options{})
			var backends []dispatch.Forwarder
			for _, b := range table.Backends {
				backends = append(backends, &staffed{b.Service.Name, b.Service.Name == "old" && k.old || b.Service.Name == "young" && k.young})
			}
			d.SetTable(table, backends)
			var ex exchange.Exchange
			ask := func() {
				ex.Reset()
				ex.Request.Method, ex.Request.Host, ex.Request.Path, ex.Request.Target = get, shop, root, root
				ex.Request.Client = netip.MustParseAddrPort("127.0.0.1:1")
				d.Handle(&ex)
			}
			if ask(); string(ex.Response.Text) != k.want {
				t.Errorf("%v, %+v: answered %d %q", sessions, k, ex.Response.Status, ex.Response.Text)
			}
			if n := testing.AllocsPerRun(100, ask); n != 0 {
				t.Errorf("%v, %+v: %v allocations", sessions, k, n)
			}
		}
	}
}
