package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// A router learns the address of a Service from every node, with the attributes
// of its advertisement, over sessions with a password from a Secret; one with
// externalTrafficPolicy: Local from the nodes of its ready pods only. What it
// learns it reaches.
func TestBGPRouterLearnsServices(t *testing.T) {
	beside(t)
	e := big(t)
	pod := e.Pod(1, "web-1", lab.Labels{"app": "web"})
	home := e.Nodes()[0].IP()
	neighbours, hops := "", []string{}
	for _, name := range e.everyNode() {
		ip := e.nodeNamed(name).IP()
		neighbours += fmt.Sprintf(" neighbor %s remote-as 64500\n neighbor %s password hush\n", ip, ip)
		hops = append(hops, ip)
	}
	slices.Sort(hops)
	router := e.Router("tor", "router bgp 65001\n no bgp ebgp-requires-policy\n bgp bestpath as-path multipath-relax\n"+neighbours)
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: tor, namespace: quayside-system}
type: kubernetes.io/basic-auth
stringData: {password: hush}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: bgp}
spec: {autoAssign: false, addresses: [198.51.100.0/24]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: bgp}
spec: {ipAddressPools: [bgp], communities: ["65000:7"]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64500, peerASN: 65001, peerAddress: ` + router.IP() + `, holdTime: 9s, passwordSecret: {name: tor}}
---
apiVersion: v1
kind: Service
metadata: {name: far, annotations: {quayside.io/address-pool: bgp}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: near, annotations: {quayside.io/address-pool: bgp}}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`)
	far, near := e.serviceAddress("far"), e.serviceAddress("near")
	learns := func(address string, want ...string) {
		t.Helper()
		e.Eventually(30*time.Second, func() error {
			got, err := nextHops(router, address, "65000:7")
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("%s by %v, want %v", address, got, want)
			}
			return err
		})
	}
	learns(far, hops...)
	learns(near, home)
	for _, address := range []string{far, near} {
		if got := router.Get("http://" + address + "/").Status; got != 200 {
			t.Errorf("%s answers %d to the router", address, got)
		}
	}
	e.Eventually(30*time.Second, func() error {
		for node, s := range e.speakerStatuses() {
			b := s.Status.BGPSessions
			if len(b) != 1 || b[0].Peer != "tor" || b[0].State != "Established" || b[0].Hash == "" {
				return fmt.Errorf("%s says %+v", node, b)
			}
		}
		return nil
	})
	pod.Delete()
	learns(near)
}

// nextHops are those of an address in the router's table, ordered. All its paths
// must have that community.
func nextHops(router *lab.Router, address, community string) ([]string, error) {
	out, err := router.TryShow("show bgp ipv4 unicast " + address + "/32 json")
	if err != nil {
		return nil, err
	}
	var entry struct {
		Paths []struct {
			Community struct{ String string }
			NextHops  []struct{ IP string } `json:"nexthops"`
		}
	}
	if err := json.Unmarshal([]byte(out), &entry); err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, p := range entry.Paths {
		if p.Community.String != community {
			return nil, fmt.Errorf("community %q", p.Community.String)
		}
		have[p.NextHops[0].IP] = true
	}
	return slices.Sorted(maps.Keys(have)), nil
}
