package e2e

import (
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/test/certificate"
	"quayside.io/test/lab"
)

// ingressWorld is hosts of Ingresses of ingress-nginx, with pods, and requests for them. No two
// hosts share a Service: there a Service has one session and one canary, here a path has.
type ingressWorld struct {
	dice
	t        *testing.T
	objects  []snapshot.Object
	requests []ingressRequest
	ends     []func()
	options  map[string]string // for all
	flags    lab.IngressNginxFlags
	services int
	covered  map[string]bool // hosts with a tls entry
	paged    map[string]bool // domains with pages in the place of errors
	space    string          // namespace of what is added
	// certificates are those of clients, by whose they are.
	certificates map[string]*tls.Certificate
	ofPods       *tls.Certificate
	root         *certificate.Issued // the authority of most
	auth         string              // address of a pod that says who may pass
	// believing is whether clients are believed what they say in X-Forwarded-*.
	believing bool
	passed    string // address that PROXY headers say of clients; empty: there are none
	guarded   bool   // auth is asked about all requests
}

// hostKinds are what hosts are drawn as.
var hostKinds = []func(w *ingressWorld, host string){
	(*ingressWorld).drawPaths, (*ingressWorld).drawPatterns, (*ingressWorld).drawCanary,
	(*ingressWorld).drawSession, (*ingressWorld).drawRedirects, (*ingressWorld).drawGuards, (*ingressWorld).drawNames, (*ingressWorld).drawClients, (*ingressWorld).drawBackends,
	(*ingressWorld).drawDefaults, (*ingressWorld).drawCertificates, (*ingressWorld).drawServices, (*ingressWorld).drawSessions, (*ingressWorld).drawGRPC, (*ingressWorld).drawMirrors, (*ingressWorld).drawPassthrough, (*ingressWorld).drawValues,
}

// worldSpaces are the namespaces of a world.
var worldSpaces = []string{"default", "other"}

// elsewhere draws a namespace for what do adds.
func (w *ingressWorld) elsewhere(do func()) {
	was := w.space
	w.space = pick(w.dice, worldSpaces...)
	do()
	w.space = was
}

// drawnHosts is how many hosts, or domains, a world has.
const drawnHosts = 51

func drawIngressWorld(t *testing.T, d dice) *ingressWorld {
	w := &ingressWorld{dice: d, t: t, covered: map[string]bool{}, paged: map[string]bool{}, space: "default"}
	w.add("networking.k8s.io/v1", "IngressClass", &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
		Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}})
	auth := startPod("auth")
	w.ends, w.auth = append(w.ends, auth.Close), auth.URL+"/auth"
	w.drawOptions()
	sum := sha1.Sum([]byte("pw"))
	w.add("v1", "Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"},
		Data: map[string][]byte{"auth": []byte("user:{SHA}" + base64.StdEncoding.EncodeToString(sum[:]) + "\n")}})
	w.add("v1", "Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "map", UID: "9"},
		Data: map[string][]byte{"user": []byte("{SHA}" + base64.StdEncoding.EncodeToString(sum[:])), "other": []byte("{SHA}none")}})
	names := []string{"*.example"}
	for i := range drawnHosts {
		names = append(names, fmt.Sprintf("*.h%d.example", i))
	}
	w.pair("pair", time.Hour, names...)
	w.drawFlags()
	w.issue()

	w.awaited("first.example")
	for i := range drawnHosts {
		hostKinds[i%len(hostKinds)](w, fmt.Sprintf("h%d.example", i))
	}
	w.drawCatchAll()
	return w
}

// awaited adds an Ingress whose pod is asked whatever holds for all, and its request in front.
func (w *ingressWorld) awaited(host string) {
	w.ingress(host, map[string]string{"enable-global-auth": "false", "force-ssl-redirect": "false", "ssl-redirect": "false"}, false, rule{"/", networkingv1.PathTypePrefix})
	w.requests = slices.Insert(w.requests, 0, ingressRequest{method: http.MethodGet, host: host, target: "/"})
}

// close ends what serves the world, and its pods.
func (w *ingressWorld) close() {
	for i := len(w.ends) - 1; i >= 0; i-- {
		w.ends[i]()
	}
}

func (w *ingressWorld) add(version, kind string, o snapshot.Object) {
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	w.objects = append(w.objects, o)
}

// domainOf is that of a host, which no two drawings share.
func domainOf(host string) string {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}

// ingressesOf are those of a request's domain, and what holds for all, to be read.
func (w *ingressWorld) ingressesOf(r ingressRequest) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%q\n", w.options)
	for _, o := range w.objects {
		if i, ok := o.(*networkingv1.Ingress); ok && (len(i.Spec.Rules) == 0 || i.Spec.Rules[0].Host == "" || domainOf(i.Spec.Rules[0].Host) == domainOf(r.host)) {
			text, _ := json.Marshal(i)
			fmt.Fprintf(&s, "%s\n%s", text, w.servicesOf(i))
		}
	}
	return s.String()
}

// servicesOf are the ports and endpoints behind an Ingress, to be read.
func (w *ingressWorld) servicesOf(i *networkingv1.Ingress) string {
	var s strings.Builder
	for _, r := range i.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for _, p := range r.HTTP.Paths {
			if service, slice := w.find(p.Backend.Service.Name); service != nil && slice != nil {
				ports, _ := json.Marshal([]any{service.Spec.Ports, slice.Ports, slice.Endpoints})
				fmt.Fprintf(&s, "  %s %s\n", service.Name, ports)
			}
		}
	}
	return s.String()
}

// find returns a Service that was added, and its EndpointSlice.
func (w *ingressWorld) find(name string) (service *corev1.Service, slice *discoveryv1.EndpointSlice) {
	for _, o := range w.objects {
		switch o := o.(type) {
		case *corev1.Service:
			if o.Name == name {
				service = o
			}
		case *discoveryv1.EndpointSlice:
			if o.Name == name+"-1" {
				slice = o
			}
		}
	}
	return service, slice
}

// draw draws from lists of a name and its values, each once in n times.
func (w *ingressWorld) draw(n int, lists ...[]string) map[string]string {
	drawn := map[string]string{}
	for _, l := range lists {
		if w.seldom(n) {
			drawn[l[0]] = pick(w.dice, l[1:]...)
		}
	}
	return drawn
}

// rule is a path of an Ingress, which has a Service of its own.
type rule struct {
	path string
	kind networkingv1.PathType
}

// ingress adds one, younger than those before.
func (w *ingressWorld) ingress(host string, options map[string]string, tls bool, rules ...rule) *networkingv1.Ingress {
	n := len(w.objects)
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: fmt.Sprintf("i%d", n), CreationTimestamp: metav1.NewTime(time.Unix(int64(n), 0))}}
	i.Spec.IngressClassName, i.Annotations = new("nginx"), map[string]string{}
	for name, value := range options {
		i.Annotations["nginx.ingress.kubernetes.io/"+name] = value
	}
	paths := &networkingv1.HTTPIngressRuleValue{}
	for _, r := range rules {
		paths.Paths = append(paths.Paths, networkingv1.HTTPIngressPath{Path: r.path, PathType: &r.kind, Backend: w.backend()})
	}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: paths}}}
	if tls {
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: "pair"}}
		w.covered[host] = true
	}
	w.add("networking.k8s.io/v1", "Ingress", i)
	return i
}

// backend is a Service that it adds.
func (w *ingressWorld) backend() networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: w.service(), Port: networkingv1.ServiceBackendPort{Number: 80}}}
}

// service adds one with a pod, and returns its name.
func (w *ingressWorld) service() string {
	return w.serviceOf(startPod)
}

// serviceOf adds one with a pod that start starts with its name.
func (w *ingressWorld) serviceOf(start func(name string) *httptest.Server) string {
	w.services++
	name := fmt.Sprintf("s%d", w.services)
	pod := start(name)
	w.ends = append(w.ends, pod.Close)
	at := netip.MustParseAddrPort(pod.Listener.Addr().String())
	w.add("v1", "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}})
	w.add("discovery.k8s.io/v1", "EndpointSlice", &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(at.Port())), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	})
	return name
}

// ask draws requests for a host, with fields of those that are given.
func (w *ingressWorld) ask(host string, tls bool, targets []string, fields ...[]string) {
	w.askOf(20, host, tls, targets, fields...)
}

// askOf is ask for a number of them.
func (w *ingressWorld) askOf(n int, host string, tls bool, targets []string, fields ...[]string) {
	_, parent, _ := strings.Cut(host, ".")
	strict := (w.covered[host] || w.covered["*."+parent]) && !w.guarded && !w.paged[domainOf(host)] && !strings.HasPrefix(host, "www.")
	for range n {
		r := ingressRequest{strict: strict, guarded: w.guarded, paged: w.options["custom-http-errors"], tls: tls && w.seldom(2), http2: w.seldom(2), host: host, method: pick(w.dice, "GET", "GET", "POST", "HEAD", "OPTIONS"), target: pick(w.dice, targets...), fields: http.Header{}}
		if w.guarded && !w.seldom(4) {
			r.fields.Set("X-May", "200")
		}
		for name, value := range w.draw(4, fields...) {
			r.fields.Set(name, value)
		}
		if w.guarded { // where nobody is asked it comes through there
			r.fields.Del("X-Auth-User")
		}
		if r.method == "POST" && w.seldom(2) {
			r.body = "a body"
		}
		w.requests = append(w.requests, r)
	}
}

func (w *ingressWorld) drawPaths(host string) {
	options := [][]string{{"enable-cors", "true"}, {"cors-allow-origin", "http://a.example", "http://*.example, http://x.test", "*"}, {"cors-allow-methods", "GET, PUT"}, {"cors-allow-headers", "X-A, X-B"},
		{"cors-expose-headers", "*, X-E"}, {"cors-max-age", "60"}, {"cors-allow-credentials", "false"}, {"upstream-vhost", "v.example", "$host"}, {"proxy-redirect-from", "http://pod.example/", "off"},
		{"proxy-cookie-path", "/x /z"}, {"proxy-cookie-domain", "a.example b.example"}, {"proxy-body-size", "3", "1m"}, {"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, {"custom-headers", "default/added"},
		{"denylist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, {"load-balance", "ewma"}, {"proxy-next-upstream", "error http_503"}, {"proxy-http-version", "1.0"},
		{"allowlist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, {"proxy-buffering", "on"}, {"proxy-request-buffering", "off"}, {"limit-rps", "1"}, {"limit-rpm", "2"}, {"limit-connections", "1"},
		{"limit-whitelist", "127.0.0.0/8", "10.0.0.0/8"}, {"limit-burst-multiplier", "1"}, {"http2-push-preload", "true"}, {"proxy-buffer-size", "8k"},
		{"configuration-snippet", `more_set_headers "X-Set: $host";`, "add_header X-Path $uri always;", "proxy_set_header X-Path $uri;", "rewrite ^/a/b(.*)$ /moved$1 break;"}}
	some := func() map[string]string {
		drawn := w.draw(5, options...)
		if drawn["proxy-redirect-from"] != "" {
			drawn["proxy-redirect-to"] = "/moved/"
		}
		if drawn["allowlist-source-range"] != "" { // with both names the route is closed here
			delete(drawn, "whitelist-source-range")
		}
		if strings.Contains(w.options["custom-http-errors"], "503") { // what a limit refuses is no error of a backend here
			for name := range drawn {
				if strings.HasPrefix(name, "limit-") {
					delete(drawn, name)
				}
			}
		}
		if drawn["enable-cors"] != "" { // whose fields a 413 of ours has, too
			delete(drawn, "proxy-body-size")
		}
		return drawn
	}
	w.ingress(host, some(), false, rule{"/", networkingv1.PathTypePrefix})
	kind := func() networkingv1.PathType {
		return pick(w.dice, networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
	}
	w.elsewhere(func() {
		drawn := some()
		delete(drawn, "custom-headers") // of another namespace: what it is in closes here
		w.ingress(host, drawn, false, rule{"/a", kind()}, rule{"/a/b", kind()}, rule{pick(w.dice, "/B", "/c", "/ef"), kind()})
	})
	w.ask(host, false, []string{"/", "/a", "/a/", "/ab", "/a/b", "/a/b/c", "//a", "/a/../e", "/A", "/B", "/b/", "/c%20d", "/ef", "/a?x=1&y=%2f", "/a/./b?", "/?status=302&f-Location=http://pod.example/x",
		"/?f-Set-Cookie=k=v;%20Path=/x;%20Domain=a.example", "/a?f-X-Hide=1&f-X-Kept=1", "/?status=404", "/a/b?status=503", `/?f-Etag="x"`, "/?f-Content-Encoding=br", "/?f-Content-Type=application/json"},
		[]string{"Origin", "http://a.example", "http://b.example"}, []string{"X-Forwarded-For", "192.0.2.1, 10.0.0.1"}, []string{"X-Forwarded-Proto", "https", "http"}, []string{"X-Forwarded-Host", "away.example", "away.example:444, in.example"}, []string{"User-Agent", "bad", "Curl/8", "good"},
		[]string{"Cookie", "a=b; c=d"}, []string{"Upgrade-Insecure-Requests", "1"}, []string{"Referer", "http://bad.example", "http://EVIL.example/x", "http://good.example"}, []string{"X_under", "1"}, []string{"X-Own", "1"}, []string{"Accept-Encoding", "gzip", "gzip;q=0", "br, gzip;q=0.5", "identity"}, []string{"If-None-Match", `"x"`, `W/"x"`})
}

func (w *ingressWorld) drawPatterns(host string) {
	options := w.draw(2, []string{"rewrite-target", "/r/$1", "/r", "/r/$2/$1"}, []string{"app-root", "/app"}, []string{"x-forwarded-prefix", "/p", "true", "/p/$1"})
	if options["rewrite-target"] == "" { // without which it does nothing there
		delete(options, "x-forwarded-prefix")
	}
	options["use-regex"] = "true"
	kind := networkingv1.PathTypeImplementationSpecific
	w.ingress(host, options, false, rule{"/", kind}, rule{pick(w.dice, "/a(/|$)(.*)", "/a/(.*)", "/a"), kind}, rule{pick(w.dice, "/b/([0-9]+)$", "/[bc]/(x|y)", "/(.*)/d"), kind})
	w.elsewhere(func() { w.ingress(host, nil, false, rule{"/plain", kind}) })
	w.ask(host, false, []string{"/", "/a", "/a/", "/A/b", "/a/b/c?q=1", "/ab", "/b/12", "/b/12x", "/c/x", "/x/d", "/plain", "/plainer", "/PLAIN/x", "/a/%20/z", "//a//b"})
}

func (w *ingressWorld) drawCanary(host string) {
	main := w.draw(4, []string{"affinity", "cookie"}, []string{"session-cookie-name", "route"})
	if main["affinity"] != "" && w.seldom(2) {
		main["affinity-canary-behavior"] = pick(w.dice, "sticky", "legacy")
	}
	canary := w.draw(2, []string{"canary-by-header", "X-Canary"}, []string{"canary-by-cookie", "canary"}, []string{"canary-weight", "0", "100"}, []string{"canary-weight-total", "100", "50"}, []string{"affinity", "cookie"})
	canary["canary"] = "true"
	if canary["canary-by-header"] != "" {
		for name, value := range w.draw(3, []string{"canary-by-header-value", "yes", "a b"}, []string{"canary-by-header-pattern", "^y.*s$", "y|n"}) {
			canary[name] = value
		}
	}
	first, second := rule{"/", networkingv1.PathTypePrefix}, rule{"/a", pick(w.dice, networkingv1.PathTypePrefix, networkingv1.PathTypeExact)}
	w.ingress(host, main, false, first, second)
	w.ingress(host, canary, false, pick(w.dice, []rule{first}, []rule{second}, []rule{first, second})...)
	w.ask(host, false, []string{"/", "/a", "/a/b", "/x"}, []string{"X-Canary", "always", "never", "yes", "a b", "yxs", "no"}, []string{"Cookie", "canary=always", "canary=never", "canary=x; b=always"})
}

func (w *ingressWorld) drawSession(host string) {
	options := w.draw(3, []string{"session-cookie-name", "route", "SESSION"}, []string{"session-cookie-path", "/", "/p"}, []string{"session-cookie-samesite", "None", "Lax", "Strict"},
		[]string{"session-cookie-conditional-samesite-none", "true"}, []string{"session-cookie-expires", "3600"}, []string{"session-cookie-max-age", "3600"}, []string{"session-cookie-secure", "true"},
		[]string{"session-cookie-domain", "example", ".example"}, []string{"affinity-mode", "balanced", "persistent"}, []string{"ssl-redirect", "false"})
	options["affinity"] = "cookie"
	tls := w.seldom(2)
	w.ingress(host, options, tls, rule{"/", networkingv1.PathTypePrefix}, rule{"/a", networkingv1.PathTypePrefix})
	w.ask(host, tls, []string{"/", "/a", "/a/b?f-Set-Cookie=own=1"}, []string{"User-Agent", "Mozilla/5.0 Chrome/60.0", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_4) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1 Safari/605.1.15"})
}

func (w *ingressWorld) drawRedirects(host string) {
	options := w.draw(5, []string{"ssl-redirect", "false", "true"}, []string{"force-ssl-redirect", "true"}, []string{"permanent-redirect", "https://other.example/p", "https://other.example"}, []string{"permanent-redirect-code", "308"},
		[]string{"temporal-redirect", "http://other.example/x?y=1"}, []string{"app-root", "/app"}, []string{"preserve-trailing-slash", "true"},
		[]string{"relative-redirects", "true"}, []string{"server-snippet", "location = /z/y { return 418; }", "if ($http_x_srv) { return 403; }", `more_set_headers "X-Srv: $host";`})
	tls := w.seldom(2) && options["app-root"] == "" && options["server-snippet"] == "" // whose answers have HSTS here alone
	if w.believing {
		delete(options, "app-root") // which leads to where clients are here, and to where nginx is there
	}
	w.ingress(host, options, tls, rule{"/", networkingv1.PathTypePrefix})
	beside := func() {
		if i := w.ingress(host, w.draw(2, []string{"service-upstream", "true"}), false, rule{"/z", networkingv1.PathTypePrefix}); len(i.Annotations) > 0 {
			w.behindClusterIP(i.Spec.Rules[0].HTTP.Paths[0].Backend.Service)
		}
	}
	if options["server-snippet"] == "" {
		w.elsewhere(beside)
	} else { // which holds for those of its namespace, here
		beside()
	}
	w.ask(host, tls, []string{"/", "/a", "/a/?x=1", "/a%20b", "/z", "/z/y", "/z?status=404"}, []string{"X-Forwarded-Proto", "https", "http"}, []string{"X-Forwarded-Host", "away.example", "away.example:444, in.example"}, []string{"X-Srv", "1"})
}

func (w *ingressWorld) drawGuards(host string) {
	options := w.draw(4, []string{"auth-url", w.auth, w.auth + "?a=$request_uri"}, []string{"auth-signin", "https://login.example/in", "https://login.example/in?rd=$escaped_request_uri"}, []string{"auth-signin-redirect-param", "back"},
		[]string{"auth-response-headers", "X-Auth-User,X-Auth-Saw", "X-Auth-User"}, []string{"auth-method", "POST"}, []string{"auth-request-redirect", "http://away.example/"}, []string{"enable-cors", "true"},
		[]string{"auth-snippet", "proxy_set_header X-Original-Method $request_method;"},
		[]string{"auth-always-set-cookie", "true"}, []string{"auth-proxy-set-headers", "default/asked"}, []string{"auth-cache-key", w.auth + "$http_x_may$http_authorization", w.auth + "$http_authorization"}, []string{"auth-cache-duration", "200 1m, 401 1m", "200 202 401 5m"}, []string{"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"})
	if options["auth-url"] == "" {
		options["auth-url"] = w.auth
	}
	if w.flags.ValidateAnnotations { // which takes none that says whose answers it keeps
		delete(options, "auth-cache-key")
	}
	if options["auth-cache-key"] != "" { // an answer to another address does not count here
		options["auth-url"] = w.auth
	}
	if strings.Contains(w.options["server-snippet"], "return 405") { // what it refuses has these fields here alone
		delete(options, "enable-cors")
	}
	if w.seldom(4) {
		options = map[string]string{"auth-type": "basic", "auth-secret": "users", "auth-secret-type": "auth-file", "auth-realm": "here", "enable-global-auth": "false", "satisfy": pick(w.dice, "any", "all"), "whitelist-source-range": pick(w.dice, "127.0.0.0/8", "10.0.0.0/8")}
	}
	if options["auth-type"] != "" && w.seldom(2) {
		options["auth-secret"], options["auth-secret-type"] = "map", "auth-map"
	}
	w.ingress(host, options, false, rule{"/", networkingv1.PathTypePrefix}, rule{"/a", networkingv1.PathTypePrefix})
	w.elsewhere(func() { w.ingress(host, nil, false, rule{"/open", networkingv1.PathTypeExact}) })
	w.ask(host, false, []string{"/", "/a", "/a/b?x=1&y=2", "/open", "/open/", "/c%20d", "/a?f-Set-Cookie=k=v"}, []string{"X-May", "200", "204", "401", "403", "500"},
		[]string{"Authorization", "Basic dXNlcjpwdw==", "Basic bad", "Bearer x"}, []string{"X-Auth-User", "forged"}, []string{"Cookie", "a=b"}, []string{"Origin", "http://a.example"})
}
