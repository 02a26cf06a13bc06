package command

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"quayside.io/test/netns"
)

const onTheLAN = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: [10.0.0.50-10.0.0.51, 10.9.0.50/32]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.50, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: default}
spec: {type: LoadBalancer, loadBalancerIP: 10.9.0.50, selector: {app: web}, ports: [{port: 80}]}
`

// Who announces from files answers on the LAN. He hears what the speaker finds,
// and that connections which the LAN sends here are not carried on.
func TestUpAnnounces(t *testing.T) {
	if !netns.Inside(t, time.Minute, "arping") {
		return
	}
	neighbour := exec.Command("sleep", "60")
	neighbour.SysProcAttr = netns.Own()
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = neighbour.Process.Kill(); _ = neighbour.Wait() })
	enter := fmt.Sprintf("nsenter -t %d -n ", neighbour.Process.Pid)
	netns.Sh(t, fmt.Sprintf("ip link set lo up; ip link add lan0 up type veth peer name eth0 netns %d; ip addr add 10.0.0.1/24 dev lan0", neighbour.Process.Pid))
	netns.Sh(t, enter+"ip link set eth0 up; "+enter+"ip addr add 10.0.0.9/24 dev eth0")

	dir, at, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	writeFile(t, dir, "services.yaml", onTheLAN)
	start(t, "up", "-f", dir, "--http", at, "--https", "", "--admin", admin, "--announce")
	eventually(t, admin, "", "/state", 200, `"announced": [`)
	if out := netns.Sh(t, enter+"arping -r -c 1 -w 5 -i eth0 10.0.0.50"); !strings.Contains(strings.ToLower(out), netns.MAC(t, "", "lan0")) {
		t.Errorf("10.0.0.50 is at %q", out)
	}
	eventually(t, admin, "", "/state", 200, "brings the traffic for 10.0.0.50 here, and carries connections to loopback addresses only")
	eventually(t, admin, "", "/state", 200, "no node can announce 10.9.0.50")
	if _, state, _ := get(admin, "", "/state"); strings.Contains(state, "the traffic for 10.9.0.50") {
		t.Errorf("told of the traffic for an address that is not announced:\n%s", state)
	}
}
