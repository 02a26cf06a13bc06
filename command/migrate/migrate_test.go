package migrate

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

var update = flag.Bool("update", false, "write the outcomes into the files")

// What people have beside what they get. All of it is read by the house.
func TestWhatPeopleHave(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(in), ".in.yaml"), func(t *testing.T) {
			got := migrated(t, in)
			d := manifest.Decode("out", got)
			d.Notes = slices.DeleteFunc(d.Notes, func(p snapshot.Problem) bool { // which is the network's to read
				return strings.Contains(p.Message, "networking.k8s.io/v1 NetworkPolicy")
			})
			if len(d.Errors)+len(d.Notes) > 0 {
				t.Errorf("the outcome is not ours: %v %v", d.Errors, d.Notes)
			}
			golden := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("wanted\n%s\ngot\n%s", want, got)
			}
		})
	}
}

func migrated(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m Migration
	if err := m.Read(file, data); err != nil {
		t.Fatal(err)
	}
	return printed(t, m.Result())
}

// printed is r as YAML, in which kubectl finds the objects of r and no other.
func printed(t *testing.T, r Result) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	decoder := yamlstream.NewYAMLOrJSONDecoder(bytes.NewReader(out.Bytes()), 4096)
	for n := 0; ; n++ {
		var o Object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF) && n == len(r.Objects):
			return out.Bytes()
		case errors.Is(err, io.EOF):
			t.Fatalf("kubectl finds %d objects, want %d in\n%s", n, len(r.Objects), out.Bytes())
		case err != nil:
			t.Fatalf("%v in\n%s", err, out.Bytes())
		case o.Kind == "": // comments alone
			n--
		case n >= len(r.Objects) || o.Kind != r.Objects[n].Kind || !maps.Equal(o.Metadata.Annotations, r.Objects[n].Metadata.Annotations):
			t.Fatalf("kubectl finds %+v as object %d in\n%s", o, n+1, out.Bytes())
		}
	}
}

// Files have Ingresses of versions that no API server has any more.
func TestIngressesOfOldVersions(t *testing.T) {
	exact := networkingv1.PathTypeExact
	unsaid := networkingv1.PathTypeImplementationSpecific
	to := func(port networkingv1.ServiceBackendPort) networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: port}}
	}
	want := []networkingv1.HTTPIngressPath{
		{Path: "/a", PathType: &unsaid, Backend: to(networkingv1.ServiceBackendPort{Name: "http"})},
		{Path: "/b", PathType: &exact, Backend: to(networkingv1.ServiceBackendPort{Number: 80})},
	}
	for _, version := range []string{"extensions/v1beta1", "networking.k8s.io/v1beta1"} {
		var m Migration
		if err := m.Read("old.yaml", []byte("apiVersion: "+version+`
kind: Ingress
metadata: {namespace: shop, name: site, annotations: {kubernetes.io/ingress.class: nginx}}
spec:
  colour: blue
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /a, backend: {serviceName: web, servicePort: http}}
      - {path: /b, pathType: Exact, backend: {serviceName: web, servicePort: 80}}
`)); err != nil {
			t.Fatal(err)
		}
		out := printed(t, m.Result())
		d := manifest.Decode("out", out)
		if len(d.Errors)+len(d.Notes) > 0 || len(d.Objects) != 1 {
			t.Fatalf("%s comes to %d objects, %v %v:\n%s", version, len(d.Objects), d.Errors, d.Notes, out)
		}
		ing := d.Objects[0].(*networkingv1.Ingress)
		if got := ing.Spec.Rules[0].HTTP.Paths; !cmp.Equal(got, want) || ingressclass.NameOf(ing) != ingressclass.DefaultName {
			t.Errorf("%s comes to class %q and\n%s", version, ingressclass.NameOf(ing), cmp.Diff(want, got))
		}
		if !bytes.Contains(out, []byte("# spec.colour has no equivalent here")) {
			t.Errorf("%s: no word about spec.colour in\n%s", version, out)
		}
	}
}

// An ingress-nginx with --watch-ingress-without-class serves those, too. What their note
// says to do does it.
func TestIngressesWithoutClass(t *testing.T) {
	const text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop, name: site}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}"
	for _, c := range []struct {
		classes map[string]string
		objects int
		says    string
	}{
		{nil, 0, "Ingress shop/site names no class: left alone; --ingress-class =quayside takes it over, too"},
		{map[string]string{"nginx": "quayside"}, 0, "names no class"},
		{map[string]string{"": "inner"}, 1, ""},
	} {
		m := Migration{Classes: c.classes}
		if err := m.Read("file.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
		r := m.Result()
		if notes := strings.Join(r.AllNotes(), "\n"); len(r.Objects) != c.objects || !strings.Contains(notes, c.says) {
			t.Errorf("classes %v: %d objects, want %d, and %q in\n%s", c.classes, len(r.Objects), c.objects, c.says, notes)
		}
		for _, o := range r.Objects {
			if class := o.Spec.(networkingv1.IngressSpec).IngressClassName; class == nil || *class != "inner" {
				t.Errorf("classes %v: it comes to class %v", c.classes, class)
			}
		}
	}
}

// Whoever asks for one half hears nothing of the other, and a note names its
// object in full: the same name may stand in many namespaces.
func TestOnlyOneHalf(t *testing.T) {
	for only, c := range map[string]struct{ says, silent []string }{
		Addresses: {[]string{"BGPPeer tor: ", "Weather"}, []string{"Ingress", "class"}},
		Ingresses: {[]string{"Ingress shop/shop: UnknownAnnotation"}, []string{"BGPPeer", "Weather", "IPAddressPool"}},
		"":        {[]string{"BGPPeer tor: ", "Ingress shop/shop: UnknownAnnotation"}, nil},
	} {
		m := Migration{Only: only}
		for _, file := range []string{"testdata/metallb.in.yaml", "testdata/ingress.in.yaml"} {
			data, err := os.ReadFile(file)
			if err == nil {
				err = m.Read(file, data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r := m.Result()
		for _, o := range r.Objects {
			if only != "" && (o.Kind == "Ingress") != (only == Ingresses) {
				t.Errorf("only %s: prints %s %s", only, o.Kind, o.Metadata.Name)
			}
		}
		notes := strings.Join(r.AllNotes(), "\n")
		for _, want := range c.says {
			if !strings.Contains(notes, want) {
				t.Errorf("only %q: no note has %q:\n%s", only, want, notes)
			}
		}
		for _, other := range c.silent {
			if strings.Contains(notes, other) {
				t.Errorf("only %q: a note has %q:\n%s", only, other, notes)
			}
		}
	}
}

// What the notes say of a change of class is what the proxy does.
func TestAClassOfOurOwnHasOtherWays(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	nginx := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}}
	to := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	for class, theirs := range map[string]bool{"nginx": true, ingressclass.DefaultName: false} {
		site := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site"}, Spec: networkingv1.IngressSpec{
			IngressClassName: &class, DefaultBackend: &to, Rules: []networkingv1.IngressRule{{Host: "shop.example.com"}},
		}}
		table := route.Compile(snapshot.Of(web, nginx, site), nil, route.Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}})
		r := match(table, "shop.example.com")
		if r == nil || table.Backends[r.Backend].AnyNode != theirs {
			t.Errorf("class %s: a Service with externalTrafficPolicy Local is reached by %+v", class, table.Backends)
		}
		if unknown := match(table, "elsewhere.example.com"); (unknown == nil) != theirs {
			t.Errorf("class %s: a host that no Ingress names leads to %+v", class, unknown)
		}
	}
}

// An Ingress may have a key under both prefixes, as one that is tried out here has: ours
// wins each time, as in the proxy.
func TestOursWinsOverTheirs(t *testing.T) {
	for range 50 { // a map has no order
		var m Migration
		if err := m.Read("both.yaml", []byte(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: both
  annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 1m, ingress.quayside.io/proxy-body-size: 8m}
spec: {ingressClassName: nginx, defaultBackend: {service: {name: web, port: {number: 80}}}}
`)); err != nil {
			t.Fatal(err)
		}
		if got := m.Result().Objects[0].Metadata.Annotations[route.OwnPrefix+"proxy-body-size"]; got != "8m" {
			t.Fatalf("proxy-body-size %s, want 8m", got)
		}
	}
}

// The chart's fixtures of every MetalLB object lose nothing on the way.
func TestEveryMetalLBObjectCarriesOver(t *testing.T) {
	files, err := filepath.Glob("../../test/chart/testdata/metallb/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for _, file := range files {
		if out := migrated(t, file); bytes.Contains(out, []byte("no equivalent")) {
			t.Errorf("%s:\n%s", file, out)
		}
	}
}

// One bad document is named and takes nothing else with it.
func TestBadDocuments(t *testing.T) {
	var m Migration
	err := m.Read("mixed.yaml", []byte(`
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: good}
spec: {addresses: [10.0.0.0/28]}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: bad}
spec: {addresses: 10.0.0.0/28}
---
{kind: IPAddressPool}
---
apiVersion: metallb.io/v1beta1
kind: AddressPool
metadata: {name: odd}
spec: {protocol: carrier-pigeon}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: m}
data: {config: "{address-pools: [{name: '--', protocol: layer2}, {name: fine, protocol: layer2, addresses: [10.0.1.0/28]}]}"}
`))
	for _, want := range []string{`v1 ConfigMap m/config: config: pool --: name "--": `, "mixed.yaml: document 2: metallb.io/v1beta1 IPAddressPool bad: spec:", "document 3: apiVersion and kind are required", `document 4: metallb.io/v1beta1 AddressPool odd: protocol "carrier-pigeon": want layer2 or bgp`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error\n%v\nlacks %q", err, want)
		}
	}
	if got := m.names("IPAddressPool"); !slices.Equal(got, []string{"fine", "good"}) {
		t.Errorf("pools %q, want those of the good documents and entries", got)
	}
}

// TestEmptyPoolsAreLeftOut: a pool without addresses is none, whichever way it is
// written.
func TestEmptyPoolsAreLeftOut(t *testing.T) {
	var m Migration
	if err := m.Read("empty.yaml", []byte(`
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: today}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: listless}
spec: {addresses: []}
---
apiVersion: metallb.io/v1beta1
kind: AddressPool
metadata: {name: older}
spec: {protocol: layer2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: m}
data: {config: "{address-pools: [{name: oldest, protocol: bgp}]}"}
`)); err != nil {
		t.Fatal(err)
	}
	r := m.Result()
	if len(r.Objects) > 0 {
		t.Errorf("objects came of pools without addresses: %+v", r.Objects)
	}
	for _, name := range []string{"today", "listless", "older", "pool oldest"} {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, name+" is left out: it has no addresses") }) {
			t.Errorf("nothing is said of %s: %q", name, r.Notes)
		}
	}
}

func (m *Migration) names(kind string) (list []string) {
	for _, o := range m.Result().Objects {
		if o.Kind == kind {
			list = append(list, o.Metadata.Name)
		}
	}
	return list
}

// One object that cannot be written is named and takes nothing else with it.
func TestBadObjects(t *testing.T) {
	r := Result{Objects: []Object{{Kind: "Odd", Metadata: Meta{Name: "bad"}, Spec: func() {}}, {Kind: "Even", Metadata: Meta{Name: "good"}}}}
	var out bytes.Buffer
	if err := r.WriteYAML(&out); err == nil || !strings.Contains(err.Error(), "Odd bad: ") {
		t.Errorf("error %v does not name the object", err)
	}
	if !strings.Contains(out.String(), "name: good") {
		t.Errorf("the other is lost:\n%s", out.String())
	}
}

// FuzzRead takes anything: no panic, and what comes out is ours.
func FuzzRead(f *testing.F) {
	inputs, _ := filepath.Glob("testdata/*.in.yaml")
	for _, in := range inputs {
		data, err := os.ReadFile(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Migration
		_ = m.Read("fuzz", data) // bad documents are part of the game
		out := printed(t, m.Result())
		if d := manifest.Decode("out", out); len(d.Errors) > 0 {
			t.Errorf("%v in\n%s", d.Errors, out)
		}
	})
}

func match(t *route.Table, host string) *route.Route {
	found, _ := t.Match(&exchange.Request{Host: []byte(host), Path: []byte("/")})
	return found
}
