package proxy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// The Service of --default-backend-service answers what no rule is for as it is asked, and
// for the statuses of custom-http-errors in the place of any backend, with the fields of
// ingress-nginx. While it has no endpoint, backends answer themselves.
func TestDefaultBackendService(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.Routes.DefaultBackend = snapshot.Key{Namespace: "default", Name: "pages"}
	})
	addr := bound(p, false)
	files.Put(configMap("wide", "custom-http-errors", "404,503"), service("web", corev1.ServicePort{Port: 80}), slice("web", "", answering(t)),
		service("empty", corev1.ServicePort{Port: 80}), service("pages", corev1.ServicePort{Port: 80}),
		annotated("i", "web.test", nil), annotated("j", "empty.test", map[string]string{"service": "empty"}))
	says := func(host, request string, status int, text string) {
		t.Helper()
		eventually(t, host+request+" is answered with "+text, func() bool {
			got, said := ask(t, addr, host, request)
			return got == status && strings.Contains(said, text)
		})
	}
	says("web.test", "/x?status=404", 404, "backend /x?status=404")
	pages := errorPages(t)
	files.Put(slice("pages", "", pages))
	says("web.test", "/x?status=404\nAccept: text/html", 404,
		"page method=GET uri=/?status=404 X-Code=404 X-Format=text/html X-Original-URI=/x?status=404 X-Namespace=default X-Ingress-Name=i X-Service-Name=web X-Service-Port=80 ")
	says("web.test", "/x?status=500", 500, "backend /x?status=500")
	says("empty.test", "/y", 503, "X-Code=503 X-Format= X-Original-URI=/y X-Namespace=default X-Ingress-Name=j ")
	says("nobody.test", "POST /z?q", 200, "page method=POST uri=/z?q X-Code= ")
	files.Delete(snapshot.Service, snapshot.Key{Namespace: "default", Name: "pages"})
	says("nobody.test", "/z", 404, "")
	says("web.test", "/x?status=404", 404, "backend /x?status=404")
}
