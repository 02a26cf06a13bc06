package members

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
)

// What a member says reaches every other, and not only most of them at most times: who has
// not heard of a claim is in error until the next push/pull exchange, which is half a minute
// away, or for good if the address is gone by then. When each of seven members sent it on four
// times, one of fifty did not hear of it in time.
func TestEveryClaimReachesEveryMember(t *testing.T) {
	for _, n := range []int{2, 3, 7, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			attended(t, n, 0, "default", func(t *testing.T, s *simulated, all []*Members) {
				time.Sleep(10 * time.Second)
				claims, late := make([]map[netip.Addr]int64, n), 0
				for i := range 60 {
					m, a := all[i%n], netip.AddrFrom4([4]byte{10, 1, byte(i / 256), byte(i)})
					w := s.want(i % n)
					w.Claims = maps.Clone(claims[i%n])
					if w.Claims == nil {
						w.Claims = map[netip.Addr]int64{}
					}
					w.Claims[a] = 1
					claims[i%n] = w.Claims
					m.Set(w)
					time.Sleep(3 * time.Second)
					want := announce.Claim{Epoch: 1, Node: m.opts.NodeName}
					for _, other := range all {
						if other.View().Claims[a] != want {
							late++
						}
					}
				}
				if late > 0 {
					t.Errorf("%d times a member had not heard of a claim after three seconds", late)
				}
			})
		})
	}
}
