package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// Peers in other words than usual: localASN replaces our AS number, nodes are of
// two autonomous systems, one whose network is not set up is not on the way, and
// two Services share an address, which stays until the last of them goes.
func TestBGPPeersAndNodesOfManyKinds(t *testing.T) {
	beside(t)
	e := three(t)
	e.podOnEachNode()
	var b strings.Builder
	b.WriteString("router bgp 65001\n no bgp ebgp-requires-policy\n bgp bestpath as-path multipath-relax\n")
	for n, asn := range []int{64999, 64501, 64502} {
		fmt.Fprintf(&b, " neighbor %s remote-as %d\n", e.Node(n+1).IP(), asn)
	}
	r := rack{edge: e, router: e.Router("tor", b.String())}
	peers := bgpPool
	for n, spec := range []string{"myASN: 64500, localASN: 64999", "myASN: 64501", "myASN: 64502"} {
		name := fmt.Sprintf("tor-%d", n+1)
		e.mark(e.Node(n+1).Name(), "tor", name)
		peers += fmt.Sprintf(`
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: %s}
spec: {%s, peerASN: 65001, peerAddress: %s, connectTime: 1s, nodeSelectors: [{matchLabels: {tor: %s}}]}
`, name, spec, r.router.IP(), name)
	}
	shared := func(name string, port int) string {
		return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %s, annotations: {quayside.io/allow-shared-ip: key, quayside.io/loadBalancerIPs: 198.51.100.77}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: %d, targetPort: http}]}
`, name, port)
	}
	e.Apply(peers + shared("one", 80) + shared("two", 8080))
	address := e.serviceAddress("one")
	if other := e.serviceAddress("two"); other != address {
		t.Fatalf("%s and %s are not shared", address, other)
	}
	r.learns(address, e.hops()...)
	r.paths(address, "64501", "64502", "64999")

	e.setNetworkUnavailable(e.Node(2).Name(), true)
	t.Cleanup(func() { e.setNetworkUnavailable(e.Node(2).Name(), false) })
	r.learns(address, e.hops(e.Node(1), e.Node(3))...)
	e.setNetworkUnavailable(e.Node(2).Name(), false)
	r.learns(address, e.hops()...)

	services := e.Kube().CoreV1().Services(e.Namespace())
	if err := services.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Eventually(settle, func() error { // nobody says when the speakers have seen it
		if _, err := r.router.Try("http://"+address+"/", lab.Timeout(time.Second)); err == nil {
			return errors.New("the Service that is gone still answers")
		}
		return nil
	})
	r.learns(address, e.hops()...)
	r.servesTo(r.router.Host, address+":8080")
	if err := services.Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.learns(address)
}

// paths are what the ways to an address say of the systems on them.
func (r rack) paths(address string, want ...string) {
	r.t.Helper()
	paths, err := bgpPaths(r.router, address)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, p := range paths {
		got = append(got, p.Path.String)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.t.Errorf("the paths to %s are %q, want %q", address, got, want)
	}
}
