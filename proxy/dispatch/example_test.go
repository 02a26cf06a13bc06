package dispatch_test

import (
	"fmt"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// pod answers instead of a backend.
type pod struct{}

func (pod) Forward(ex *exchange.Exchange) { ex.Answer(200, "hello from the pod") }

// The component declares the routes and who forwards to each of their backends; a front
// end passes each request to Handle, writes the response, and tells the Observer.
func Example() {
	objects := manifest.Decode("shop.yaml", []byte(`
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
`)).Objects
	d := dispatch.New(dispatch.Options{})
	table := route.Compile(snapshot.Of(objects...), nil, route.Options{})
	d.SetTable(table, []dispatch.Forwarder{pod{}}) // one for each of table.Backends

	for _, host := range []string{"shop.example.com", "example.com"} {
		var ex exchange.Exchange
		ex.Request.Method, ex.Request.Host = []byte("GET"), []byte(host)
		ex.Request.Target, ex.Request.Path = []byte("/"), []byte("/")
		d.Handle(&ex)
		fmt.Printf("%s: %d %s\n", host, ex.Response.Status, ex.Response.Text)
		ex.Observer.Finished(&ex, false)
	}
	// Output:
	// shop.example.com: 200 hello from the pod
	// example.com: 404 404 Not Found: no Ingress has a rule for this host and path
}
