package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Apply sends manifests (YAML documents) by server-side apply, as `kubectl
// apply --server-side` does. Objects without a namespace go to the view's.
// Cluster-wide ones are deleted when the test ends.
func (v *Cluster) Apply(manifests string) {
	v.helper()
	objects, err := parse(manifests)
	v.must(err)
	for _, o := range objects {
		v.must(v.applyTo(v.ctx, o, v.namespace))
		if o.GetNamespace() == "" {
			v.onEnd(func() {
				if err := v.deleteObject(context.Background(), o); err != nil {
					v.t.Error(err)
				}
			})
		}
	}
}

// TryApply is Apply that returns the API server's refusal.
func (v *Cluster) TryApply(manifests string) error {
	objects, err := parse(manifests)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := v.applyTo(v.ctx, o, v.namespace); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes the objects that manifests name.
func (v *Cluster) Delete(manifests string) {
	v.helper()
	objects, err := parse(manifests)
	v.must(err)
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(v.namespace)
		}
		v.must(v.deleteObject(v.ctx, o))
	}
}

func parse(manifests string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := new(unstructured.Unstructured)
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("lab: manifest: %w", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

func (c *core) applyTo(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	mapping, err := c.mapping(o)
	if err != nil {
		return err
	}
	client := c.any.Resource(mapping.Resource)
	options := metav1.ApplyOptions{FieldManager: "lab", Force: true}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		_, err = client.Apply(ctx, o.GetName(), o, options)
	} else {
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		_, err = client.Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, options)
	}
	if err != nil {
		return fmt.Errorf("lab: apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

func (c *core) deleteObject(ctx context.Context, o *unstructured.Unstructured) error {
	mapping, err := c.mapping(o)
	if err != nil {
		return err
	}
	client := c.any.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		err = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	} else {
		err = client.Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	}
	if err != nil {
		return fmt.Errorf("lab: delete %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// mapping finds the resource of an object, asking the API server again for a
// kind that it may have learned since.
func (c *core) mapping(o *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %s %s: %w", gvk.Kind, o.GetName(), err)
	}
	return mapping, nil
}
