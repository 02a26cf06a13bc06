package e2e

import (
	"net/http/httptest"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// drawPassthrough draws Ingresses of a domain of which some have connections of TLS handed on to
// the pods of the path /, and perhaps others for the same hosts.
func (w *ingressWorld) drawPassthrough(domain string) {
	for _, host := range []string{"a." + domain, "b." + domain, domain} {
		options := w.draw(3, []string{"ssl-redirect", "false"}, []string{"upstream-vhost", "v.example"})
		options["backend-protocol"], options["enable-global-auth"] = "HTTPS", "false"
		if w.flags.Passthrough && !strings.Contains(w.options["server-snippet"], "return") && !w.seldom(3) { // what asks for requests ends connections here
			options["ssl-passthrough"] = "true"
		}
		rules := []rule{{"/", networkingv1.PathTypePrefix}, {"/a", networkingv1.PathTypePrefix}} // without "/" nobody has such connections
		i := w.ingress(host, options, w.seldom(2), rules[:1+w.IntN(2)]...)
		for n := range i.Spec.Rules[0].HTTP.Paths {
			service := i.Spec.Rules[0].HTTP.Paths[n].Backend.Service
			service.Name = w.serviceOf(func(name string) *httptest.Server { return w.startTLS(pod(name), true) })
			to, slice := w.find(service.Name) // there it is the cluster IP that is asked
			service.Port.Number = *slice.Ports[0].Port
			to.Spec.ClusterIP, to.Spec.Ports[0].Port = "127.0.0.1", service.Port.Number
		}
		if w.seldom(2) {
			others := w.draw(2, []string{"ssl-passthrough", "false"})
			others["enable-global-auth"] = "false"
			w.ingress(host, others, w.seldom(3), rule{"/b", networkingv1.PathTypePrefix})
		}
	}
	for _, host := range []string{"a." + domain, "b." + domain, domain, "x." + domain} {
		w.askOf(6, host, true, []string{"/", "/a", "/b", "/c?d"}, []string{"X-May", "200"})
	}
}
