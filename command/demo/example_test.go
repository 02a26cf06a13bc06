package demo_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/demo"
)

// The demo's pods join a cluster of files. Its client waits until there is a proxy.
func Example() {
	on := demo.FindLoopback()
	files, err := cluster.NewFiles(nil, demo.Manifests(on), cluster.FilesOptions{NodeName: "laptop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	noProxy := func() (netip.AddrPort, bool) { return netip.AddrPort{}, false }
	d := demo.New(files, on, time.Minute, noProxy, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- files.Run(ctx) }()
	go func() { ended <- d.Run(ctx) }()

	slices := files.Watch(snapshot.EndpointSlice)
	defer slices.Stop()
	for len(files.Snapshot().SlicesOf(demo.HelloService())) == 0 {
		<-slices.C()
	}
	fmt.Println(demo.HelloService(), "has a pod")
	stop()
	<-ended
	<-ended
	// Output:
	// default/hello has a pod
}
