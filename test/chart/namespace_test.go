package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestProxyNamespace: the proxy has a namespace of its own, in which Pod Security
// Admission enforces what the proxy keeps to, unless the values say otherwise.
func TestProxyNamespace(t *testing.T) {
	const enforce = "pod-security.kubernetes.io/enforce"
	for text, want := range map[string]struct{ name, made, level string }{
		``: {"quayside-proxy", "quayside-proxy", "restricted"},
		`{proxy: {namespace: {name: edge, labels: {a: b}}}}`:                             {"edge", "edge", "restricted"},
		`{proxy: {namespace: {labels: {pod-security.kubernetes.io/enforce: baseline}}}}`: {"quayside-proxy", "quayside-proxy", "baseline"},
		`{proxy: {hostNetwork: {enabled: true}}}`:                                        {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {hostPorts: {http: 80, https: 443}}}`:                                   {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {namespace: {name: mine, create: false}}}`:                              {"mine", "", ""},
		`{proxy: {namespace: {name: quayside-system}}}`:                                  {"quayside-system", "", ""},
		`{fullnameOverride: "", proxy: {enabled: false}}`:                                {"", "", ""},
	} {
		made, level := "", ""
		for _, object := range rendered(t, values(t, text)) {
			if n, ok := object.(*corev1.Namespace); ok {
				made, level = n.Name, n.Labels[enforce]
			}
		}
		if made != want.made || level != want.level {
			t.Errorf("%s: namespace %q with %q, want %q with %q", text, made, level, want.made, want.level)
		}
		for _, object := range renderObjects(t, values(t, text)) {
			component := object.GetLabels()["app.kubernetes.io/component"]
			switch kind := object.GetKind(); {
			case kind == "Role" || kind == "RoleBinding": // where what they open is
			case component == "proxy" && object.GetNamespace() != "" && object.GetNamespace() != want.name:
				t.Errorf("%s: %s %s is in %s, want %s", text, kind, object.GetName(), object.GetNamespace(), want.name)
			case component != "proxy" && object.GetNamespace() != "" && object.GetNamespace() != "quayside-system":
				t.Errorf("%s: %s %s is in %s, beside the proxy", text, kind, object.GetName(), object.GetNamespace())
			}
		}
	}
}
