package cluster

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// statusOf returns the status of o, or nil if its kind has none that Quayside
// reads or writes.
func statusOf(o snapshot.Object) any {
	switch o := o.(type) {
	case *corev1.Service:
		return o.Status
	case *corev1.Node:
		return o.Status
	case *networkingv1.Ingress:
		return o.Status
	case *v1alpha1.IPAddressPool:
		return o.Status
	case *v1alpha1.SpeakerStatus:
		return o.Status
	}
	return nil
}

// setStatus copies the status of from, which is of the same kind, into o.
func setStatus(o, from snapshot.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		from.(*corev1.Service).Status.DeepCopyInto(&o.Status)
	case *corev1.Node:
		from.(*corev1.Node).Status.DeepCopyInto(&o.Status)
	case *networkingv1.Ingress:
		from.(*networkingv1.Ingress).Status.DeepCopyInto(&o.Status)
	case *v1alpha1.IPAddressPool:
		from.(*v1alpha1.IPAddressPool).Status.DeepCopyInto(&o.Status)
	case *v1alpha1.SpeakerStatus:
		from.(*v1alpha1.SpeakerStatus).Status.DeepCopyInto(&o.Status)
	}
}
