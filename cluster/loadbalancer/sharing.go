package loadbalancer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/lbpool"
)

// MaxSharingNamespaces is how many namespaces of AnnotationSharingNamespaces count.
const MaxSharingNamespaces = 64

// HolderOf puts how a Service shares addresses into the words of lbpool, which
// has the rules.
func HolderOf(svc *corev1.Service) lbpool.Holder {
	t := lbpool.Holder{Realm: svc.Namespace, Name: svc.Name}
	group, _ := Annotation(svc, AnnotationSharingKey)
	if group == "" {
		return t
	}
	t.Sharing = &lbpool.Sharing{Key: group}
	t.Admits = admits(svc.Annotations[AnnotationSharingNamespaces])
	for _, p := range svc.Spec.Ports {
		t.Ports = append(t.Ports, PortOf(p))
	}
	slices.SortFunc(t.Ports, lbpool.Port.Compare)
	if IsLocal(svc) {
		t.Backend = "Local " + labels.Set(svc.Spec.Selector).String()
	}
	return t
}

// admits returns the namespaces in a list, each once: the first MaxSharingNamespaces,
// since a tenant writes it, and each plan of the controller reads it.
func admits(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(names, name) {
			continue
		}
		if names = append(names, name); len(names) == MaxSharingNamespaces {
			break
		}
	}
	return names
}

// PortOf is where a Service listens.
func PortOf(p corev1.ServicePort) lbpool.Port {
	return lbpool.Port{Protocol: string(cmp.Or(p.Protocol, corev1.ProtocolTCP)), Number: p.Port}
}

// Alike reports whether nothing but their ports can make the holders of two
// Services clash. It makes no holders: a speaker asks it of each that shares an
// address, at every plan.
func Alike(a, b *corev1.Service) bool {
	key, _ := Annotation(a, AnnotationSharingKey)
	other, _ := Annotation(b, AnnotationSharingKey)
	return key != "" && key == other && IsLocal(a) == IsLocal(b) &&
		(!IsLocal(a) || maps.Equal(a.Spec.Selector, b.Spec.Selector))
}
