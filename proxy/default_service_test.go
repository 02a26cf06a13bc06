package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
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
	says := sayer(t, addr)
	says("web.test", "/x?status=404", 404, "backend /x?status=404")
	pages := errorPages(t)
	files.Put(slice("pages", "", pages))
	says("web.test", "/x?status=404\nAccept: text/html", 404,
		"page method=GET uri=/?status=404 X-Code=404 X-Format=text/html X-Original-URI=/x?status=404 X-Namespace=default X-Ingress-Name=i X-Service-Name=web X-Service-Port=80 ")
	says("web.test", "/x?status=500", 500, "backend /x?status=500")
	says("empty.test", "/y", 503, "X-Code=503 X-Format= X-Original-URI=/y X-Namespace=default X-Ingress-Name=j ")
	says("nobody.test", "POST /z?q", 200, "page method=POST uri=/z?q X-Code= ")
	// Who asks for a host that nobody has gets its pages and not a 401, as he would get a 404.
	files.Put(configMap("wide", "global-auth-url", "http://nobody.default.svc.cluster.local/"))
	says("web.test", "/x", 500, "")
	says("nobody.test", "/z", 200, "page method=GET uri=/z")
	files.Put(configMap("wide", "custom-http-errors", "404,503"))
	files.Delete(snapshot.Service, snapshot.Key{Namespace: "default", Name: "pages"})
	says("nobody.test", "/z", 404, "")
	says("web.test", "/x?status=404", 404, "backend /x?status=404")
}

// sayer returns what waits until a proxy answers a request for a host so.
func sayer(t *testing.T, addr string) func(host, request string, status int, text string) {
	return func(host, request string, status int, text string) {
		t.Helper()
		eventually(t, host+request+" is answered with "+text, func() bool {
			got, said := ask(t, addr, host, request)
			return got == status && strings.Contains(said, text)
		})
	}
}

// In adopted classes it is asked in the name of the oldest Ingress what no path is for, and once
// more for a page where it answers with a status of that Ingress, whose own pages are for its
// backends.
func TestDefaultBackendServiceForAHost(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.DefaultBackend = snapshot.Key{Namespace: "default", Name: "shared"}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
	})
	for name, at := range map[string]string{"web": answering(t), "shared": answering(t), "own": errorPages(t)} {
		files.Put(service(name, corev1.ServicePort{Port: 80}), slice(name, "", at))
	}
	ing := annotated("i", "web.test", map[string]string{"path": "/app", "custom-http-errors": "404", "default-backend": "own"})
	ing.Spec.IngressClassName = new(ingressclass.NginxName)
	files.Put(ing)
	says := sayer(t, bound(p, false))
	says("web.test", "/app?status=404", 404, "page method=GET uri=/?status=404 X-Code=404")
	says("web.test", "/other?status=404", 404, "backend /?status=404")
	says("web.test", "/other?status=500", 500, "backend /other?status=500")
	missing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "code %s in the place of %q", r.Header.Get("X-Code"), r.Header.Values("X-Service-Name"))
	}))
	defer missing.Close()
	files.Put(slice("shared", "", strings.TrimPrefix(missing.URL, "http://")))
	says("web.test", "/other", 404, "code 404 in the place of []")
}
