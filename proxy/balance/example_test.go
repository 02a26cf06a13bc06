package balance_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/proxy/balance"
)

// The ready endpoints of a Service take turns; one that was tried is passed over.
func Example() {
	port, name := int32(8080), "http"
	web := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: 80}}},
	}
	slice := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for _, address := range []string{"10.1.0.1", "10.1.0.2", "10.1.0.3"} {
		ready := address != "10.1.0.2"
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	set := balance.Compile(web, []*discoveryv1.EndpointSlice{slice}, balance.PortRef{Name: name}, "node1", "", balance.Options{})

	var picker balance.Picker
	for range 3 {
		fmt.Println(set.Endpoints[picker.Next(set, time.Now(), nil)].Addr)
	}
	tried := picker.Next(set, time.Now(), nil)
	fmt.Println(set.Endpoints[tried].Addr, "fails, so", set.Endpoints[picker.Next(set, time.Now(), []int{tried})].Addr)
	// Output:
	// 10.1.0.1:8080
	// 10.1.0.3:8080
	// 10.1.0.1:8080
	// 10.1.0.3:8080 fails, so 10.1.0.1:8080
}
