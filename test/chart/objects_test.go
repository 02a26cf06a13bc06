package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestObjectsFromValues: each list of the values becomes objects that the server takes.
func TestObjectsFromValues(t *testing.T) {
	srv, n := newServer(t), 0
	for _, object := range renderObjects(t, values(t, variants()["everything"])) {
		if object.GroupVersionKind().Group != "quayside.io" {
			continue
		}
		n++
		if problems := srv.judge(t.Context(), object.GetKind(), object.Object); len(problems) > 0 {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), problems)
		}
		if object.GetKind() == "IPAddressPool" {
			want := map[string]any{"addresses": []any{"192.0.2.0/24"}}
			if diff := cmp.Diff(want, object.Object["spec"]); diff != "" || object.GetName() != "lan" {
				t.Errorf("%s: %s", object.GetName(), diff)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d objects, want one of each kind", n)
	}
}

// TestManagedCRDs: with crds.manage the release holds what Helm would else only
// install, and an uninstall leaves it: with a CRD all its objects go.
func TestManagedCRDs(t *testing.T) {
	crds, objects, err := Render("edge", "quayside-system", values(t, variants()["managed CRDs"]))
	if err != nil {
		t.Fatal(err)
	}
	managed := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			managed[object.GetName()] = object
		}
	}
	for _, crd := range crds {
		object := managed[crd.GetName()]
		if object == nil {
			t.Errorf("%s is not managed", crd.GetName())
			continue
		}
		if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("an uninstall would delete %s and every object of it", crd.GetName())
		}
		if diff := cmp.Diff(crd.Object["spec"], object.Object["spec"]); diff != "" {
			t.Errorf("%s is another one:\n%s", crd.GetName(), diff)
		}
	}
	if len(managed) != len(crds) {
		t.Errorf("%d CRDs are managed, want %d", len(managed), len(crds))
	}
}
