package chart

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// exprs are the expressions of the alerts by name.
func exprs(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range objects {
		groups, _, _ := unstructured.NestedSlice(object.Object, "spec", "groups")
		for _, g := range groups {
			for _, r := range g.(map[string]any)["rules"].([]any) {
				rule := r.(map[string]any)
				found[rule["alert"].(string)] = rule["expr"].(string)
			}
		}
	}
	return found
}

// jobOf is the job that a monitor gives the targets of a component: that of the last
// of its relabelings with one.
func jobOf(monitor *unstructured.Unstructured, component string) (job string) {
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", map[string]string{"ServiceMonitor": "endpoints", "PodMonitor": "podMetricsEndpoints"}[monitor.GetKind()])
	for _, e := range endpoints {
		relabelings, _, _ := unstructured.NestedSlice(e.(map[string]any), "relabelings")
		for _, r := range relabelings {
			rule := r.(map[string]any)
			from, _, _ := unstructured.NestedStringSlice(rule, "sourceLabels")
			if rule["targetLabel"] == "job" && len(from) == 1 && from[0] == "__meta_kubernetes_pod_label_app_kubernetes_io_component" {
				job = regexp.MustCompile(`^(.*)$`).ReplaceAllString(component, rule["replacement"].(string))
			}
		}
	}
	return job
}

// TestAlertsFindTheirTargets: whichever monitor is used and wherever the proxy lives,
// the alerts ask for the job and the namespace that targets have.
func TestAlertsFindTheirTargets(t *testing.T) {
	const alerts = `metrics: {prometheusRule: {enabled: true}, serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}`
	for text, proxies := range map[string]string{
		`{` + alerts + `}`: "quayside-proxy",
		`{` + alerts + `, proxy: {namespace: {name: quayside-system}}}`: "quayside-system",
		`{` + alerts + `, fullnameOverride: ""}`:                        "edge-proxy",
	} {
		objects := renderObjects(t, values(t, text))
		found, monitors := exprs(t, objects), 0
		up := regexp.MustCompile(`up\{namespace=~"(.*)", job=~"(.*)"\} == 0`).FindStringSubmatch(found["QuaysideDown"])
		if up == nil {
			t.Fatalf("QuaysideDown asks %s", found["QuaysideDown"])
		}
		for component, namespace := range map[string]string{"controller": "quayside-system", "speaker": "quayside-system", "proxy": proxies} {
			if !regexp.MustCompile(`^(?:` + up[1] + `)$`).MatchString(namespace) {
				t.Errorf("%s: QuaysideDown asks for namespace %q: that of a %s is %s", text, up[1], component, namespace)
			}
			for _, object := range objects {
				if object.GetKind() != "ServiceMonitor" && object.GetKind() != "PodMonitor" {
					continue
				}
				monitors++
				job := jobOf(object, component)
				if !regexp.MustCompile(`^(?:` + up[2] + `)$`).MatchString(job) {
					t.Errorf("%s: QuaysideDown asks for job %q: that of a %s by a %s is %q", text, up[2], component, object.GetKind(), job)
				}
				missing := `absent(up{namespace="` + namespace + `", job="` + job + `"})`
				if !strings.Contains(found["QuaysideMissing"], missing) {
					t.Errorf("%s: QuaysideMissing does not ask %s", text, missing)
				}
			}
		}
		if want := `quayside_tls_certificate_expiry_seconds{namespace="` + proxies + `"}`; !strings.Contains(found["QuaysideCertificateExpires"], want) {
			t.Errorf("%s: QuaysideCertificateExpires does not ask %s", text, want)
		}
		if monitors != 6 {
			t.Errorf("%s: %d monitors and components, want 6", text, monitors)
		}
	}
}
