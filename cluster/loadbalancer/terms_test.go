package loadbalancer_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/loadbalancer"
)

// TestTermsAreTheHolder: terms are equal exactly where nothing differs that lbpool looks at
// when it asks whether two clash.
func TestTermsAreTheHolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list [2]*corev1.Service
		for i := range list {
			list[i] = genService(t)
			for range rapid.IntRange(1, 3).Draw(t, "ports") {
				protocol := rapid.SampledFrom([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol")
				list[i].Spec.Ports = append(list[i].Spec.Ports, corev1.ServicePort{Protocol: protocol, Port: rapid.Int32Range(80, 82).Draw(t, "port")})
			}
		}
		spell := func(svc *corev1.Service) string {
			if h := loadbalancer.HolderOf(svc); h.Sharing != nil {
				return fmt.Sprintf("%q %q %q", h.Key, h.Ports, h.Backend)
			}
			return ""
		}
		same := spell(list[0]) == spell(list[1])
		if got := loadbalancer.TermsOf(list[0]) == loadbalancer.TermsOf(list[1]); got != same {
			t.Fatalf("%q and %q are equal: %v, want %v", loadbalancer.TermsOf(list[0]), loadbalancer.TermsOf(list[1]), got, same)
		}
		if loadbalancer.HasNewTerms(list[0]) {
			t.Fatalf("nothing is recorded, and yet it has changed")
		}
		list[0].Status.Conditions = []metav1.Condition{{Type: "Other"}, {Type: loadbalancer.ConditionSharing, Message: loadbalancer.TermsOf(list[1])}}
		if got := loadbalancer.HasNewTerms(list[0]); got == same {
			t.Fatalf("recorded is %q, it is %q now, and that it has changed is %v", loadbalancer.TermsOf(list[1]), loadbalancer.TermsOf(list[0]), got)
		}
	})
}

// TestLongTermsDifferAtTheirEnd: what is cut off counts.
func TestLongTermsDifferAtTheirEnd(t *testing.T) {
	terms := func(last int32) string {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{loadbalancer.AnnotationSharingKey: strings.Repeat("ü", 200)}}}
		for i := range int32(1000) {
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: 1 + i})
		}
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: last})
		return loadbalancer.TermsOf(svc)
	}
	if a, b := terms(2000), terms(2001); a == b || a != terms(2000) || len(a) > 512 || a != strings.ToValidUTF8(a, "") {
		t.Errorf("%q and %q", a, b)
	}
}
