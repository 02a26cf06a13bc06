package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		name    string
		bfd     bool
		timings string
	}{
		{"BFD 50 ms × 3", true, "30 90"},
		{"hold time 3 s, no BFD", false, "1 3"},
	} {
		for _, m := range []mover{byQuayside(binary), byFRR()} {
			outages, err := silence(rounds, m, guard.bfd, guard.timings)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			outages.print(fmt.Sprintf("a node falls silent, %s, %s", guard.name, m.name), "ms")
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

func bfdOf(peer string) string {
	return fmt.Sprintf("bfd\n peer %s\n  detect-multiplier 3\n  receive-interval 50\n  transmit-interval 50\n exit\nexit\n", peer)
}

// silence measures one mover, round by round.
func silence(rounds int, m mover, bfd bool, timers string) (outages series, err error) {
	router, err := newHost("router")
	if err != nil {
		return nil, err
	}
	defer router.close()
	config := fmt.Sprintf("router bgp 65001\n bgp router-id 10.0.1.1\n no bgp ebgp-requires-policy\n timers bgp %s\n", timers)
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
		config += fmt.Sprintf(" neighbor 10.0.%d.2 remote-as %d\n neighbor 10.0.%d.2 timers connect 1\n", n, ourASN, n)
		if bfd {
			config += fmt.Sprintf(" neighbor 10.0.%d.2 bfd\n", n)
		}
	}
	if bfd {
		config += bfdOf("10.0.1.2") + bfdOf("10.0.2.2")
	}
	if err := router.frr(config, "zebra", "bfdd", "bgpd"); err != nil {
		return nil, err
	}
	for n, node := range nodes {
		if err := m.announce(node, n+1, bfd); err != nil {
			return nil, err
		}
	}
	c, err := startClient(router)
	if err != nil {
		return nil, err
	}
	for range rounds {
		if err := within(60*time.Second, "both nodes are known", func() error { return router.knowsBoth(bfd) }); err != nil {
			return nil, err
		}
		out, err := c.strike(nodes[0])
		if err != nil {
			return nil, err
		}
		outages = append(outages, out)
	}
	return outages, nil
}

// knowsBoth returns nil when a router has a path to either node and, if asked,
// BFD watches over both.
func (h *host) knowsBoth(bfd bool) error {
	for _, q := range []struct {
		daemon, ask, says string
		asked             bool
	}{
		{"bgpd", "show bgp ipv4 unicast " + service + "/32 json", `"type":"external"`, true},
		{"bfdd", "show bfd peers json", `"status":"up"`, bfd},
	} {
		if !q.asked {
			continue
		}
		v, err := h.vty(q.daemon)
		if err != nil {
			return err
		}
		answer, err := v.ask(q.ask)
		_ = v.Close()
		if err != nil {
			return err
		}
		if n := strings.Count(string(answer), q.says); n != 2 {
			return fmt.Errorf("%s says %d times %s, not twice", q.daemon, n, q.says)
		}
	}
	return nil
}
