package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

const hostNetworkIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: quayside
  tls: [{hosts: [secure.example.com], secretName: secure}]
  rules:
  - host: shop.example.com
    http:
      paths: [{path: /, pathType: Prefix, backend: {service: {name: store, port: {number: 3000}}}}]
  - host: secure.example.com
    http:
      paths: [{path: /, pathType: Prefix, backend: {service: {name: store, port: {number: 3000}}}}]
`

// The packed chart puts a proxy on the ports 80 and 443 of every node, without an address of
// its own: Ingresses name the nodes, each of which serves them, over TLS too, and what no rule is
// for is answered by the Service that the values name.
func TestProxiesOnTheNodesOwnPorts(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	archive, err := chart.Pack(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	release, err := chart.NewRelease("quayside", lab.SystemNamespace, archive, lab.Values{
		"speaker": lab.Values{"enabled": false},
		"proxy": lab.Values{
			"kind": "DaemonSet", "hostNetwork": lab.Values{"enabled": true}, "ports": lab.Values{"http": 80, "https": 443},
			"service": lab.Values{"enabled": false}, "defaultBackendService": e.Namespace() + "/fallback",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.serve("store", "fallback")
	e.Apply(clusterIPServices("store", "fallback"))
	e.InstallRelease(release)
	t.Cleanup(func() {
		if err := e.Uninstall(context.Background()); err != nil {
			t.Error(err)
		}
	})
	roots := e.tlsSecret("secure", "secure.example.com")
	e.Apply(hostNetworkIngress)
	var nodes []string
	for _, n := range e.Nodes() {
		nodes = append(nodes, n.IP())
	}
	slices.Sort(nodes)
	e.Eventually(settle, func() error {
		i, err := e.Kube().NetworkingV1().Ingresses(e.Namespace()).Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var have []string
		for _, ingress := range i.Status.LoadBalancer.Ingress {
			have = append(have, ingress.IP)
		}
		if slices.Sort(have); !slices.Equal(have, nodes) {
			return fmt.Errorf("the Ingress names %v, want %v", have, nodes)
		}
		return nil
	})
	laptop := e.Client("laptop")
	for _, node := range nodes {
		e.until(laptop, node, "http://shop.example.com/", "store")
		e.until(laptop, node, "http://nobody.example.com/", "fallback")
		e.Eventually(settle, func() error { // the right to read the certificate may come after the route
			resp, err := laptop.Try("https://secure.example.com/", lab.Via(node+":443"), lab.TLS(verify(roots, "secure.example.com")))
			if err == nil && resp.Status != http.StatusOK {
				err = fmt.Errorf("status %d from %s", resp.Status, node)
			}
			return err
		})
	}
}
