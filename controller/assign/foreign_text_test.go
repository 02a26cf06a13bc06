package assign_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/controller/assign"
	"quayside.io/controller/snapshot"
)

// TestForeignText: text that one tenant writes stands in what another is told.
// The server stores whatever bytes an annotation has, but a status as JSON, in
// which not every byte reads back as it was written; and a condition has bounds.
func TestForeignText(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"key that is no UTF-8":     {assign.AnnotationSharingKey: "k\xff"},
		"key of several lines":     {assign.AnnotationSharingKey: "k\r\nevent: all is well"},
		"endless key":              {assign.AnnotationSharingKey: strings.Repeat("k", 200_000)},
		"pool that is no UTF-8":    {assign.AnnotationPool: "p\xff"},
		"endless pool":             {assign.AnnotationPool: strings.Repeat("p", 200_000)},
		"pool beside an address":   {assign.AnnotationPool: "p\xff", assign.AnnotationAddresses: "10.0.0.2"},
		"address that is no UTF-8": {assign.AnnotationAddresses: "10.0.0.\xff"},
		"endless address":          {assign.AnnotationAddresses: strings.Repeat("9", 200_000)},
		"endless zone":             {assign.AnnotationAddresses: "fe80::1%" + strings.Repeat("9", 200_000)},
		"endless repetition":       {assign.AnnotationAddresses: strings.Repeat("10.0.0.2,", 20_000) + "10.0.0.2"},
	} {
		writer, reader := balancer("writer", time.Hour), balancer("reader", time.Minute)
		writer.Annotations = annotations
		writer.Spec.LoadBalancerIP = "10.0.0.1"
		if annotations[assign.AnnotationAddresses] == "" && annotations[assign.AnnotationPool] != "" {
			writer.Spec.LoadBalancerIP = ""
		}
		reader.Annotations = map[string]string{assign.AnnotationSharingKey: "mine", assign.AnnotationAddresses: "10.0.0.1"}
		c := snapshot.Of(poolOf("a", "10.0.0.1-10.0.0.3"), writer, reader)
		var plan *assign.Plan
		for range 4 {
			plan = assign.Compile(c, plan, nil, noon(), options())
			for _, u := range plan.Updates {
				c = c.With(stored(t, u.Object()))
			}
		}
		if len(plan.Updates) > 0 {
			t.Errorf("%s: four plans, each written, are no fixed point", name)
		}
		for _, svc := range c.Services.Sorted() {
			for _, told := range svc.Status.Conditions {
				if len(told.Message) > 1024 || strings.ContainsAny(told.Message, "\r\n") {
					t.Errorf("%s: %s is told %d bytes, %.100q…", name, svc.Name, len(told.Message), told.Message)
				}
			}
		}
	}
}

// stored is an object as a server gives it back.
func stored(t *testing.T, o snapshot.Object) snapshot.Object {
	t.Helper()
	svc, ok := o.(*corev1.Service)
	if !ok {
		return o
	}
	text, err := json.Marshal(svc.Status)
	if err != nil {
		t.Fatal(err)
	}
	svc = svc.DeepCopy()
	svc.Status = corev1.ServiceStatus{}
	if err := json.Unmarshal(text, &svc.Status); err != nil {
		t.Fatal(err)
	}
	return svc
}
