package bgp

import (
	"fmt"
	"net/netip"
	"testing"
)

// BenchmarkOneChange is what a change of one prefix among many costs each session
// before the peer is told, and after.
func BenchmarkOneChange(b *testing.B) {
	attributes := &Attributes{}
	var all []Route
	for i := range 10_001 {
		all = append(all, Route{netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, byte(i >> 8), byte(i)}), 32), attributes})
	}
	l := link{asn: 64500, external: true, own: [2]netip.Addr{netip.MustParseAddr("10.0.0.1")}, families: [2]bool{true}}
	for _, part := range []struct {
		name string
		do   func() int
	}{
		{"difference", func() int { c := diff(all[:10_000], all); return len(c.announce[ipv4]) }},
		{"tally", func() int { return l.tally(all).announced }},
	} {
		b.Run(fmt.Sprintf("%s-%d", part.name, len(all)), func(b *testing.B) {
			for b.Loop() {
				part.do()
			}
		})
	}
}
