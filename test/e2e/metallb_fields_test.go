package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// Every field of a spec that MetalLB's CRDs have, in any version that they serve, ours have,
// too, with the same type: `quayside migrate` reads a spec strictly into ours, so that each
// is carried over.
func TestEveryFieldOfMetalLB(t *testing.T) {
	lab.Require(t)
	_, theirs, err := lab.MetalLBManifest(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	crds, _, err := chart.Render("quayside", lab.SystemNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	ours, compared := specFields(t, crds), 0
	for kind, fields := range specFields(t, theirs) {
		if strings.HasSuffix(kind, "Status") {
			continue // what MetalLB says, not what somebody wants
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			compared++
			if got := ours[kind][path]; got != fields[path] {
				t.Errorf("%s: spec%s is %s for MetalLB, and %q for us", kind, path, fields[path], got)
			}
		}
	}
	if compared < 80 {
		t.Errorf("compared only %d fields: this test looks in the wrong place", compared)
	}
}

// specFields are the types of the fields of each kind's spec, by path, over all versions.
func specFields(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = map[string]string{}
		for _, version := range versions {
			spec, found, err := unstructured.NestedMap(version.(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
			if err != nil {
				t.Fatal(err)
			}
			if found {
				addFields(out[kind], "", spec)
			}
		}
	}
	return out
}

// addFields adds the fields below one of a schema.
func addFields(to map[string]string, path string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		addFields(to, path+"."+name, property.(map[string]any))
	}
	if items, ok := schema["items"].(map[string]any); ok {
		addFields(to, path+"[]", items)
	}
	if kind, ok := schema["type"].(string); ok && path != "" {
		to[path] = kind
	}
}
