package route

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

// configMaps is a second source: a ConfigMap whose data are "HOST/PATH" to one
// line of conditions and weighted Services. It shows that the rest of the
// package knows nothing of Ingresses.
type configMaps struct{}

func (configMaps) kind() string { return snapshot.ConfigMap.String() }

func (configMaps) changed(before, after *snapshot.Stores) iter.Seq[snapshot.Key] {
	return snapshot.Diff(before.ConfigMaps, after.ConfigMaps)
}

func (configMaps) compile(w *compiler, key snapshot.Key) *unit {
	cm, ok := w.c.ConfigMaps.Get(key)
	if !ok {
		return nil
	}
	u := &unit{ref: refTo(snapshot.ConfigMap, key), created: cm.CreationTimestamp.Time}
	for place, line := range cm.Data {
		host, path, _ := strings.Cut(place, "/")
		path, _, _ = strings.Cut(path, "#") // one key for each
		r := &Route{Terms: &Terms{Owner: u.ref}, Host: host, Path: "/" + path, Type: networkingv1.PathTypePrefix, Backend: -1, match: "/" + path}
		var when all
		for word := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(word, "=")
			switch {
			case name == "method":
				when = append(when, hasMethod(value))
			case strings.HasPrefix(name, "query:"):
				when = append(when, hasQuery{name[6:], value})
			case strings.HasPrefix(name, "match:"):
				when = append(when, headerMatches{name[6:], regexp.MustCompile(value)})
			case strings.HasPrefix(name, "header:"):
				when = append(when, hasHeader{name[7:], value})
			default:
				service := snapshot.Key{Namespace: key.Namespace, Name: name}
				u.dependsOn(refTo(snapshot.Service, service))
				backend, index := Backend{Service: service, Port: balance.PortRef{Number: 80}}, -1
				if _, ok := w.c.Services.Get(service); ok {
					index = w.acquire(backend)
					u.backends = append(u.backends, index)
				}
				var weight uint32
				fmt.Sscan(value, &weight)
				r.Split = append(r.Split, Weighted{index, weight})
			}
		}
		if len(when) > 0 {
			r.when = when
		}
		c := u.part(host)
		c.routes = append(c.routes, r)
	}
	return u
}

func twoSources(c *snapshot.Cluster, prev *Table) *Table {
	o := Options{}
	return compile(c, prev, o, append(sources(c, o), configMaps{}))
}

func serviceNamed(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func requestOf(method, url string, headers ...string) *exchange.Request {
	host, rest, _ := strings.Cut(url, "/")
	path, _, _ := strings.Cut("/"+rest, "?")
	r := &exchange.Request{Method: []byte(method), Host: []byte(host), Target: []byte("/" + rest), Path: []byte(path)}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// twoKinds are an Ingress and a younger ConfigMap over the same hosts.
func twoKinds() (*snapshot.Cluster, *corev1.ConfigMap) {
	class, prefix := ingressclass.DefaultName, networkingv1.PathTypePrefix
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "i", CreationTimestamp: metav1.NewTime(time.Unix(100, 0))}}
	ing.Spec.IngressClassName = &class
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: "a", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: backend}, {Path: "/api", PathType: &prefix, Backend: backend}},
	}}}}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "i", CreationTimestamp: metav1.NewTime(time.Unix(200, 0))},
		Data: map[string]string{
			"a/api":       "method=POST new=1",
			"a/api/v2":    "header:X-Version=2 query:beta=1 new=1",
			"a/match#1":   "match:X-Who=^jo new=1",
			"b/":          "new=3 web=1 gone=4",
			"a/api/taken": "new=1",
		},
	}
	return snapshot.Of(serviceNamed("web"), serviceNamed("new"), ing, cm), cm
}

// Two kinds of objects share hosts: conditions choose between them, and weights split.
func TestASecondSource(t *testing.T) {
	c, _ := twoKinds()
	table := twoSources(c, nil)
	for _, k := range []struct {
		request *exchange.Request
		want    string
	}{
		{requestOf("GET", "a/api"), "Ingress"},
		{requestOf("POST", "a/api/x"), "ConfigMap"},
		{requestOf("POST", "a/apix"), "Ingress"},
		{requestOf("GET", "a/api/v2?x=1&beta=1", "x-version", "2"), "ConfigMap"},
		{requestOf("GET", "a/api/v2?beta=1&x", "x-version", "3"), "Ingress"}, // falls to the rule above it
		{requestOf("GET", "a/api/v2?beta=2&beta=1", "x-version", "2"), "Ingress"},
		{requestOf("POST", "a/api/v2"), "ConfigMap"}, // of that one's condition
		{requestOf("GET", "a/match", "X-Who", "john"), "ConfigMap"},
		{requestOf("GET", "a/match", "X-Who", "ann"), "Ingress"},
		{requestOf("GET", "a/match"), "Ingress"},
	} {
		var r *Route
		if n := testing.AllocsPerRun(50, func() { r, _ = table.Match(k.request) }); n != 0 {
			t.Errorf("%s %s: %v allocations", k.request.Method, k.request.Target, n)
		}
		if r == nil || r.Owner.Kind != k.want {
			t.Errorf("%s %s: got %+v, want the route of the %s", k.request.Method, k.request.Target, r, k.want)
		}
	}
	r, _ := table.Match(requestOf("GET", "b/"))
	count := map[string]int{}
	for i := range uint64(80) {
		if b := r.Lead(i); b < 0 {
			count["nowhere"]++
		} else {
			count[table.Backends[b].Service.Name]++
		}
	}
	if count["new"] != 30 || count["web"] != 10 || count["nowhere"] != 40 {
		t.Errorf("80 requests went to %v, want 30, 10 and 40", count)
	}
	if (&Route{Split: []Weighted{{Backend: 1}}}).Lead(7) != -1 {
		t.Error("a weight of nothing was served")
	}
}

// Changes of either kind are followed, and ages decide between them.
func TestChangesOfASecondSource(t *testing.T) {
	c, cm := twoKinds()
	table := twoSources(c, nil)
	gone := twoSources(c.Without(snapshot.Ingress, snapshot.Key{Namespace: "n", Name: "i"}), table)
	if r, _ := gone.Match(requestOf("GET", "a/api")); r != nil {
		t.Errorf("the Ingress is gone, but not its route: %+v", r)
	}
	if r, _ := gone.Match(requestOf("POST", "a/api")); r == nil || r.Owner.Kind != "ConfigMap" {
		t.Errorf("an Ingress of the same name took the ConfigMap's route with it: %+v", r)
	}
	more := twoSources(c.With(serviceNamed("gone")), table)
	if r, _ := more.Match(requestOf("GET", "b/")); r.Lead(79) < 0 {
		t.Error("a Service that the second source names came, and was not seen")
	}

	older := cm.DeepCopy()
	older.CreationTimestamp = metav1.NewTime(time.Unix(50, 0))
	older.Data["a/api"] = "new=1"
	turned := twoSources(c.With(older), table)
	if r, _ := turned.Match(requestOf("GET", "a/api")); r.Owner.Kind != "ConfigMap" {
		t.Error("the older object does not have the path")
	}
	want := "path a/api (Prefix) is taken by ConfigMap n/i, which comes first by age and name; rename one or remove it"
	if len(turned.Problems) != 1 || turned.Problems[0].Message != want || turned.Problems[0].Object.Kind != "Ingress" {
		t.Errorf("problems %v, want one on the Ingress: %s", turned.Problems, want)
	}
}

func TestNamesOfKinds(t *testing.T) {
	for k := range snapshot.Kinds() {
		if nameOf(k) != k.String() {
			t.Errorf("%s is called %s", k, nameOf(k))
		}
	}
}
