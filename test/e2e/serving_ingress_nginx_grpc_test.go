package e2e

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// drawGRPC draws an Ingress whose Services speak gRPC, and calls of it, which end by trailers.
func (w *ingressWorld) drawGRPC(host string) {
	options := w.draw(4, []string{"upstream-vhost", "v.example"}, []string{"custom-headers", "default/added"}, []string{"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, []string{"proxy-body-size", "1m"},
		[]string{"configuration-snippet", `more_set_headers "X-Set: $host";`, "grpc_set_header X-Path $uri;"}, []string{"auth-url", w.auth})
	options["force-ssl-redirect"], options["enable-global-auth"] = "false", "false"
	start := w.startGRPC
	if options["backend-protocol"] = pick(w.dice, "GRPC", "GRPCS"); options["backend-protocol"] == "GRPCS" {
		start = w.startGRPCS
	}
	i := w.ingress(host, options, true, rule{"/", networkingv1.PathTypePrefix}, rule{"/shop.Cart/", networkingv1.PathTypePrefix}, rule{"/shop.Cart/Add", networkingv1.PathTypeExact})
	for at := range i.Spec.Rules[0].HTTP.Paths {
		i.Spec.Rules[0].HTTP.Paths[at].Backend.Service.Name = w.serviceOf(start)
	}
	first := len(w.requests)
	w.ask(host, true, []string{"/shop.Cart/Add", "/shop.Cart/List", "/shop.Cart", "/other.Service/Do?x=1", "/?status=404", "/shop.Cart/Add?f-X-Kept=1"}, []string{"X-May", "200", "401"}, []string{"Grpc-Timeout", "5S"}, []string{"X-Own", "1"})
	for n := range w.requests[first:] {
		r := &w.requests[first+n]
		r.method, r.tls, r.http2, r.grpc = http.MethodPost, true, true, true
		r.fields.Set("Content-Type", "application/grpc")
		r.fields.Set("Te", "trailers")
	}
}

// startGRPC starts a pod that speaks HTTP/2 without TLS, and ends by trailers.
func (w *ingressWorld) startGRPC(name string) *httptest.Server {
	s := httptest.NewUnstartedServer(withTrailers(pod(name)))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	return s
}

// startGRPCS starts one that speaks it with TLS.
func (w *ingressWorld) startGRPCS(name string) *httptest.Server {
	return w.startTLS(withTrailers(pod(name)), true)
}

func withTrailers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Host")       // which nginx sends beside :authority
		r.Header.Del("X-Location") // which location-snippet has nginx set by grpc_set_header alone
		next.ServeHTTP(w, r)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "done")
	})
}

// inGRPC is what ingress-nginx has answered as its own, as we tell callers: by a status of gRPC,
// see https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md.
func inGRPC(theirs, ours []string) []string {
	status, ok := map[string]string{"200": "", "400": "13", "401": "16", "403": "7", "404": "12", "429": "14", "502": "14", "503": "14", "504": "14"}[theirs[0]]
	if !ok {
		status = "2"
	}
	if status != "" && !slices.ContainsFunc(theirs, func(line string) bool { return strings.HasPrefix(line, podSays) }) && slices.Contains(ours, "Grpc-Status: "+status) {
		return ours
	}
	return theirs
}
