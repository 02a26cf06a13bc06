package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/test/lab"
)

// moreOfMetalLB are objects of MetalLB's with what those among the fixtures of our CRDs have
// not got, and pools for Services that ask for them.
const moreOfMetalLB = `
kind: IPAddressPool
metadata: {name: moved-new}
spec: {addresses: [10.77.0.180-10.77.0.184], autoAssign: false}
---
kind: IPAddressPool
metadata: {name: moved-old}
spec: {addresses: [10.77.0.185-10.77.0.189], autoAssign: false}
---
kind: IPAddressPool
metadata: {name: by-expression}
spec:
  addresses: [10.99.0.0/28]
  autoAssign: false
  serviceAllocation: {priority: 7, namespaceSelectors: [{matchExpressions: [{key: tier, operator: In, values: [gold, silver]}]}]}
---
kind: BFDProfile
metadata: {name: echo}
spec: {echoMode: true}
---
kind: BGPPeer
metadata: {name: one-family}
spec: {myASN: 64500, peerASN: 64500, peerAddress: 10.0.0.9, disableMP: true}
---
kind: L2Advertisement
metadata: {name: by-expression}
spec:
  ipAddressPoolSelectors: [{matchExpressions: [{key: zone, operator: NotIn, values: [west]}]}]
  nodeSelectors: [{matchExpressions: [{key: rack, operator: In, values: [r1, r2]}]}]
  serviceSelectors: [{matchExpressions: [{key: expose, operator: In, values: [lan]}]}]
  preferredNodeSelectors: [{weight: 3, preference: {matchExpressions: [{key: rack, operator: In, values: [r1]}]}}]
---
kind: BGPAdvertisement
metadata: {name: by-expression}
spec:
  asPathPrepend: 3
  ipAddressPoolSelectors: [{matchExpressions: [{key: zone, operator: Exists}, {key: zone, operator: In, values: [east]}]}]
  nodeSelectors: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]
  serviceSelectors: [{matchExpressions: [{key: expose, operator: In, values: [internet]}]}]
`

// Objects of every kind of MetalLB's, which among them have every field of its CRDs, stand
// in a cluster as MetalLB's own CRDs take them; `quayside migrate` reads them there. What it
// prints our CRDs take, and of what MetalLB's objects say each word is in ours, or is said
// to be left out. Then Services get from the pools what their annotations ask MetalLB for,
// under its prefix of today and under the old one.
func TestMigrateEveryObjectOfMetalLB(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	theirs := e.metalLBObjects()
	dir := t.TempDir()
	printed := e.migrate(dir, "--only addresses")
	e.Apply(printed)
	carried := 0
	for _, o := range theirs {
		was := e.stored(schema.GroupVersionResource{Group: "metallb.io", Version: o.GroupVersionKind().Version, Resource: plural(o.GetKind())}, lab.MetalLBNamespace, o.GetName())
		is := e.stored(v1alpha1.GroupVersion().WithResource(plural(o.GetKind())), "", o.GetName())
		notes := notesAbove(t, printed, o)
		before, now := leaves(was), leaves(is)
		for path, value := range before {
			carried++
			if !reflect.DeepEqual(now[path], value) && !strings.Contains(notes, path) && !strings.Contains(notes, fmt.Sprint(value[0])) {
				t.Errorf("%s %s: spec.%s was %v and is %v, and nothing is said of it: %s", o.GetKind(), o.GetName(), path, value, now[path], notes)
			}
		}
		for path, value := range now {
			if len(before[path]) == 0 && len(before) > 0 { // what says nothing at all gets no defaults of MetalLB
				t.Errorf("%s %s: spec.%s is %v, and nobody asked for that", o.GetKind(), o.GetName(), path, value)
			}
		}
	}
	if carried < 100 {
		t.Errorf("only %d values were carried over: this test looks in the wrong place", carried)
	}
	for _, note := range []string{"copy Secret bgp-password from namespace metallb-system", "spec.echoMode has no equivalent"} {
		if !strings.Contains(printed, note) {
			t.Errorf("%q is not said", note)
		}
	}
	e.servicesOfMetalLB()
}

// metalLBObjects puts MetalLB's CRDs and objects of every kind into the cluster. They go
// with the test.
func (e edge) metalLBObjects() (objects []*unstructured.Unstructured) {
	t := e.t
	t.Helper()
	_, manifest, err := lab.MetalLBManifest(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	makeNamespace(t, e.Cluster, lab.MetalLBNamespace) // which stays, empty, for whoever wants it next
	t.Cleanup(func() {
		e.Eventually(settle, func() error { return e.gone("metallb.io") })
	})
	unset := specFields(t, manifest)
	for _, o := range manifest {
		if o.GetKind() == "CustomResourceDefinition" {
			unstructured.RemoveNestedField(o.Object, "spec", "conversion") // by a webhook of its controller, which does not run
			e.Apply(text(t, o))
		}
	}
	// The fixtures of our own CRDs are MetalLB's objects but for the group.
	files, err := filepath.Glob("../chart/testdata/metallb/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("fixtures: %q, %v", files, err)
	}
	all := moreOfMetalLB
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += "\n---\n" + string(data)
	}
	all = strings.ReplaceAll(all, "localPref: 4294967295", "localPref: 2147483647") // MetalLB's CRD takes it for signed
	for _, doc := range documents(t, all) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("metallb.io/v1beta1")
		if o.GetKind() == "BGPPeer" {
			o.SetAPIVersion("metallb.io/v1beta2")
		}
		o.SetNamespace(lab.MetalLBNamespace)
		delete(o.Object, "status")
		e.Eventually(settle, func() error { return e.TryApply(text(t, o)) }) // the CRDs are new
		spec, _ := o.Object["spec"].(map[string]any)
		for path := range leaves(spec) {
			delete(unset[o.GetKind()], "."+path)
		}
		objects = append(objects, o)
	}
	e.everyField(unset)
	return objects
}

// gone returns an error while there are CRDs of a group.
func (e edge) gone(group string) error {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := e.Dynamic().Resource(crds).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range list.Items {
		if strings.HasSuffix(crd.GetName(), "."+group) {
			return fmt.Errorf("CRD %s is still there", crd.GetName())
		}
	}
	return nil
}

// everyField asserts that objects have set all fields but those that are left, which are
// objects and lists themselves, or were fields of BGPPeers before v1beta2.
func (e edge) everyField(unset map[string]map[string]string) {
	e.t.Helper()
	for kind, fields := range unset {
		if strings.HasSuffix(kind, "Status") || kind == "ConfigurationState" {
			continue // what MetalLB says, not what somebody wants
		}
		for path, is := range fields {
			if is != "object" && is != "array" {
				e.t.Errorf("%s: no object has spec%s", kind, path)
			}
		}
	}
}

// migrate is what `quayside migrate` prints at a machine on the LAN.
func (e edge) migrate(dir, flags string) string {
	e.t.Helper()
	printed := filepath.Join(dir, "printed.yaml")
	e.Client("laptop").Exec("sh", "-c", fmt.Sprintf("%s migrate --kubeconfig %s %s >%s 2>%s/notes", e.Quayside().Binary(), e.Kubeconfig(), flags, printed, dir))
	data, err := os.ReadFile(printed)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(data)
}

// stored is the spec of an object as the API server has it, with its defaults.
func (e edge) stored(resource schema.GroupVersionResource, namespace, name string) map[string]any {
	e.t.Helper()
	o, err := e.Dynamic().Resource(resource).Namespace(namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	spec, _ := o.Object["spec"].(map[string]any)
	return spec
}

// notesAbove are the comments above what came of an object.
func notesAbove(t *testing.T, printed string, o *unstructured.Unstructured) string {
	t.Helper()
	for _, doc := range documents(t, printed) {
		if strings.Contains(doc, "\nkind: "+o.GetKind()+"\n") && strings.Contains(doc, "\n  name: "+o.GetName()+"\n") {
			notes, _, _ := strings.Cut(doc, "apiVersion: ")
			return notes
		}
	}
	return "(nothing came of it)"
}

// documents are those of a stream of YAML, with their comments.
func documents(t *testing.T, text string) (docs []string) {
	t.Helper()
	stream := yamlstream.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := stream.Read()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
}

// leaves are the values of a spec by path, those of lists together; but for false, which
// is the same as nothing.
func leaves(spec map[string]any) map[string][]any {
	all := map[string][]any{}
	var add func(path string, v any)
	add = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				add(strings.TrimPrefix(path+"."+key, "."), v[key])
			}
		case []any:
			for _, item := range v {
				add(path+"[]", item)
			}
		case bool:
			if v {
				all[path] = append(all[path], v)
			}
		default:
			all[path] = append(all[path], v)
		}
	}
	add("", spec)
	return all
}

// text is an object as a manifest.
func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	data, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// servicesOfMetalLB makes Services that ask MetalLB for something, and waits until they
// have it of us.
func (e edge) servicesOfMetalLB() {
	e.t.Helper()
	wants := map[string]struct{ annotations, port, address, pool string }{
		"pool-new":      {"metallb.io/address-pool: moved-new", "80", "", "moved-new"},
		"pool-old":      {"metallb.universe.tf/address-pool: moved-old", "80", "", "moved-old"},
		"addresses-new": {"metallb.io/loadBalancerIPs: 10.77.0.183", "80", "10.77.0.183", "moved-new"},
		"addresses-old": {"metallb.universe.tf/loadBalancerIPs: 10.77.0.188", "80", "10.77.0.188", "moved-old"},
		// One address for both, by one key, which each has under another prefix.
		"shared-new": {"metallb.io/allow-shared-ip: key, metallb.io/loadBalancerIPs: 10.77.0.189", "80", "10.77.0.189", "moved-old"},
		"shared-old": {"metallb.universe.tf/allow-shared-ip: key, metallb.universe.tf/loadBalancerIPs: 10.77.0.189", "81", "10.77.0.189", "moved-old"},
		// Both prefixes at once: today's counts.
		"both": {"metallb.io/address-pool: moved-new, metallb.universe.tf/address-pool: moved-old", "80", "", "moved-new"},
	}
	for name, want := range wants {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, annotations: {%s}}, spec: {type: LoadBalancer, selector: {app: none}, ports: [{name: p, port: %s}]}}",
			name, want.annotations, want.port))
	}
	for name, want := range wants {
		e.Eventually(settle, func() error {
			s, err := e.service(name)
			if err != nil {
				return err
			}
			given, at := s.Annotations[loadbalancer.AnnotationGiven], ""
			if len(s.Status.LoadBalancer.Ingress) == 1 {
				at = s.Status.LoadBalancer.Ingress[0].IP
			}
			if given != want.pool || at == "" || want.address != "" && at != want.address {
				return fmt.Errorf("Service %s (%s) has %q of pool %q, want %q of %q: %v", name, want.annotations, at, given, want.address, want.pool, s.Status.Conditions)
			}
			return nil
		})
	}
}

// Whatever the tests of `migrate` have it print, of Ingresses, of ConfigMaps of
// ingress-nginx and of MetalLB's older objects, an API server takes, with every field.
func TestMigratedObjectsAreAccepted(t *testing.T) {
	beside(t)
	c := apiServer(t)
	files, err := filepath.Glob("../../command/migrate/testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		printed, err := os.ReadFile(strings.Replace(file, ".in.", ".out.", 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(t, string(printed)) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, doc)
			}
			if len(o.Object) == 0 {
				continue // only notes
			}
			if o.GetNamespace() != "" {
				o.SetNamespace(c.Namespace())
			}
			kinds[o.GetKind()]++
			resource := c.Dynamic().Resource(o.GroupVersionKind().GroupVersion().WithResource(plural(o.GetKind()))).Namespace(o.GetNamespace())
			_, err := resource.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Errorf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
		}
	}
	for _, kind := range []string{"Ingress", "Service", "IPAddressPool", "L2Advertisement", "BGPAdvertisement", "BGPPeer", "BFDProfile", "Community"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s is printed: this test looks in the wrong place", kind)
		}
	}
}
