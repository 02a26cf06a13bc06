package bench

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/lbpool"
)

// noon is when every benchmark of the allocator happens.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func poolOf(ranges ...string) *lbpool.Pool {
	p := &lbpool.Pool{Name: "pool"}
	for _, s := range ranges {
		r, err := lbpool.ParseRange(s)
		if err != nil {
			panic(err)
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p
}

// fill gives n holders one address each.
func fill(b *lbpool.Allocations, holders []lbpool.Holder, f lbpool.Family) {
	for i := range holders {
		a, ok := b.Next(0, f, noon())
		if !ok {
			panic("the pool is full")
		}
		b.Occupy(a, &holders[i])
	}
}

func holders(n int) []lbpool.Holder {
	list := make([]lbpool.Holder, n)
	for i := range list {
		list[i] = lbpool.Holder{Realm: "ns", Name: fmt.Sprintf("service-%d", i)}
	}
	return list
}

// BenchmarkFill gives every address of an empty pool away, and beside it does
// the same by walking the pool for each, the way peers do: probe each address
// from the first, asking a map keyed by its text.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 65_536} {
		list := holders(n)
		b.Run(fmt.Sprintf("quayside/%d", n), func(b *testing.B) {
			for b.Loop() {
				fill(lbpool.NewAllocations(lbpool.Divide([]*lbpool.Pool{poolOf("10.0.0.0/16")})), list, lbpool.IPv4)
			}
		})
		if n > 10_000 {
			continue // 65,536 would walk two thousand million addresses; see how 10,000 grew
		}
		b.Run(fmt.Sprintf("walk/%d", n), func(b *testing.B) {
			for b.Loop() {
				walk(list)
			}
		})
	}
}

// walk is the scan of the field.
func walk(list []lbpool.Holder) {
	owner := map[string]*lbpool.Holder{}
	prefix := netip.MustParsePrefix("10.0.0.0/16")
	for i := range list {
		for a := prefix.Addr(); prefix.Contains(a); a = a.Next() {
			if text := a.String(); owner[text] == nil {
				owner[text] = &list[i]
				break
			}
		}
	}
}

// BenchmarkNextOfMany is one allocation from a pool that holds n already.
func BenchmarkNextOfMany(b *testing.B) {
	for _, pool := range []struct {
		prefix string
		family lbpool.Family
	}{{"10.0.0.0/8", lbpool.IPv4}, {"2001:db8::/64", lbpool.IPv6}} {
		for _, n := range []int{1_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", pool.prefix, n), func(b *testing.B) {
				allocations := lbpool.NewAllocations(lbpool.Divide([]*lbpool.Pool{poolOf(pool.prefix)}))
				one := &lbpool.Holder{Realm: "ns", Name: "other"}
				for range n {
					a, _ := allocations.Next(0, pool.family, noon())
					allocations.Occupy(a, one)
				}
				b.ReportAllocs()
				for b.Loop() {
					a, ok := allocations.Next(0, pool.family, noon())
					if !ok {
						b.Fatal("the pool is full")
					}
					allocations.Occupy(a, one)
				}
			})
		}
	}
}

// cluster returns a pool and n Services that wait.
func cluster(n int) *snapshot.Cluster {
	c := snapshot.Of(&v1alpha1.IPAddressPool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Spec:       v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/12"}},
	})
	for i := range n {
		c = c.With(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("ns-%d", i%100), Name: fmt.Sprintf("service-%d", i),
				CreationTimestamp: metav1.NewTime(noon().Add(-time.Duration(i%1000) * time.Second)),
				Labels:            map[string]string{"app": "web"},
			},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Ports: []corev1.ServicePort{{Port: 80}, {Port: 443}}, Selector: map[string]string{"app": "web"},
			},
		})
	}
	return c
}

// carryOut returns the cluster as a plan wants it.
func carryOut(c *snapshot.Cluster, p *assign.Plan) *snapshot.Cluster {
	for _, u := range p.Updates {
		c = c.With(u.Object())
	}
	return c
}

// BenchmarkCompileFill is one plan that gives n waiting Services their first
// address, all of it: reading them, sorting them by age, choosing, and listing
// what is to be written. Beside it, the walk alone does the choosing the way
// peers do.
func BenchmarkCompileFill(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 65_536, 100_000} {
		c := cluster(n)
		b.Run(fmt.Sprintf("quayside/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := assign.Compile(c, nil, nil, noon(), assign.Options{DefaultLoadBalancer: true}); len(p.Updates) != n+1 {
					b.Fatalf("%d updates for %d Services and a pool", len(p.Updates), n)
				}
			}
		})
		if n > 10_000 {
			continue // minutes each; see how 10,000 grew
		}
		list := holders(n)
		b.Run(fmt.Sprintf("walk/%d", n), func(b *testing.B) {
			for b.Loop() {
				walk(list)
			}
		})
	}
}

// BenchmarkCompileSettled is a plan in which nothing is to be done.
func BenchmarkCompileSettled(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			opts := assign.Options{DefaultLoadBalancer: true}
			c := cluster(n)
			p := assign.Compile(c, nil, nil, noon(), opts)
			c = carryOut(c, p)
			p = assign.Compile(c, p, nil, noon(), opts)
			b.ReportAllocs()
			for b.Loop() {
				if p = assign.Compile(c, p, nil, noon(), opts); len(p.Updates) != 0 {
					b.Fatalf("a settled cluster gets %d updates", len(p.Updates))
				}
			}
		})
	}
}

// BenchmarkCompileOneMore is what one new Service costs among n settled ones:
// the plan that serves it, and the plan after that.
func BenchmarkCompileOneMore(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			opts := assign.Options{DefaultLoadBalancer: true}
			c := cluster(n)
			p := assign.Compile(c, nil, nil, noon(), opts)
			c = carryOut(c, p)
			p = assign.Compile(c, p, nil, noon(), opts)
			more := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns-0", Name: "one-more", CreationTimestamp: metav1.NewTime(noon())},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
			}
			b.ReportAllocs()
			for b.Loop() {
				now := c.With(more)
				if p = assign.Compile(now, p, nil, noon(), opts); len(p.Updates) != 2 {
					b.Fatalf("%d updates for one Service and a pool", len(p.Updates))
				}
				if p = assign.Compile(carryOut(now, p), p, nil, noon(), opts); len(p.Updates) != 0 {
					b.Fatalf("%d updates after that", len(p.Updates))
				}
			}
		})
	}
}
