package assign_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// TestForeignText: text that one tenant writes stands in what another is told.
// The server stores whatever bytes an annotation has, but a status as JSON, in
// which not every byte reads back as it was written; and a condition has bounds.
func TestForeignText(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"key that is no UTF-8":     {loadbalancer.AnnotationSharingKey: "k\xff"},
		"key of several lines":     {loadbalancer.AnnotationSharingKey: "k\r\nevent: all is well"},
		"endless key":              {loadbalancer.AnnotationSharingKey: strings.Repeat("k", 200_000)},
		"pool that is no UTF-8":    {loadbalancer.AnnotationPool: "p\xff"},
		"endless pool":             {loadbalancer.AnnotationPool: strings.Repeat("p", 200_000)},
		"pool beside an address":   {loadbalancer.AnnotationPool: "p\xff", loadbalancer.AnnotationAddresses: "10.0.0.2"},
		"address that is no UTF-8": {loadbalancer.AnnotationAddresses: "10.0.0.\xff"},
		"endless address":          {loadbalancer.AnnotationAddresses: strings.Repeat("9", 200_000)},
		"endless zone":             {loadbalancer.AnnotationAddresses: "fe80::1%" + strings.Repeat("9", 200_000)},
		"endless repetition":       {loadbalancer.AnnotationAddresses: strings.Repeat("10.0.0.2,", 20_000) + "10.0.0.2"},
	} {
		writer, reader := balancer("writer", time.Hour), balancer("reader", time.Minute)
		writer.Annotations = annotations
		writer.Spec.LoadBalancerIP = "10.0.0.1"
		if annotations[loadbalancer.AnnotationAddresses] == "" && annotations[loadbalancer.AnnotationPool] != "" {
			writer.Spec.LoadBalancerIP = ""
		}
		reader.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: "mine", loadbalancer.AnnotationAddresses: "10.0.0.1"}
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

// TestConditionsHaveRoom: whatever is wrong with pools, what is said of it is not
// more than a server takes; it would refuse the counters with it.
func TestConditionsHaveRoom(t *testing.T) {
	const room = 32_768 // maxLength of a condition's message, in the CRD
	var backwards, scattered []string
	for i := range 1000 {
		backwards = append(backwards, fmt.Sprintf("2001:db8:1234:5678:9abc:def0:%x:ffff-2001:db8:1234:5678:9abc:def0:%x:0", 0x1000+i, 0x1000+i))
		scattered = append(scattered, fmt.Sprintf("2001:db8:1234:5678:9abc:def1:%x:0/128", 0x1000+i))
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"app": strings.Repeat("x", 100_000)}}
	for name, pools := range map[string][]snapshot.Object{
		"bad ranges": {poolOf("a", backwards...)},
		"a copy":     {poolOf("a", scattered...), poolOf("b", scattered...)},
		"a selector": {&v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.IPAddressPoolSpec{
			AllocateTo: &v1alpha1.ServiceAllocation{ServiceSelectors: []metav1.LabelSelector{selector}}}}},
	} {
		plan := assign.Compile(snapshot.Of(pools...), nil, nil, noon(), options())
		if len(plan.Updates) != len(pools) || len(plan.Problems) == 0 {
			t.Fatalf("%s: %d updates, problems %v", name, len(plan.Updates), plan.Problems)
		}
		for _, u := range plan.Updates {
			for _, told := range u.Object().(*v1alpha1.IPAddressPool).Status.Conditions {
				if len(told.Message) > room {
					t.Errorf("%s: condition %s of pool %s has %d bytes: %.200s…", name, told.Type, u.Was.GetName(), len(told.Message), told.Message)
				}
			}
		}
	}
	// Whoever waits for one of many pools is told so in a few words as well.
	var all []snapshot.Object
	for i := range 1000 {
		all = append(all, poolOf(fmt.Sprintf("%s-%d", strings.Repeat("p", 200), i), "2001:db8::/128"))
	}
	c, _ := settle(t, snapshot.Of(all...).With(balancer("web", time.Hour)), nil, noon(), options())
	web, _ := c.Services.Get(snapshot.Key{Namespace: "team", Name: "web"})
	if told := web.Status.Conditions[0].Message; len(told) > room {
		t.Errorf("who waits is told %d bytes: %.200s…", len(told), told)
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
