package e2e

import (
	"fmt"
	"testing"

	"quayside.io/test/lab"
)

// A router learns the address of a Service from every node, with the attributes
// of its advertisement, over sessions with a password from a Secret; one with
// externalTrafficPolicy: Local from the nodes of its ready pods only, and without
// a pod neither. It spreads over all of them (ECMP), and what it learns it reaches.
// So does a pod behind the Service (hairpin). What it tells in turn no node learns.
func TestBGPRouterLearnsServices(t *testing.T) {
	beside(t)
	e := big(t)
	pod := e.Pod(1, "web-1", lab.Labels{"app": "web"})
	e.Apply(bgpSecret("tor", "hush"))
	r := newRack(e, ", passwordSecret: {name: tor}", "password hush")
	e.Apply(bgpService("far", "Cluster") + bgpService("near", "Local"))
	far, near := e.serviceAddress("far"), e.serviceAddress("near")
	r.learns(far, e.hops()...)
	r.learns(near, e.hops(e.Node(1))...)
	for _, address := range []string{far, near} {
		for _, host := range []lab.Host{r.router.Host, r.laptop.Host, pod.Host} {
			e.servesTo(host, address)
		}
	}
	r.tells("203.0.113.0/24")
	for _, n := range e.Nodes() {
		if route := n.Exec("ip", "route", "show", "203.0.113.0/24"); route != "" {
			t.Errorf("%s has learned %s", n.Name(), route)
		}
	}
	text := e.Quayside().Speaker(e.Node(1)).Admin("/metrics")
	for name, want := range map[string]float64{"session_up": 1, "announced_prefixes": 2, "session_flaps_total": 0} {
		if got := sample(t, text, "quayside_bgp_"+name, "peer", "tor"); got != want {
			t.Errorf("quayside_bgp_%s is %v, want %v", name, got, want)
		}
	}
	if sample(t, text, "quayside_bgp_updates_received_total", "peer", "tor") == 0 {
		t.Error("no UPDATE from the router is counted")
	}
	e.Eventually(settle, func() error {
		for node, s := range e.speakerStatuses() {
			b := s.Status.BGPSessions
			if len(b) != 1 || b[0].Peer != "tor" || b[0].State != "Established" || b[0].Hash == "" {
				return fmt.Errorf("%s says %+v", node, b)
			}
		}
		return nil
	})
	pod.Delete()
	r.learns(near)
	r.learns(far) // that another cluster has, too, may be served there
	e.Pod(2, "web-2", lab.Labels{"app": "web"})
	r.learns(far, e.hops()...)
	r.learns(near, e.hops(e.Node(2))...)
}

// bgpSecret holds a password for BGPPeers.
func bgpSecret(name, password string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: quayside-system}
type: kubernetes.io/basic-auth
stringData: {password: %s}
`, name, password)
}

// A password that is rotated in its Secret resets the sessions with that router,
// and no others.
func TestBGPPasswordRotation(t *testing.T) {
	beside(t)
	e := three(t)
	e.Apply(bgpSecret("left", "one") + "---" + bgpSecret("right", "two"))
	left, right := e.bgpRouter("left", 65001, "password one"), e.bgpRouter("right", 65001, "password two")
	e.Apply(bgpPool + bgpPeer(left, "left", 65001, ", passwordSecret: {name: left}") + bgpPeer(right, "right", 65001, ", passwordSecret: {name: right}"))
	e.sessionsUp(left)
	e.sessionsUp(right)
	before := e.neighbours(right)

	e.Apply(bgpSecret("left", "three"))
	e.Eventually(settle, func() error { // all have the new one, and the router has not
		for ip, n := range e.neighbours(left) {
			if n.State == "Established" {
				return fmt.Errorf("the session with %s goes on", ip)
			}
		}
		return nil
	})
	commands := "configure terminal\nrouter bgp 65001\n"
	for _, hop := range e.hops() {
		commands += "neighbor " + hop + " password three\n"
	}
	left.Show(commands)
	e.sessionsUp(left)
	for ip, n := range e.neighbours(right) {
		if n.State != "Established" || n.Dropped != before[ip].Dropped {
			t.Errorf("the session of %s with the other router: %+v, was %+v", ip, n, before[ip])
		}
	}
}

// BFD guards the sessions: a node that falls silent loses its routes long before
// the hold time of 90 s, and gets them back.
func TestBGPWithBFD(t *testing.T) {
	beside(t)
	e := three(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	e.Apply(`
apiVersion: quayside.io/v1alpha1
kind: BFDProfile
metadata: {name: quick}
spec: {receiveInterval: 100, transmitInterval: 100, detectMultiplier: 5}
`)
	r := newRack(e, ", bfdProfile: quick", "bfd")
	e.Apply(bgpService("far", "Cluster"))
	far := e.serviceAddress("far")
	r.learns(far, e.hops()...)
	e.Eventually(settle, func() error { return bfdUp(r.router, e.hops()) })
	e.Eventually(settle, func() error {
		text := e.Quayside().Speaker(e.Node(1)).Admin("/metrics")
		if up := sample(t, text, "quayside_bfd_session_up", "peer", "tor"); up != 1 {
			return fmt.Errorf("quayside_bfd_session_up is %v", up)
		}
		return nil
	})
	silent := e.Node(3)
	silent.Fail()
	r.learns(far, e.hops(e.Node(1), e.Node(2))...)
	silent.Heal()
	r.learns(far, e.hops()...)
	e.Eventually(settle, func() error { return bfdUp(r.router, e.hops()) })
}

// An address that is announced by BGP and on layer 2: the router has it from
// every node, the LAN from one, and both are served.
func TestBGPBesideLayer2(t *testing.T) {
	beside(t)
	e := three(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	r := newRack(e, "")
	e.Apply(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: both}
spec: {autoAssign: false, addresses: [10.77.0.244/31]}
---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: both}
spec: {ipAddressPools: [both]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: both}
spec: {ipAddressPools: [both], communities: ["65000:7"]}
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {quayside.io/address-pool: both}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`)
	address := e.serviceAddress("web")
	r.learns(address, e.hops()...)
	owner := e.owner(r.laptop, address)
	for _, from := range []lab.Host{r.laptop.Host, r.router.Host} {
		e.servesTo(from, address)
	}
	// The owner's speaker ends: the LAN has another, the router one way less.
	speaker := e.Quayside().Speaker(owner)
	speaker.Stop()
	var rest []*lab.Node
	for _, n := range e.Nodes() {
		if n.Name() != owner.Name() {
			rest = append(rest, n)
		}
	}
	r.learns(address, e.hops(rest...)...)
	if next := e.owner(r.laptop, address); next.Name() == owner.Name() {
		t.Errorf("%s still answers on the LAN", owner.Name())
	}
	speaker.Start()
	r.learns(address, e.hops()...)
}
