package controller_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
	"quayside.io/controller/assign"
)

// A Service waits for an address; the controller gives it one of the pool, and writes it
// into its status. Against an API server, Options.Lead sees to it that only one does.
func Example() {
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	files.Put(&v1alpha1.IPAddressPool{
		ObjectMeta: metav1.ObjectMeta{Name: "main"},
		Spec:       v1alpha1.IPAddressPoolSpec{Addresses: []string{"192.0.2.10-192.0.2.20"}},
	}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	c, err := controller.New(controller.Options{Source: files.Source, Writer: files, Assign: assign.Options{DefaultLoadBalancer: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- files.Run(ctx) }()
	go func() { ended <- c.Run(ctx) }()

	services := files.Watch(snapshot.Service)
	defer services.Stop()
	for range services.C() {
		web, there := files.Snapshot().Services.Get(snapshot.Key{Namespace: "shop", Name: "web"})
		if there && len(loadbalancer.Addresses(web)) > 0 {
			fmt.Println(snapshot.KeyOf(web), "has", loadbalancer.Addresses(web))
			break
		}
	}
	stop()
	<-ended
	<-ended
	// Output:
	// shop/web has [192.0.2.10]
}
