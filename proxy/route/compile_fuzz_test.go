package route

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// hostileValues are what fooled ingress controllers that wrote values into a
// configuration, and what exhausts those that do not.
func hostileValues() []string {
	return []string{
		"x\ny", "x\r\nSet-Cookie: a=b", "\"; deny all; #", "'", "\x00", "$http_x", "${host}", "`id`", "{{ .Secrets }}", "../../etc/passwd", "/../..", "%2e%2e/",
		"kube-system/users", "n/users", "//evil.example", "javascript:alert(1)", "http://[::1]:8080", "caf\xc3\xa9", "\xff\xfe", "\u202e", strings.Repeat("a", 1<<16),
		"(a+)+$", "(?!x)", "((((((((((a{100}){100}))))))))", "[", `\`, ".*", "/.*", "/(.*)", "true", "false", "basic", "any", "0.0.0.0/0", "::/0", "10.0.0.0/8", "0", "-1", "1",
		"99999999999999999999", "100", "cookie", "*", "https://*", "https://*.com", "always", "users", "/$1", "/$9$0", "301", "1g", "ewma",
	}
}

func fuzzIngress(namespace, host string, annotations map[string]string, paths ...string) *networkingv1.Ingress {
	class, any := ingressclass.DefaultName, networkingv1.PathTypeImplementationSpecific
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "i-" + strings.Trim(host, "*."), Annotations: annotations}}
	ing.Spec.IngressClassName = &class
	rule := networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{}}}
	for _, p := range paths {
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{Path: p, PathType: &any, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}})
	}
	ing.Spec.Rules = append(ing.Spec.Rules, rule)
	return ing
}

// longestFuzzed bounds what an input costs: longer ones meet the same code for longer.
const longestFuzzed = 4 << 10

// FuzzCompile puts any value under any key of an Ingress that has a guard beside it.
// Each key and each value is a seed once; all of their pairs are a test's. A seed costs
// some 20 ms before the first input is made up, since the counters of a whole client of
// Kubernetes are carried about with each.
func FuzzCompile(f *testing.F) {
	options, values := optionTable(), hostileValues()
	for i := range max(len(options), len(values)) {
		if value := values[i%len(values)]; len(value) <= longestFuzzed {
			f.Add(options[i%len(options)].key, value)
		}
	}
	n := newNeighbours()
	f.Fuzz(func(t *testing.T, key, value string) {
		if len(key)+len(value) <= longestFuzzed {
			n.stand(t, key, value)
		}
	})
}

// What FuzzCompile begins with, under each key.
func TestHostileValues(t *testing.T) {
	n := newNeighbours()
	for _, o := range optionTable() {
		t.Run(o.key, func(t *testing.T) {
			for _, value := range hostileValues() {
				n.stand(t, o.key, value)
			}
		})
	}
}

// neighbours are Ingresses beside which somebody writes a hostile one.
type neighbours struct {
	objects *snapshot.Cluster
	table   *Table // without the hostile one
	routes  string // what that has for them
	tools   filter.Tools
}

func newNeighbours() *neighbours {
	web := func(namespace string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "users"}, Data: map[string][]byte{"auth": []byte("ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=")}}
	n := &neighbours{tools: filter.NewTools(maphash.MakeSeed())}
	n.objects = snapshot.Of(web("n"), web("evil"), users,
		fuzzIngress("n", "shop.test", nil, "/", "/cart"),
		fuzzIngress("n", "*.test", nil, "/"),
		fuzzIngress("n", "", nil, "/x"),
		fuzzIngress("n", "staff.test", map[string]string{NginxPrefix + "auth-type": "basic", NginxPrefix + "auth-secret": "users"}, "/"))
	n.table = Compile(n.objects, nil, Options{})
	n.routes = routesOf(n.table, "n")
	return n
}

// stand puts a value under a key of the hostile Ingress. The routes of others stay what
// they are, its own stay guarded, and what the filters answer is HTTP.
func (n *neighbours) stand(t *testing.T, key, value string) {
	t.Helper()
	guard := NginxPrefix + "whitelist-source-range"
	given := map[string]string{guard: "10.0.0.0/8", OwnPrefix + key: value}
	c := n.objects.With(fuzzIngress("evil", "evil.example", given, "/", "/a/(.*)"))
	table := Compile(c, n.table, Options{})
	if got := routesOf(table, "n"); got != n.routes {
		t.Fatalf("%s: %q changed the routes of others from\n%s to\n%s", key, value, n.routes, got)
	}
	for _, p := range table.Problems {
		if p.Object.Namespace == "n" {
			t.Fatalf("%s: %q is told to others: %s", key, value, p)
		}
	}
	for r := range table.Routes() {
		if r.Owner.Namespace == "evil" && r.Host == "evil.example" && !r.guards() {
			t.Fatalf("%s: %q opens %s%s", key, value, r.Host, r.Path)
		}
		if r.Owner.Namespace == "evil" && r.Filters != nil && r.Filters.Basic != nil {
			t.Fatalf("%s: %q reads a Secret of another namespace", key, value)
		}
	}
	for _, target := range []string{"/", "/a/b%2Fc", "/%2f", "/a;x"} {
		ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("evil.example"), Target: []byte(target), Length: -1}}
		ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:1")
		ex.Request.Path, _ = Normalize(nil, []byte(target))
		r, _ := table.Match(&ex.Request)
		if r == nil {
			continue
		}
		chain := filter.Compile(r.Filters, filter.Host{}, n.tools)
		passed := r.Closed == "" && chain.Request(ex)
		chain.Response(ex)
		chain.Finished(ex)
		if passed && key != "allowlist-source-range" && key != "whitelist-source-range" && key != "satisfy" {
			t.Fatalf("%s: %q lets a stranger pass to %s", key, value, target)
		}
		for _, field := range append(ex.Response.Header.Fields(), ex.Request.Header.Fields()...) {
			if bytes.ContainsAny(field.Value, "\r\n\x00") || bytes.ContainsAny(field.Name, "\r\n\x00: ") {
				t.Fatalf("%s: %q makes the field %q: %q", key, value, field.Name, field.Value)
			}
		}
	}
	if after := Compile(n.objects, table, Options{}); routesOf(after, "") != routesOf(n.table, "") {
		t.Fatalf("%s: %q leaves something behind", key, value)
	}
}

// routesOf tells the routes of a namespace, or all.
func routesOf(t *Table, namespace string) string {
	var b strings.Builder
	for r := range t.Routes() {
		if namespace == "" || r.Owner.Namespace == namespace {
			fmt.Fprintln(&b, r.Owner, r.Host, r.Path, r.Type, r.Service, r.Closed, r.RedirectTLS, r.guards(), r.Filters != nil, r.conditional())
		}
	}
	return b.String()
}
