package loadbalancer

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/printable"
	"quayside.io/lbpool"
)

// MaxSharingNamespaces is how many namespaces of AnnotationSharingNamespaces count.
const MaxSharingNamespaces = 64

// ConditionSharing is the type of the Service condition that records on which terms the
// Service shares its addresses: its message is what TermsOf was when the controller last
// found nobody in the way. It is in the status, since an annotation is written by whoever may
// edit the Service, who could say there that nothing has changed.
const ConditionSharing = "quayside.io/Sharing"

// maxTerms is how much of the terms is spelled out, in bytes: a Service may have thousands of
// ports, and a key as long as an annotation may be.
const maxTerms = 256

// TermsOf says in words what a Service and the others on its addresses must agree on: the
// key, the ports and the policy. It is empty if the Service shares none. Of what is too long
// for a condition it ends in a digest, so that two are equal only if all of it is.
func TermsOf(svc *corev1.Service) string {
	h := HolderOf(svc)
	if h.Sharing == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "under the key %q, on ", h.Key)
	for i, p := range h.Ports {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.String())
	}
	b.WriteString(", with externalTrafficPolicy ")
	if IsLocal(svc) {
		b.WriteString("Local and the selector " + labels.Set(svc.Spec.Selector).String())
	} else {
		b.WriteString("Cluster")
	}
	if b.Len() <= maxTerms {
		return b.String()
	}
	return fmt.Sprintf("%s (SHA-256 %x)", printable.Cut(b.String(), maxTerms), sha256.Sum256([]byte(b.String())))
}

// HasNewTerms reports whether a Service shares its addresses on other terms than those that
// are recorded on it. Where nothing is recorded, it has not changed as far as anybody knows.
// Of two that cannot share an address, the one with new terms goes, however old it is: its
// owner has changed it, and whoever was there serves.
func HasNewTerms(svc *corev1.Service) bool {
	for i := range svc.Status.Conditions { // an index: this runs for every Service
		if c := &svc.Status.Conditions[i]; c.Type == ConditionSharing {
			return c.Message != TermsOf(svc)
		}
	}
	return false
}

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
