package cluster

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// strip removes in place what is never read and what would fill memory or look like a
// change: who managed which field, kubectl's copy of the object, of a Node its images and
// heartbeats, and which pods endpoints are, of which there are many. Statuses are written
// as patches, so that what is stripped here is not lost there.
func strip(o snapshot.Object) snapshot.Object {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Images = nil
		o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil
		for i := range o.Status.Conditions {
			o.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	case *discoveryv1.EndpointSlice:
		for i := range o.Endpoints {
			e := &o.Endpoints[i]
			e.TargetRef, e.Hostname, e.DeprecatedTopology = nil, nil, nil
		}
	}
	return o
}
