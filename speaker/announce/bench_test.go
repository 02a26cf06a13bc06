package announce

import (
	"fmt"
	"net/netip"
	"testing"

	"quayside.io/cluster/snapshot"
)

// BenchmarkCompile is a speaker's whole decision: every address owned, as in
// daily life, and none owned, as after the first start of everything.
func BenchmarkCompile(b *testing.B) {
	for _, size := range []struct{ nodes, services int }{{3, 100}, {100, 1000}, {100, 10000}, {1000, 10000}} {
		w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}, Claims: map[netip.Addr]Claim{}}}
		for i := range size.nodes {
			w.addNode(twinNode{name: fmt.Sprintf("node-%d", i), alive: true, ready: true, subnet: true}, false)
		}
		w.objects = append(w.objects, lanPool("10.0.0.0/16"))
		for n, f := range w.view.Facts {
			f.Interfaces[0].Prefixes[0] = netip.PrefixFrom(f.Interfaces[0].Prefixes[0].Addr(), 16)
			w.view.Facts[n] = f
		}
		for i := range size.services {
			w.addService(fmt.Sprintf("s%05d", i), twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, byte(10 + i>>8), byte(i)})}, i)
		}
		c := snapshot.Of(w.objects...)
		b.Run(fmt.Sprintf("free/%dx%d", size.nodes, size.services), func(b *testing.B) {
			for b.Loop() {
				Compile(c, "node-0", w.view, epoch0(), Options{})
			}
		})
		for a, owner := range Compile(c, "node-0", w.view, epoch0(), Options{}).L2.Owners {
			w.view.Claims[a] = Claim{1, owner}
		}
		b.Run(fmt.Sprintf("owned/%dx%d", size.nodes, size.services), func(b *testing.B) {
			for b.Loop() {
				Compile(c, "node-0", w.view, epoch0(), Options{})
			}
		})
	}
}
