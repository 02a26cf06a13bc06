package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab"
)

// The cluster says that a node has a ready endpoint, and the node's kube-proxy,
// asked at the Service's healthCheckNodePort, that it has none and would drop what
// is sent there: it overlooks an EndpointSlice with the label of headless Services.
// Routers go elsewhere until it sees it.
func TestBGPAsksKubeProxyOfAService(t *testing.T) {
	beside(t)
	e := three(t)
	pod := e.Pod(1, "web-1", lab.Labels{"app": "web"})
	r := rack{edge: e, router: e.bgpRouter("tor", 65001)}
	e.Apply(bgpPool + bgpPeer(r.router, "tor", 65001, "") + fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: near, annotations: {quayside.io/address-pool: bgp}}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: near, labels: {kubernetes.io/service-name: near, endpointslice.kubernetes.io/managed-by: lab}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [%q], nodeName: %s, conditions: {ready: true}}]
`, pod.IP(), pod.Node()))
	near := e.serviceAddress("near")
	r.learns(near, e.hops(e.Node(1))...)
	overlooked := func(label string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"service.kubernetes.io/headless":%s}}}`, label)
		if _, err := e.Kube().DiscoveryV1().EndpointSlices(e.Namespace()).Patch(t.Context(), "near", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	overlooked(`""`)
	r.learns(near)
	e.told("Service", "near", "EndpointsUnknownToKubeProxy: node "+pod.Node())
	overlooked("null")
	r.learns(near, e.hops(e.Node(1))...)
	r.servesTo(r.router.Host, near)
}
