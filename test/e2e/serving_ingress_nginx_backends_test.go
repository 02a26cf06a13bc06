package e2e

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	networkingv1 "k8s.io/api/networking/v1"
)

// drawBackends draws an Ingress whose Services have a pod that speaks TLS, or none, or are not
// there.
func (w *ingressWorld) drawBackends(host string) {
	options := w.draw(2, []string{"backend-protocol", "HTTPS", "https", "HTTP"}, []string{"proxy-ssl-server-name", "on", "off"},
		[]string{"proxy-ssl-verify-depth", "1", "2"}, []string{"proxy-next-upstream", "error timeout http_503", "off"}, []string{"proxy-http-version", "1.0"})
	if options["backend-protocol"] == "" && w.seldom(2) { // which speaks TLS there, too
		options["default-backend"] = w.service()
	}
	options["force-ssl-redirect"], options["enable-global-auth"] = "false", "false" // before which there is a 503 here, and after which there
	options["proxy-ssl-name"] = pick(w.dice, "pod.example", "pod.example", "other.example")
	options["proxy-ssl-secret"] = pick(w.dice, "default/authorities", "default/ours") // without which the others do nothing there
	if w.seldom(2) {
		options["proxy-ssl-verify"] = "on"
	}
	w.ingress(host, options, false, rule{"/", networkingv1.PathTypePrefix}, rule{"/tls", networkingv1.PathTypePrefix}, rule{"/none", networkingv1.PathTypePrefix}, rule{"/missing", networkingv1.PathTypePrefix})
	ingress, _ := w.objects[len(w.objects)-1].(*networkingv1.Ingress)
	paths := ingress.Spec.Rules[0].HTTP.Paths
	none := w.service()
	w.objects = w.objects[:len(w.objects)-1] // its endpoints
	for i, name := range []string{w.serviceOf(w.startTLSPod), none, "missing"} {
		paths[i+1].Backend.Service.Name = name
	}
	w.ask(host, false, []string{"/", "/tls", "/tls/x?y=1", "/none", "/missing", "/missing/x"})
}

// startTLSPod starts one that speaks TLS alone, and asks for a certificate.
func (w *ingressWorld) startTLSPod(name string) *httptest.Server { return w.startTLS(pod(name), false) }

// startTLS starts a pod with TLS, which speaks HTTP/2, too, if it is to.
func (w *ingressWorld) startTLS(h http.Handler, http2 bool) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*w.ofPods}, ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	return s
}
