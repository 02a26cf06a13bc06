package lab

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"quayside.io/test/chart"
)

// Config is the administrator's access, from the API server's own namespace.
func (v *Cluster) Config() *rest.Config { return v.api.config() }

// InstallRelease is Install with a packed chart. It stays until Uninstall.
func (v *Cluster) InstallRelease(r *chart.Release) {
	v.helper()
	v.must(v.install(v.ctx, r.CRDs, r.Objects))
}

// ChangeRelease makes the installed release another revision, as `helm upgrade` and
// `helm rollback` do: its objects are applied, those that it has no more are deleted,
// and the pods are replaced as the workloads say. The CRDs are applied first, as the
// documentation asks for.
func (v *Cluster) ChangeRelease(r *chart.Release) {
	v.helper()
	q := v.Quayside()
	for _, crd := range r.CRDs {
		v.must(v.applyTo(v.ctx, crd, ""))
	}
	there := map[string]bool{}
	for _, o := range r.Objects {
		v.must(v.applyTo(v.ctx, o, SystemNamespace))
		if o.GetKind() == "Namespace" {
			v.must(v.makeNamespace(v.ctx, o.GetName()))
		}
		there[objectKey(o)] = true
	}
	for _, o := range q.objects {
		if !there[objectKey(o)] && o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			if err := v.deleteObject(v.ctx, o); !apierrors.IsNotFound(errors.Unwrap(err)) {
				v.must(err)
			}
		}
	}
	q.objects = r.Objects
	q.Rollout()
}

// objectKey tells objects apart, whatever version of their group they are in.
func objectKey(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}
