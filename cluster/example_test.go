package cluster_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// A component waits until everything is known, reads one snapshot, and looks again
// whenever a kind that it uses has changed. Against an API server it is the same.
func Example() {
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- files.Run(ctx) }()
	<-files.Synced()

	services := files.Watch(snapshot.Service)
	defer services.Stop()
	files.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	key := snapshot.Key{Namespace: "shop", Name: "web"}
	for range services.C() {
		if s, ok := files.Snapshot().Services.Get(key); ok {
			fmt.Println("there is", snapshot.KeyOf(s))
			break
		}
	}
	stop()
	<-ended
	// Output:
	// there is shop/web
}
