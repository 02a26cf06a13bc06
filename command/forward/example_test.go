package forward_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/forward"
)

// A Service that has a loopback address is carried to its endpoint.
func Example() {
	pod, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pod.Close()
	go func() {
		for {
			c, err := pod.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "hello from the pod\n")
			c.Close()
		}
	}()
	objects := manifest.Decode("hello.yaml", fmt.Appendf(nil, `
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {type: LoadBalancer, ports: [{port: 8099}]}
status: {loadBalancer: {ingress: [{ip: 127.0.10.77}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hello-1, labels: {kubernetes.io/service-name: hello}}
addressType: IPv4
ports: [{port: %d}]
endpoints: [{addresses: [127.0.0.1]}]
`, pod.Addr().(*net.TCPAddr).Port)).Objects

	plan := forward.Compile(snapshot.Of(objects...), nil, snapshot.Key{}, "n1")
	f := forward.New(slog.New(slog.DiscardHandler))
	f.Set(plan)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for at := range plan.Targets {
		fmt.Println(at)
		var c net.Conn
		for c == nil { // until Run listens
			c, _ = net.Dial("tcp", at.String())
		}
		text, _ := io.ReadAll(c)
		fmt.Print(string(text))
		c.Close()
	}
	stop()
	<-ended
	// Output:
	// 127.0.10.77:8099
	// hello from the pod
}
