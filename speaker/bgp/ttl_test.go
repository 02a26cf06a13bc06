package bgp

import (
	"testing"
	"time"
)

// TestTTLSecurityOnOneSideIsTold: whoever has it drops the packets of who has not,
// and gets no answer that says so. The other one's session may come up, since what
// begins it has another TTL, and is not heard from then on.
func TestTTLSecurityOnOneSideIsTold(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	ours, theirs := newRouter(t, 1), newRouter(t, 2)
	ours.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	theirs.frr(neighbor(65002, "10.0.2.1", "remote-as 64500", "ttl-security hops 1"))
	s := start(t, Options{OpenTime: 5 * time.Second})
	with, without := settings(1), settings(2)
	with.TTLSecurity, without.Hold = true, 3*time.Second
	s.Set(&Want{Sessions: []Session{{Name: "ours", Settings: with}, {Name: "theirs", Settings: without}}})
	s.awaitError("ours", "so it looks if the peer has no TTL security")
	s.awaitError("theirs", "nothing heard for 3s")
}
