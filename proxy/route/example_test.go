package route_test

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// The longest path that matches wins, and what is wrong is told to the owner of
// the Ingress.
func Example() {
	files := manifest.Decode("shop.yaml", []byte(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site}
spec:
  ingressClassName: quayside
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /cart, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
`))
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "quayside"}, Spec: networkingv1.IngressClassSpec{Controller: "quayside.io/ingress"},
	}
	table := route.Compile(snapshot.Of(append(files.Objects, class)...), nil, route.Options{})
	for _, path := range []string{"/", "/cartoon", "/cart/1"} {
		r, _ := table.Match(&exchange.Request{Host: []byte("shop.example.com"), Path: []byte(path)})
		if r.Closed != "" {
			fmt.Printf("%s is answered with a 503: %s\n", path, r.Closed)
			continue
		}
		fmt.Printf("%s matches %s and leads to Service %s\n", path, r.Path, r.Service)
	}
	for _, p := range table.Problems {
		fmt.Println(p)
	}
	// Output:
	// / matches / and leads to Service default/web
	// /cartoon matches / and leads to Service default/web
	// /cart/1 is answered with a 503: Service default/cart does not exist; create it, or name another in the Ingress
	// Ingress default/site: MissingService: path shop.example.com/cart: Service default/cart does not exist; create it, or name another in the Ingress; its requests get a 503
}
