package e2e

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// drawServices draws an Ingress whose backends name a port of a Service in many ways, of which
// some are wrong, and Services with pods that are not ready, or whose ports have other names.
func (w *ingressWorld) drawServices(host string) {
	paths := []rule{{"/", networkingv1.PathTypePrefix}, {"/a", networkingv1.PathTypePrefix}, {"/b", networkingv1.PathTypePrefix}, {"/c", networkingv1.PathTypePrefix}}
	i := w.ingress(host, map[string]string{"force-ssl-redirect": "false", "enable-global-auth": "false"}, false, paths...) // before which there is a 503 here
	for at := range i.Spec.Rules[0].HTTP.Paths {
		backend := i.Spec.Rules[0].HTTP.Paths[at].Backend.Service
		w.drawPorts(backend.Name)
		backend.Port = pick(w.dice, networkingv1.ServiceBackendPort{Number: 80}, networkingv1.ServiceBackendPort{Number: 81}, networkingv1.ServiceBackendPort{Number: 8080}, networkingv1.ServiceBackendPort{Number: 9090},
			networkingv1.ServiceBackendPort{Name: "http"}, networkingv1.ServiceBackendPort{Name: "admin"}, networkingv1.ServiceBackendPort{Name: "web"})
	}
	first := len(w.requests)
	w.ask(host, false, []string{"/", "/a", "/b", "/c"})
	for n := range w.requests[first:] {
		w.requests[first+n].misnamed = true
	}
}

// drawPorts draws the ports of a Service and what its endpoints are. The pod behind has one port.
func (w *ingressWorld) drawPorts(name string) {
	service, slice := w.find(name)
	at := *slice.Ports[0].Port
	first := corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: pick(w.dice, intstr.FromInt32(8080), intstr.FromString("web"), intstr.FromInt32(at))}
	service.Spec.Ports = []corev1.ServicePort{first}
	if w.seldom(2) { // where pods lack a port, a number would be asked there, and here only a name's
		service.Spec.Ports[0].Name = "http"
		second := corev1.ServicePort{Name: "admin", Port: pick[int32](w.dice, 81, 8080, 9090), Protocol: corev1.ProtocolTCP, TargetPort: pick(w.dice, intstr.FromString("http"), intstr.FromString("web"))}
		service.Spec.Ports = append(service.Spec.Ports, second)
		if slice.Ports[0].Name = new("http"); first.TargetPort.Type == intstr.String {
			slice.Ports[0].Name = pick(w.dice, new("http"), new("admin"))
		}
	}
	if w.seldom(4) {
		slice.Endpoints[0].Conditions.Ready = new(false)
		slice.Endpoints[0].Conditions.Serving, slice.Endpoints[0].Conditions.Terminating = new(false), new(w.seldom(2)) // one that serves would, here
	}
	if w.seldom(4) { // a pod that has no such port, and is not ready
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}})
	}
}

// behindClusterIP leaves of the Service of a backend its cluster IP alone, where its pod is.
func (w *ingressWorld) behindClusterIP(backend *networkingv1.IngressServiceBackend) {
	service, slice := w.find(backend.Name)
	backend.Port.Number = *slice.Ports[0].Port
	service.Spec.ClusterIP, service.Spec.Ports[0].Port = "127.0.0.1", backend.Port.Number
	slice.Endpoints[0].Addresses = []string{"192.0.2.1"}
}
