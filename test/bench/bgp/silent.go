package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// service is the address whose holder falls silent.
const service = "192.0.2.1"

// silent measures how long a Service has no answer when a node falls silent.
func silent(rounds int) error {
	binary, err := build()
	if err != nil {
		return err
	}
	defer os.Remove(binary)
	for _, guard := range []struct {
		name   string
		timers timers
		outer  []outer
	}{
		{"BFD 50 ms × 3", timers{bfd: true, keepalive: 30, hold: 90}, []outer{outerFRR(), outerBIRD()}},
		{"hold time 3 s", timers{keepalive: 1, hold: 3}, []outer{outerFRR()}},
	} {
		for _, r := range guard.outer {
			for _, m := range []mover{byQuayside(binary), byFRR()} {
				outages, err := silence(rounds, m, r, guard.timers)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, r.name, err)
				}
				outages.print(fmt.Sprintf("a node falls silent, %s, %s, %s", guard.name, m.name, r.name), "ms")
			}
		}
	}
	return nil
}

// build makes the binary whose nodes are measured.
func build() (string, error) {
	binary := filepath.Join(os.TempDir(), fmt.Sprint("quayside-bench-", os.Getpid()))
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "quayside.io")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// mover announces the Service on a node, whose number is 1 or 2; the second node
// says that it is farther away.
type mover struct {
	name     string
	announce func(node *host, n int, bfd bool) error
}

func byQuayside(binary string) mover {
	return mover{"Quayside", func(node *host, n int, bfd bool) error {
		guard, hold := "", "holdTime: 3s"
		if bfd {
			guard, hold = ", bfdProfile: fast", "holdTime: 90s"
		}
		manifest := filepath.Join(node.dir, "bgp.yaml")
		if err := os.WriteFile(manifest, fmt.Appendf(nil, quaysideManifest, n, n, n-1, n, hold, guard), 0o644); err != nil {
			return err
		}
		return node.begin(node.command(binary, "up", "--announce", "--node-name", fmt.Sprint("n", n), "-f", manifest,
			"--http", "127.0.0.1:8080", "--https", "127.0.0.1:8443", "--log-level", "error"))
	}}
}

const quaysideManifest = `
apiVersion: v1
kind: Node
metadata: {name: n%d}
status: {addresses: [{type: InternalIP, address: 10.0.%d.2}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: bgp}
spec: {addresses: [192.0.2.1/32]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: bgp}
spec: {asPathPrepend: %d}
---
apiVersion: quayside.io/v1alpha1
kind: BFDProfile
metadata: {name: fast}
spec: {receiveInterval: 50, transmitInterval: 50, detectMultiplier: 3}
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: router}
spec: {myASN: 64500, peerASN: 65001, peerAddress: 10.0.%d.1, connectTime: 1s, %s%s}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, clusterIP: 10.96.0.9, ports: [{port: 7777, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1]}]
`

func byFRR() mover {
	return mover{"FRR's bgpd and bfdd", func(node *host, n int, bfd bool) error {
		config := fmt.Sprintf(`router bgp 64500
 bgp router-id 10.0.%[1]d.2
 no bgp ebgp-requires-policy
 neighbor 10.0.%[1]d.1 remote-as 65001
 neighbor 10.0.%[1]d.1 timers connect 1
`, n)
		if bfd {
			config += fmt.Sprintf(" neighbor 10.0.%d.1 bfd\n", n)
		}
		config += " address-family ipv4 unicast\n  network " + service + "/32\n"
		if n > 1 {
			config += fmt.Sprintf("  neighbor 10.0.%d.1 route-map far out\n", n)
		}
		config += " exit-address-family\nroute-map far permit 1\n set as-path prepend 64500\n"
		if bfd {
			config += bfdOf(fmt.Sprintf("10.0.%d.1", n))
		}
		return node.frr(config, "zebra", "bfdd", "bgpd")
	}}
}

// silence measures one mover before one router, round by round.
func silence(rounds int, m mover, r outer, t timers) (outages series, err error) {
	router, err := newHost("router")
	if err != nil {
		return nil, err
	}
	defer router.close()
	var nodes []*host
	for n := 1; n <= 2; n++ {
		node, err := newHost(fmt.Sprint("node", n))
		if err != nil {
			return nil, err
		}
		defer node.close()
		nodes = append(nodes, node)
		if err := firstOf(
			sh("ip link add eth%d netns %d type veth peer name eth0 netns %d", n, router.pid, node.pid),
			router.sh("ip addr add 10.0.%d.1/24 dev eth%d; ip link set eth%d up", n, n, n),
			node.sh("ip addr add 10.0.%d.2/24 dev eth0; ip link set eth0 up; ip addr add %s/32 dev lo", n, service),
			// The clients are at the router, whose address on the way differs.
			node.sh("ip route add default via 10.0.%d.1", n),
			node.begin(node.asRole("echo", fmt.Sprint(n)))); err != nil {
			return nil, err
		}
	}
	if err := r.start(router, t); err != nil {
		return nil, err
	}
	for n, node := range nodes {
		if err := m.announce(node, n+1, t.bfd); err != nil {
			return nil, err
		}
	}
	c, err := startClient(router)
	if err != nil {
		return nil, err
	}
	for range rounds {
		if err := within(60*time.Second, "both nodes are known", func() error { return r.knowsBoth(router, t) }); err != nil {
			return nil, err
		}
		// Both are known from the moment at which a packet came. Nodes do not fall
		// silent just then.
		time.Sleep(rand.N(200 * time.Millisecond))
		out, err := c.strike(nodes[0])
		if err != nil {
			return nil, err
		}
		outages = append(outages, out)
	}
	return outages, nil
}
