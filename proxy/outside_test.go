package proxy_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/proxy"
	"quayside.io/test/dns"
)

func external(name, to string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: to, Ports: ports},
	}
}

// Names outside are looked up, followed when they change, and never lead to where
// nobody may be sent, also if they did lead elsewhere before.
func TestExternalName(t *testing.T) {
	server := dns.Start(t)
	files, p := start(t, func(o *proxy.Options) {
		o.DialDNS = server.Dial
		o.Refuse = []netip.Addr{netip.MustParseAddr("127.0.0.77")}
	})
	addr := bound(p, false)
	one := echo(t, "one")
	port := netip.MustParseAddrPort(one).Port()
	at := networkingv1.ServiceBackendPort{Number: int32(port)}
	server.Set("good.test.", 1, "127.0.0.1")
	server.Set("many.test.", 1, "127.0.0.9", "127.0.0.1") // nobody listens on the first
	for name, to := range map[string]string{
		"metadata": "169.254.169.254", "disguised": "64:ff9b::a9fe:a9fe", "node": "127.0.0.50", "api": "127.0.0.60", "started": "127.0.0.77",
		"multicast": "224.0.0.1", "unspecified": "0.0.0.0",
	} {
		server.Set(name+".test.", 1, to)
		files.Put(external(name, name+".test"), ingress(name, name+".test", "/", name, at))
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.50"}}}}
	api := service("kubernetes", corev1.ServicePort{Port: 443})
	api.Spec.ClusterIP = "127.0.0.60"
	files.Put(node, api,
		external("good", "Good.Test."), ingress("good", "good.test", "/", "good", at),
		external("many", "many.test"), ingress("many", "many.test", "/", "many", at),
		external("literal", "127.0.0.1"), ingress("literal", "literal.test", "/", "literal", at),
		external("local", "localhost"), ingress("local", "local.test", "/", "local", at),
		external("odd", "a..b"), ingress("odd", "odd.test", "/", "odd", at),
		external("named", "good.test", corev1.ServicePort{Name: "http", Port: int32(port)}),
		ingress("named", "named.test", "/", "named", networkingv1.ServiceBackendPort{Name: "http"}),
		ingress("nameless", "nameless.test", "/", "named", networkingv1.ServiceBackendPort{Name: "other"}),
		external("gone", "gone.test"), ingress("gone", "gone.test", "/", "gone", at))
	page := annotated("page", "page.test", map[string]string{"default-backend": "named", "service": "empty"})
	barred := annotated("barred", "barred.test", map[string]string{"default-backend": "refused", "service": "empty"})
	files.Put(service("empty", corev1.ServicePort{Port: 80}), page, external("refused", "169.254.169.254", corev1.ServicePort{Port: 80}), barred)
	said := func(host string, code int, says string) {
		t.Helper()
		what := fmt.Sprintf("%s answers %d %q", host, code, says)
		eventually(t, what, func() bool {
			got, body := get(t, addr, host, "/")
			return got == code && strings.Contains(body, says)
		})
	}
	for says, hosts := range map[string][]string{
		"200 host=good.test ":        {"good.test"}, // the Host of the request, not the name
		"200 one uri=/":              {"many.test", "named.test", "literal.test", "page.test"},
		"503 has no endpoint":        {"barred.test"}, // as page.test, which stands in for a Service without any
		"503 no port other":          {"nameless.test"},
		"503 has no address in DNS":  {"gone.test"},
		"503 it is the proxy itself": {"local.test"},
		"503 is not a DNS name":      {"odd.test"},
		"503 are refused":            {"metadata.test", "disguised.test", "node.test", "api.test", "started.test", "multicast.test", "unspecified.test"},
	} {
		for _, host := range hosts {
			code, text, _ := strings.Cut(says, " ")
			n, _ := strconv.Atoi(code)
			said(host, n, text)
		}
	}
	tellsRefusals(t, p)

	server.Set("good.test.", 1, "169.254.169.254")
	said("good.test", 503, "are refused")
	server.Set("good.test.", 1, "127.0.0.1")
	said("good.test", 200, "")
	server.Fail("good.test.")
	asked := server.Asked("good.test.")
	eventually(t, "DNS is asked in vain", func() bool { return server.Asked("good.test.") > asked+2 })
	said("good.test", 200, "") // what was known last counts
	server.Set("gone.test.", 1, "127.0.0.1")
	said("gone.test", 200, "")

	// An address that becomes a node's is refused from then on.
	second := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}}}
	files.Put(second)
	said("literal.test", 503, "are refused")
	said("gone.test", 503, "are refused")
}

// tellsRefusals looks for what is said of endpoints that are refused, and why.
func tellsRefusals(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	var refused []string
	for _, problem := range p.Problems() {
		if problem.Reason == "EndpointRefused" {
			refused = append(refused, problem.Object.Name+": "+problem.Message)
		}
	}
	for _, want := range []string{"node: endpoint 127.0.0.50 of node.test: addresses of nodes are refused", "api: endpoint 127.0.0.60 of api.test: the address of the API server is refused",
		"metadata: endpoint 169.254.169.254 of metadata.test: link-local"} {
		if !strings.Contains(strings.Join(refused, "\n"), want) {
			t.Errorf("%q is not told: %q", want, refused)
		}
	}
}
