package bgp

import (
	"os/exec"
	"testing"

	"quayside.io/test/netns"
)

// TestFRRInAVRF: the session is bound to the VRF that the link to the router
// belongs to; the routes of the machine itself lead elsewhere.
func TestFRRInAVRF(t *testing.T) {
	const add = "ip link add red type vrf table 10"
	if !netns.IsInside(t) && netns.Lacks("unshare") == "" {
		if out, err := exec.Command("unshare", "-n", "sh", "-ec", add).CombinedOutput(); err != nil {
			t.Skipf("the kernel has no VRF: %v: %s", err, out)
		}
	}
	if !inNamespace(t, "vtysh") {
		return
	}
	netns.Sh(t, add+"; ip link set red up")
	r := newRouter(t, 1)
	netns.Sh(t, "ip link set r1 master red")
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	s := start(t, Options{})
	set := settings(1)
	set.IPv6 = false // the kernel drops IPv6 addresses of a link that changes its VRF
	set.Device = "red"
	s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.1/32")))
	s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
}

// TestAVRFThatIsNotThereIsTold, on every kernel.
func TestAVRFThatIsNotThereIsTold(t *testing.T) {
	set := settings(1)
	set.Device = "no-such-vrf"
	s := start(t, Options{})
	s.Set(one("r", set, nil))
	s.awaitError("r", "cannot bind to no-such-vrf")
}
