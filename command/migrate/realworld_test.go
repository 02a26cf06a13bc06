package migrate

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// TestRealWorldIsServed: sixty Ingresses as they are around public charts, served
// as they are through the adopted class. What becomes of each is a line of the
// plan, with what is told of it; a route is closed only where the plan says why.
func TestRealWorldIsServed(t *testing.T) {
	data, err := os.ReadFile("testdata/realworld.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded := manifest.Decode("in", data)
	if len(decoded.Errors) > 0 {
		t.Fatal(decoded.Errors)
	}
	var objects []snapshot.Object
	services := map[snapshot.Key]*corev1.Service{}
	var all []*networkingv1.Ingress
	for _, o := range decoded.Objects {
		ing, ok := o.(*networkingv1.Ingress)
		if !ok {
			t.Fatalf("%T is no Ingress", o)
		}
		all = append(all, ing)
		objects = append(objects, ing)
		backends(ing, func(b *networkingv1.IngressServiceBackend) { have(services, ing.Namespace, b.Name, b.Port) })
		if page := ing.Annotations[route.NginxPrefix+"default-backend"]; page != "" {
			have(services, ing.Namespace, page, networkingv1.ServiceBackendPort{Number: 80})
		}
		objects = append(objects, secrets(ing)...)
	}
	if len(all) < 60 {
		t.Errorf("%d Ingresses", len(all))
	}
	for _, s := range services {
		objects = append(objects, s)
	}
	table := route.Compile(snapshot.Of(objects...), nil, route.Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}})
	var plan bytes.Buffer
	for r := range table.Routes() {
		if r.NoRule {
			continue
		}
		fmt.Fprintf(&plan, "%s%s %s -> %s", r.Host, r.Path, r.Type, r.Service)
		for _, note := range []struct {
			on   bool
			text string
		}{{r.RedirectTLS, "https"}, {r.HSTS != "", "hsts"}, {r.Closed != "", "closed: " + r.Closed}} {
			if note.on {
				fmt.Fprintf(&plan, ", %s", note.text)
			}
		}
		fmt.Fprintln(&plan)
	}
	fmt.Fprintln(&plan)
	for _, p := range table.Problems {
		if p.Reason != route.MissingSecret { // of certificates, which are not part of this
			fmt.Fprintln(&plan, p)
		}
	}
	const golden = "testdata/realworld.plan.txt"
	if *update {
		if err := os.WriteFile(golden, plan.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, plan.Bytes()) {
		t.Errorf("wanted\n%s\ngot\n%s", want, plan.Bytes())
	}
	for _, ing := range all {
		reached(t, table, ing)
	}
}

// reached fails unless a request for each path of ing meets a route of its own, or
// of the Ingress whose canary it is.
func reached(t *testing.T, table *route.Table, ing *networkingv1.Ingress) {
	t.Helper()
	canary := ing.Annotations[route.NginxPrefix+"canary"] == "true"
	for _, rule := range ing.Spec.Rules {
		host := strings.Replace(rule.Host, "*", "any", 1)
		for _, p := range rule.HTTP.Paths {
			path := strings.NewReplacer("(/|$)(.*)", "/x", "(.*)", "x").Replace(p.Path)
			var ex exchange.Exchange
			ex.Request.Host, ex.Request.Target, ex.Request.Path, ex.Request.Method = []byte(host), []byte(path), []byte(path), []byte("GET")
			ex.Request.Header.Add("X-Next", map[bool]string{true: "always", false: "never"}[canary])
			if r, _ := table.Match(&ex.Request); r == nil || r.Owner.Key != snapshot.KeyOf(ing) {
				t.Errorf("%s%s is not answered by %s but by %+v", host, path, snapshot.KeyOf(ing), r)
			}
		}
	}
}

func backends(ing *networkingv1.Ingress, each func(*networkingv1.IngressServiceBackend)) {
	if d := ing.Spec.DefaultBackend; d != nil {
		each(d.Service)
	}
	for _, rule := range ing.Spec.Rules {
		for _, p := range rule.HTTP.Paths {
			each(p.Backend.Service)
		}
	}
}

// have makes sure of a Service with that port.
func have(services map[snapshot.Key]*corev1.Service, namespace, name string, port networkingv1.ServiceBackendPort) {
	key := snapshot.Key{Namespace: namespace, Name: name}
	s := services[key]
	if s == nil {
		s = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		services[key] = s
	}
	number := port.Number
	if number == 0 {
		number = 1000 + int32(len(s.Spec.Ports))
	}
	if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port.Number || port.Name != "" && p.Name == port.Name
	}) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: number})
	}
}

// secrets are those that the options of an Ingress name, with a user.
func secrets(ing *networkingv1.Ingress) []snapshot.Object {
	const hash = "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="
	var all []snapshot.Object
	for _, key := range []string{"auth-secret", "proxy-ssl-secret"} {
		if name := ing.Annotations[route.NginxPrefix+key]; name != "" {
			data := map[string][]byte{"auth": []byte("ann:" + hash + "\n")}
			if ing.Annotations[route.NginxPrefix+"auth-secret-type"] == "auth-map" {
				data = map[string][]byte{"ann": []byte(hash)}
			}
			all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ing.Namespace, Name: strings.TrimPrefix(name, ing.Namespace+"/")}, Data: data})
		}
	}
	return all
}
