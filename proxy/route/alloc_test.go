package route_test

import (
	"cmp"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

func plainIngress(name, host, service string, paths ...string) *networkingv1.Ingress {
	class, prefix := ingressclass.DefaultName, networkingv1.PathTypePrefix
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	ing.Spec.IngressClassName = &class
	rule := networkingv1.IngressRule{Host: host}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
	for _, p := range paths {
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{Path: p, PathType: &prefix, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}})
	}
	ing.Spec.Rules = append(ing.Spec.Rules, rule)
	return ing
}

func plainService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	tls := plainIngress("i", "www.example.com", "s", "/", "/a/b")
	tls.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"www.example.com"}, SecretName: "www"}}
	guarded := plainIngress("g", "guarded.example.com", "s", "/a%2fadmin", "/b/admin")
	guarded.Annotations = map[string]string{route.OwnPrefix + "auth-url": "http://auth"}
	c := snapshot.Of(plainService("s"), tls, guarded, plainIngress("j", "*.example.com", "s", "/"), plainIngress("k", "", "s", "/hostless"),
		certificate.Secret(t, "n/www", now.AddDate(0, 1, 0), "www.example.com"))
	table := route.Compile(c, nil, route.Options{})
	var scratch [256]byte
	for _, ask := range []struct{ host, target, want string }{
		{"www.example.com", "/a/b/c", "www.example.com"},
		{"WWW.EXAMPLE.COM.:8443", "/a/%62/../x?y", "www.example.com"},
		{"other.example.com", "//x", "*.example.com"},
		{"[2001:db8::1]:80", "/hostless/%2F/x", ""},
		{"guarded.example.com", "/a%2Fadmin;x/y", "guarded.example.com"},
		{"guarded.example.com", "/b/admin%5Cy", "guarded.example.com"},
	} {
		host, target := []byte(ask.host), []byte(ask.target)
		var r *route.Route
		var request exchange.Request // pooled by who serves
		if n := testing.AllocsPerRun(100, func() {
			path, _ := route.Normalize(scratch[:0], target)
			request.Host, request.Path = host, path
			found, guard := table.Match(&request)
			r = cmp.Or(guard, found)
		}); n != 0 {
			t.Errorf("%s%s: %v allocations", ask.host, ask.target, n)
		}
		if r == nil || r.Host != ask.want {
			t.Errorf("%s%s: got %+v, want the rule of host %q", ask.host, ask.target, r, ask.want)
		}
	}
	for _, name := range []string{"WWW.example.com", "x.example.com", ""} {
		if n := testing.AllocsPerRun(100, func() { table.Certificate(name) }); n != 0 {
			t.Errorf("Certificate(%q): %v allocations", name, n)
		}
	}
	if cert := table.Certificate("WWW.example.com"); cert == nil {
		t.Error("no certificate for a host that has one")
	}
}

// TestUntouchedHostsKeepTheirRoutes shows that one change compiles only what it
// touches, and that a backend keeps its index.
func TestUntouchedHostsKeepTheirRoutes(t *testing.T) {
	c := snapshot.Of(plainService("s"), plainService("t"))
	for i := range 50 {
		c = c.With(plainIngress(fmt.Sprint("i", i), fmt.Sprintf("h%d.example.com", i), "s", "/"))
	}
	before := route.Compile(c, nil, route.Options{})
	c = c.With(plainIngress("i7", "h7.example.com", "t", "/"), plainIngress("new", "h8.example.com", "t", "/t"))
	after := route.Compile(c, before, route.Options{})
	for i := range 50 {
		host := fmt.Appendf(nil, "h%d.example.com", i)
		a, b := match(before, string(host), "/"), match(after, string(host), "/")
		switch {
		case i == 7 && (b == a || after.Backends[b.Backend].Service.Name != "t"):
			t.Errorf("h7 leads to %s still", b.Service)
		case i != 7 && a != b:
			t.Errorf("the route of h%d is another, though nothing about it changed", i)
		}
	}
	if same := route.Compile(c, after, route.Options{}); same.Version != after.Version || after.Version == before.Version {
		t.Errorf("versions %d, %d, %d: want a new one for a change only", before.Version, after.Version, same.Version)
	}
	ing, svc := plainIngress("i1", "h1.example.com", "s", "/"), plainService("s")
	ing.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.7"}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.7"}}
	if told := route.Compile(c.With(ing, svc), after, route.Options{}); told.Version != after.Version {
		t.Error("a status is no reason for new routes")
	}
	wrong := plainIngress("i1", "h1.example.com", "s", "/")
	wrong.Annotations = map[string]string{route.ProblemsAnnotation: "MissingSecret: there is no Secret n/tls"}
	if told := route.Compile(c.With(wrong), after, route.Options{}); told.Version != after.Version || match(told, "h1.example.com", "/") != match(after, "h1.example.com", "/") || len(told.Problems) > 0 {
		t.Errorf("what the controller writes on an Ingress is read as something that it asks for: %v", told.Problems)
	}
	if told := route.Compile(c.With(wrong), nil, route.Options{}); len(told.Problems) > 0 {
		t.Errorf("what the controller writes on an Ingress is taken for an option: %v", told.Problems)
	}
	c = c.Without(snapshot.Ingress, snapshot.Key{Namespace: "n", Name: "new"})
	c = c.Without(snapshot.Ingress, snapshot.Key{Namespace: "n", Name: "i7"})
	last := route.Compile(c, after, route.Options{})
	if got := last.Backends; len(got) != 2 || got[0].Service.Name != "s" || got[1] != (route.Backend{}) {
		t.Errorf("Backends = %v, want s and a free entry", got)
	}
}

// TestBackendsDoNotPileUp lets a thousand Services come and go.
func TestBackendsDoNotPileUp(t *testing.T) {
	var table *route.Table
	for i := range 1000 {
		name := fmt.Sprint("s", i)
		table = route.Compile(snapshot.Of(plainService(name), plainIngress("i", "a.example.com", name, "/")), table, route.Options{})
		r := match(table, "a.example.com", "/")
		if table.Backends[r.Backend].Service.Name != name {
			t.Fatalf("step %d leads to %v", i, table.Backends[r.Backend])
		}
	}
	if len(table.Backends) > 200 {
		t.Errorf("%d backends are listed, one is in use", len(table.Backends))
	}
}

// TestCompileAllocatesLittle bounds what an Ingress with five annotations and three
// paths costs: from nothing 7 KB, and where it alone has changed, no more for the
// thousand beside it.
func TestCompileAllocatesLittle(t *testing.T) {
	const n = 1000
	annotated := func(i int, size string) *networkingv1.Ingress {
		ing := plainIngress(fmt.Sprint("i", i), fmt.Sprintf("h%d.example.com", i), fmt.Sprint("s", i), "/", "/api/v1", "/static")
		ing.Annotations = map[string]string{
			route.NginxPrefix + "proxy-body-size":        size,
			route.NginxPrefix + "enable-cors":            "true",
			route.NginxPrefix + "cors-allow-origin":      "https://*.example.com",
			route.NginxPrefix + "whitelist-source-range": "10.0.0.0/8,192.0.2.0/24",
			route.NginxPrefix + "limit-rps":              "50",
		}
		return ing
	}
	c := snapshot.Of()
	for i := range n {
		c = c.With(annotated(i, "8m"), plainService(fmt.Sprint("s", i)))
	}
	var table *route.Table
	if got := allocated(func() { table = route.Compile(c, nil, route.Options{}) }) / n; got > 10_000 {
		t.Errorf("compiling from nothing takes %d bytes for each Ingress", got)
	}
	if len(table.Problems) > 0 {
		t.Fatal(table.Problems[0])
	}
	c = c.With(annotated(7, "9m"))
	if got := allocated(func() { table = route.Compile(c, table, route.Options{}) }); got > 200_000 {
		t.Errorf("compiling one Ingress of %d again takes %d bytes", n, got)
	}
}

// allocated returns how many bytes f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
