package assign_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

func poolOf(name string, addresses ...string) *v1alpha1.IPAddressPool {
	return &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: addresses}}
}

func balancer(name string, age time.Duration) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-age))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// given says which Service gets which address in a plan.
func given(p *assign.Plan) []string {
	var list []string
	for _, h := range p.Holdings {
		list = append(list, fmt.Sprintf("%s %v", h.Service.Name, h.Address))
	}
	slices.Sort(list)
	return list
}

// A write of unknown outcome may still land: its address is for its Service
// alone, however old the others are, and whatever became of the Service.
func TestInflightIsReserved(t *testing.T) {
	young, old := snapshot.Key{Namespace: "team", Name: "young"}, snapshot.Key{Namespace: "team", Name: "old"}
	first := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	second := []netip.Addr{netip.MustParseAddr("10.0.1.0")}
	pools := []snapshot.Object{poolOf("a", "10.0.0.1-10.0.0.2"), poolOf("b", "10.0.1.0/32")}
	both := snapshot.Of(pools...).With(balancer("young", time.Minute), balancer("old", time.Hour))
	for name, c := range map[string]struct {
		c        *snapshot.Cluster
		inflight assign.Inflight
		want     []string
	}{
		"nothing in flight":       {both, nil, []string{"old 10.0.0.1", "young 10.0.0.2"}},
		"to the younger":          {both, assign.Inflight{young: first}, []string{"old 10.0.0.2", "young 10.0.0.1"}},
		"from another pool":       {both, assign.Inflight{young: second}, []string{"old 10.0.0.1", "young 10.0.1.0"}},
		"to both":                 {both, assign.Inflight{young: first, old: second}, []string{"old 10.0.1.0", "young 10.0.0.1"}},
		"to one that is gone":     {both.Without(snapshot.Service, young), assign.Inflight{young: first}, []string{"old 10.0.0.2"}},
		"to one that never was":   {both, assign.Inflight{{Namespace: "x", Name: "y"}: first}, []string{"old 10.0.0.2", "young 10.0.1.0"}},
		"to one that has its own": {both, assign.Inflight{young: append(first, second...)}, []string{"old 10.0.0.2", "young 10.0.0.1"}},
	} {
		plan := assign.Compile(c.c, nil, c.inflight, noon(), options())
		if got := given(plan); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, wanted %q", name, got, c.want)
		}
	}
}

// TestOldestFirst: whoever is older has the lower address, whatever the times are
// apart; of one age, whose name comes first.
func TestOldestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.SampledFrom([]time.Time{{}, noon(), time.Unix(0, 0)}).Draw(t, "begin")
		span := rapid.SampledFrom([]int64{0, 1, 1 << 11, 1 << 23, 1 << 37}).Draw(t, "span")
		c, all := snapshot.Of(poolOf("a", "10.0.0.0/16")), []*corev1.Service{}
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			s := balancer(fmt.Sprint("s", i), 0)
			s.CreationTimestamp = metav1.NewTime(time.Unix(begin.Unix()+rapid.Int64Range(0, span).Draw(t, "age"), 0))
			c, all = c.With(s), append(all, s)
		}
		slices.SortFunc(all, func(a, b *corev1.Service) int {
			return cmp.Or(cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix()), cmp.Compare(a.Name, b.Name))
		})
		next := netip.MustParseAddr("10.0.0.0")
		for i, h := range assign.Compile(c, nil, nil, noon(), options()).Holdings {
			if h.Service.Name != all[i].Name || h.Address != next {
				t.Fatalf("number %d is %s with %v, wanted %s with %v", i, h.Service.Name, h.Address, all[i].Name, next)
			}
			next = next.Next()
		}
	})
}

// TestSettledCompileDoesNotAllocate: every change of any Service compiles all
// of them, so what one unchanged Service costs is what the cluster costs.
func TestSettledCompileDoesNotAllocate(t *testing.T) {
	allocs := func(n int) float64 {
		c := snapshot.Of(poolOf("a", "10.0.0.0/16"))
		for i := range n {
			c = c.With(balancer(fmt.Sprint("s", i), time.Duration(i)*time.Second))
		}
		c, p := settle(t, c, nil, noon(), options())
		return testing.AllocsPerRun(20, func() { p = assign.Compile(c, p, nil, noon(), options()) })
	}
	if few, many := allocs(10), allocs(1000); many > few {
		t.Errorf("%v allocations for 1000 settled Services, %v for 10", many, few)
	}
}

// TestOneChangeAllocatesLittle: where one Service comes, goes or changes, the others
// are not read again.
func TestOneChangeAllocatesLittle(t *testing.T) {
	allocs := func(n int) float64 {
		c := snapshot.Of(poolOf("a", "10.0.0.0/16"))
		for i := range n {
			c = c.With(balancer(fmt.Sprint("s", i), time.Duration(i)*time.Second))
		}
		c, p := settle(t, c, nil, noon(), options())
		more, middle := balancer("more", time.Minute), snapshot.Key{Namespace: "team", Name: fmt.Sprint("s", n/2)}
		old, _ := c.Services.Get(middle)
		histories := []*snapshot.Cluster{c, c.With(more), c, c.Without(snapshot.Service, middle), c, c.With(old.DeepCopy())}
		return testing.AllocsPerRun(20, func() {
			for _, c := range histories {
				p = assign.Compile(c, p, nil, noon(), options())
			}
		})
	}
	if few, many := allocs(10), allocs(1000); many > few+100 {
		t.Errorf("%v allocations among 1000 settled Services, %v among 10", many, few)
	}
}

// TestFillAllocatesLittle: what one new Service costs is what filling a pool
// costs. Copies of objects and sentences about them are for those who write.
func TestFillAllocatesLittle(t *testing.T) {
	allocs := func(n int) float64 {
		c := snapshot.Of(poolOf("a", "10.0.0.0/16"))
		for i := range n {
			c = c.With(balancer(fmt.Sprint("s", i), time.Duration(i)*time.Second))
		}
		return testing.AllocsPerRun(5, func() { assign.Compile(c, nil, nil, noon(), options()) })
	}
	if each := (allocs(3000) - allocs(1000)) / 2000; each > 0.1 {
		t.Errorf("%v allocations for each new Service", each)
	}
}
