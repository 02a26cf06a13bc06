package explain_test

import (
	"fmt"
	"os"
	"time"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/explain"
	"quayside.io/proxy/route"
)

// Why does nobody answer? The first broken link of the path says so.
func ExampleTrace() {
	decoded := manifest.Decode("shop.yaml", []byte(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: default}
spec:
  ingressClassName: quayside
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: quayside}
spec: {controller: quayside.io/ingress}
`))
	c := snapshot.Of(decoded.Objects...)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	inputs := explain.Inputs{Cluster: c, Now: now, Routes: route.Compile(c, nil, route.Options{Now: now})}

	target, err := explain.ParseTarget("http://shop.example.com/cart")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := explain.Trace(inputs, target).WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// http://shop.example.com/cart
	//   broken  address  Ingress default/shop has no address: there is no Service of the proxies; install them (proxy.enabled of the chart), or name the address by --publish-address
	//   broken  route    Ingress default/shop, host "shop.example.com", path / (Prefix), is closed with 503: Service default/web does not exist; create it, or name another in the Ingress
	// The first broken link is "address".
}
