package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLabelsOfTheChartStay: a label of the values that is one of the chart's own stands
// there once, with the chart's value, by which pods are selected and objects are found.
func TestLabelsOfTheChartStay(t *testing.T) {
	v := values(t, variants()["labels"])
	for _, object := range renderObjects(t, v) { // decodes strictly
		labels := object.GetLabels()
		if labels["app.kubernetes.io/part-of"] != "quayside" || labels["app.kubernetes.io/name"] != "quayside" || labels["team"] == "" {
			t.Errorf("%s %s has labels %v", object.GetKind(), object.GetName(), labels)
		}
	}
	service := find[*corev1.Service](t, rendered(t, v), "quayside-proxy")
	if service.Labels["team"] != "web" || service.Labels["app.kubernetes.io/component"] != "proxy" {
		t.Errorf("labels %v: those of the Service go before those of all", service.Labels)
	}
	home := find[*corev1.Namespace](t, rendered(t, v), "quayside-proxy")
	if home.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || home.Labels["team"] != "web" {
		t.Errorf("labels %v of the namespace", home.Labels)
	}
}

// TestReleaseNamedByDigits: a label is text.
func TestReleaseNamedByDigits(t *testing.T) {
	_, objects, err := Render("2026", "quayside-system", values(t, `{nameOverride: "7", fullnameOverride: "8"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Workloads(objects); err != nil {
		t.Error(err)
	}
	for _, object := range objects {
		if labels := object.GetLabels(); labels["app.kubernetes.io/instance"] != "2026" {
			t.Errorf("%s %s has labels %v", object.GetKind(), object.GetName(), labels)
		}
	}
}
