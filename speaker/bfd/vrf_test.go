package bfd

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"quayside.io/speaker/bfd/session"
	"quayside.io/test/netns"
)

// TestFRRInAVRF: both ends of a session are bound to the VRF that the link to the
// router belongs to; the routes of the machine itself lead elsewhere.
func TestFRRInAVRF(t *testing.T) {
	const add = "ip link add red type vrf table 10"
	if !netns.IsInside(t) && netns.Lacks("unshare") == "" {
		if out, err := exec.Command("unshare", "-n", "sh", "-ec", add).CombinedOutput(); err != nil {
			t.Skipf("the kernel has no VRF: %v: %s", err, out)
		}
	}
	if !inNamespace(t, "vtysh", frrDaemons+"/bfdd") {
		return
	}
	n := connect(t)
	netns.Sh(t, add+"; ip link set red up; ip link set lan0 master red")
	heldBy(t, n, "red")
}

// TestFRROnABoundDevice is the same with what every kernel has: sockets that are
// bound to a device that is no VRF. They hear nothing else, and a session without
// a VRF is another one, at the same address.
func TestFRROnABoundDevice(t *testing.T) {
	if !inNamespace(t, "vtysh", frrDaemons+"/bfdd") {
		return
	}
	heldBy(t, connect(t), "lan0")
}

// heldBy holds a session with FRR whose sockets are bound to a device.
func heldBy(t *testing.T, n *neighbor, device string) {
	t.Helper()
	n.startFRR("peer 10.0.0.1 interface eth0")
	d := start(t)
	s := Session{Peer: netip.MustParseAddr("10.0.0.9"), VRF: device, Transmit: 50 * ms, Receive: 50 * ms}
	nowhere, elsewhere := s, s
	nowhere.VRF, elsewhere.VRF = "no-such-vrf", "lo"
	d.Set(&Want{map[string]Session{"r": s, "nowhere": nowhere, "elsewhere": elsewhere}})
	d.await("a session in the VRF only", func(all map[string]Status) bool {
		return all["r"].State == session.Up && strings.Contains(all["nowhere"].Problem, "no-such-vrf")
	})
	if state := d.State()["elsewhere"].State; state == session.Up {
		t.Errorf("the session of another device is %v", state)
	}
}
