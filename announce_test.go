package main

import (
	"testing"
	"time"

	"quayside.io/test/netns"
)

const onTheLAN = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: [10.0.0.50/32]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`

// Who announces from files hears what the speaker finds, and that an address
// which the LAN sends here is not carried on.
func TestUpTellsWhatAnnouncingDoesNotDo(t *testing.T) {
	if !netns.Inside(t, time.Minute) { // nothing is announced on this machine's LAN
		return
	}
	netns.Sh(t, "ip link set lo up; ip link add lan0 up type bridge; ip addr add 10.9.0.1/24 dev lan0")
	dir, at, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	writeFile(t, dir, "service.yaml", onTheLAN)
	start(t, "up", "-f", dir, "--http", at, "--https", "", "--admin", admin, "--announce")
	eventually(t, admin, "", "/state", 200, "brings the traffic for 10.0.0.50 here, and carries connections to loopback addresses only")
	eventually(t, admin, "", "/state", 200, "no node can announce 10.0.0.50")
}
