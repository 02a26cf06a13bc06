package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/lbpool"
)

// genPools draws pools whose entries nest, overlap and touch, some of one age.
func genPools(t *rapid.T) (pools []*v1alpha1.IPAddressPool) {
	for i := range rapid.IntRange(0, 4).Draw(t, "pools") {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}
		p.CreationTimestamp = metav1.NewTime(time.Unix(rapid.Int64Range(0, 2).Draw(t, "age"), 0))
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			from := rapid.IntRange(0, 63).Draw(t, "from")
			entry := fmt.Sprintf("10.0.0.%d-10.0.0.%d", from, rapid.IntRange(from, 63).Draw(t, "to"))
			if bits := rapid.IntRange(25, 33).Draw(t, "bits"); bits < 32 {
				entry = fmt.Sprintf("10.0.0.%d/%d", from, bits)
			} else if bits == 33 {
				entry = "nonsense"
			}
			p.Spec.Addresses = append(p.Spec.Addresses, entry)
		}
		pools = append(pools, p)
	}
	return pools
}

// TestHomesAreTheirTwin compares the division with a look at every entry of
// every pool.
func TestHomesAreTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := genPools(t)
		homes := loadbalancer.HomesOf(pools)
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 130).Draw(t, "address"))})
		var want *v1alpha1.IPAddressPool
		var entry string
		for _, p := range pools {
			for _, text := range p.Spec.Addresses {
				r, err := lbpool.ParseRange(text)
				if err != nil || !r.Contains(a) || want != nil && (want == p || !p.CreationTimestamp.Time.Before(want.CreationTimestamp.Time)) {
					continue
				}
				want, entry = p, text
			}
		}
		switch i := homes.Of(a); {
		case want == nil && i >= 0:
			t.Fatalf("%s belongs to %s, though no pool contains it", a, homes.Pools[i].Name)
		case want != nil && (i < 0 || homes.Pools[i] != want || homes.Entry(i, a) != entry):
			t.Fatalf("%s belongs to pool %d, want %s by %q", a, i, want.Name, entry)
		}
	})
}

func TestNoPoolHasAnAddressWithAZone(t *testing.T) {
	homes := loadbalancer.HomesOf([]*v1alpha1.IPAddressPool{{Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"fe80::/64"}}}})
	if plain, zoned := homes.Of(netip.MustParseAddr("fe80::1")), homes.Of(netip.MustParseAddr("fe80::1%eth0")); plain != 0 || zoned != -1 {
		t.Errorf("fe80::1 is of pool %d, with a zone of pool %d", plain, zoned)
	}
}
