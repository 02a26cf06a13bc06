package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// strip removes in place what nobody here reads and what would fill memory or
// look like a change: who managed which field, kubectl's copy of the object,
// and of a Node its images and heartbeats. Statuses are written as patches, so
// that what is stripped here is not lost there.
func strip(o snapshot.Object) snapshot.Object {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	if node, ok := o.(*corev1.Node); ok {
		node.Status.Images = nil
		node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
	return o
}
