package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/manifest"
	"quayside.io/proxy"
)

// A proxy serves what the Ingresses of a cluster say, here of one made of files.
func Example() {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from ", r.Host) }))
	defer pod.Close()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	files.Put(manifest.Decode("shop.yaml", fmt.Appendf(nil, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site}
spec:
  ingressClassName: quayside
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: %d}]
endpoints: [{addresses: [127.0.0.1]}]
`, pod.Listener.Addr().(*net.TCPAddr).Port)).Objects...)
	p, err := proxy.New(proxy.Options{Source: files.Source, NodeName: "n1", HTTP: "127.0.0.1:0", AllowLoopback: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- files.Run(ctx) }()
	go func() { ended <- p.Run(ctx) }()
	for p.Ready() != nil {
		time.Sleep(time.Millisecond)
	}

	r, _ := http.NewRequest(http.MethodGet, "http://"+p.Listeners()[0].Bound, nil)
	r.Host, r.Close = "shop.example.com", true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	fmt.Printf("%d %s\n", response.StatusCode, text)
	stop()
	<-ended
	<-ended
	// Output:
	// 200 hello from shop.example.com
}
