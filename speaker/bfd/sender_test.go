package bfd

import (
	"net/netip"
	"testing"

	"quayside.io/test/netns"
)

// TestALinkThatIsMadeAnewHasItsSenderAtOnce: package net remembers for a minute
// which number the name of an interface had.
func TestALinkThatIsMadeAnewHasItsSenderAtOnce(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	e := ends{peer: netip.MustParseAddr("fe80::b"), local: netip.MustParseAddr("fe80::a"), link: "lan0"}
	for range 2 {
		netns.Sh(t, "ip link add lan0 type veth peer name lan1; ip addr add fe80::a/64 dev lan0 nodad; ip link set lan0 up; ip link set lan1 up")
		s, err := openSender(e, func(uint16) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		netns.Sh(t, "ip link del lan0")
	}
}
