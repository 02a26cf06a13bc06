package assign_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// TestFreedIsBounded: what was freed is remembered up to a bound, except while
// it rests, and forgotten once its pool is gone.
func TestFreedIsBounded(t *testing.T) {
	const many, bound = 17_000, 16_384
	pool := func(rest time.Duration) *v1alpha1.IPAddressPool {
		p := poolOf("a", "10.0.0.0/16")
		p.Spec.ReuseAfter = &metav1.Duration{Duration: rest}
		return p
	}
	c := snapshot.Of(pool(time.Hour))
	for i := range many {
		c = c.With(balancer(fmt.Sprint("s", i), time.Hour))
	}
	_, held := settle(t, c, nil, noon(), options())
	empty := snapshot.Of(pool(time.Hour))

	resting := assign.Compile(empty, held, nil, noon(), options())
	if len(resting.Freed) != many {
		t.Errorf("%d addresses rest, wanted %d", len(resting.Freed), many)
	}
	if want := noon().Add(time.Hour); !resting.NextWake.Equal(want) {
		t.Errorf("it wakes at %v, wanted %v", resting.NextWake, want)
	}
	if got := len(assign.Compile(snapshot.Of(pool(0)), held, nil, noon(), options()).Freed); got != bound {
		t.Errorf("%d freed addresses are remembered, wanted %d", got, bound)
	}
	if got := len(assign.Compile(snapshot.Of(), resting, nil, noon(), options()).Freed); got != 0 {
		t.Errorf("%d addresses of no pool are remembered", got)
	}
	// Nor does a pool without end make it grow without end.
	vast := poolOf("a", "2001:db8::/64")
	vast.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
	churned, a := &assign.Plan{}, netip.MustParseAddr("2001:db8::")
	for range 1 << 18 {
		churned.Freed = append(churned.Freed, assign.Freed{Address: a, At: noon()})
		a = a.Next()
	}
	churned.Holdings = []assign.Holding{{Address: a, Service: snapshot.Key{Name: "gone"}, Pool: "a"}}
	got := assign.Compile(snapshot.Of(vast), churned, nil, noon(), options()).Freed
	if len(got) != 1<<17 || got[len(got)-1].Address != a {
		t.Errorf("%d addresses rest, wanted the latest %d", len(got), 1<<17)
	}
	// A plan that was never carried out frees nothing.
	planned := assign.Compile(c, nil, nil, noon(), options())
	if got := len(assign.Compile(c, planned, nil, noon(), options()).Freed); got != 0 {
		t.Errorf("%d addresses were freed that nobody ever had", got)
	}
}

// TestRestBeginsAnew: an address that was given away after its rest, and freed
// before any plan saw it in use, rests again from then on.
func TestRestBeginsAnew(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.7")
	pool := poolOf("a", "10.0.0.7/32")
	pool.Spec.ReuseAfter = &metav1.Duration{Duration: time.Minute}
	gone := assign.Holding{Address: a, Service: snapshot.Key{Namespace: "team", Name: "gone"}, Pool: "a", Pending: true}
	before := &assign.Plan{Holdings: []assign.Holding{gone}, Freed: []assign.Freed{{Address: a, At: noon().Add(-time.Hour)}}}
	plan := assign.Compile(snapshot.Of(pool, balancer("next", 0)), before, nil, noon(), options())
	if want := []assign.Freed{{Address: a, At: noon()}}; !slices.Equal(plan.Freed, want) || len(plan.Holdings) != 0 {
		t.Errorf("freed %v, held %v", plan.Freed, plan.Holdings)
	}
}
