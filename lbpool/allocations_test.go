package lbpool_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"quayside.io/lbpool"
	"quayside.io/test/busy"
)

func ranges(t interface{ Fatal(...any) }, list ...string) (rs []netipx.IPRange) {
	for _, s := range list {
		r, err := lbpool.ParseReserved(s)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs
}

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// twin is the stupid one: every address in a list, asked one by one.
type twin struct {
	pools []*lbpool.Pool
	held  map[netip.Addr]bool
	out   map[netip.Addr]bool
	freed []freed
	later []netip.Addr
}

type freed struct {
	a  netip.Addr
	at time.Time
}

func inside(rs []netipx.IPRange, a netip.Addr) bool {
	return slices.ContainsFunc(rs, func(r netipx.IPRange) bool { return r.Contains(a) })
}

func (w *twin) poolOf(a netip.Addr) int {
	return slices.IndexFunc(w.pools, func(p *lbpool.Pool) bool { return inside(p.Ranges, a) })
}

// open lists the addresses of a pool that are given away unasked, in order.
func (w *twin) open(pool int, f lbpool.Family) (list []netip.Addr) {
	p := w.pools[pool]
	for _, r := range p.Ranges {
		for a := r.From(); !r.To().Less(a) && a.IsValid(); a = a.Next() {
			last := a.As16()[15]
			buggy := p.AvoidBuggy && a.Is4() && (last == 0 || last == 255)
			if lbpool.FamilyOf(a) == f && w.poolOf(a) == pool && !inside(p.Reserved, a) && !buggy && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func (w *twin) next(pool int, f lbpool.Family, now time.Time) (netip.Addr, bool) {
	open := w.open(pool, f)
	for _, a := range open {
		used := slices.ContainsFunc(w.freed, func(x freed) bool { return x.a == a }) || slices.Contains(w.later, a)
		if w.held[a] || w.out[a] || used {
			continue
		}
		if x := a.As16(); a.Is4() || [8]byte(x[8:]) != [8]byte{} {
			return a, true
		}
		w.later = append(w.later, a) // every router may answer for it
	}
	for _, x := range w.freed {
		if slices.Contains(open, x.a) && !w.held[x.a] && !w.out[x.a] {
			if !now.Before(x.at.Add(w.pools[pool].ReuseAfter)) {
				return x.a, true
			}
			break
		}
	}
	for _, a := range w.later {
		if slices.Contains(open, a) && !w.held[a] && !w.out[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (w *twin) usage(pool int, f lbpool.Family, now time.Time) (u lbpool.Usage) {
	for a := range w.held {
		if w.poolOf(a) == pool && lbpool.FamilyOf(a) == f {
			u.Assigned++
		}
	}
	for _, a := range w.open(pool, f) {
		resting := slices.ContainsFunc(w.freed, func(x freed) bool { return x.a == a && now.Before(x.at.Add(w.pools[pool].ReuseAfter)) })
		if !w.held[a] && !w.out[a] && !resting {
			u.Available++
		}
	}
	return u
}

func drawRange(t *rapid.T) netipx.IPRange {
	base := netip.MustParseAddr("10.0.0.240")
	if rapid.Bool().Draw(t, "IPv6") {
		base = netip.MustParseAddr("2001:db8:0:1:ffff:ffff:ffff:fff0") // over an anycast address of routers
	}
	first := rapid.IntRange(0, 40).Draw(t, "first")
	last := rapid.IntRange(first, 44).Draw(t, "last")
	r := [2]netip.Addr{base, base}
	for range first {
		r[0] = r[0].Next()
	}
	for range last {
		r[1] = r[1].Next()
	}
	return netipx.IPRangeFrom(r[0], r[1])
}

func drawPools(t *rapid.T) []*lbpool.Pool {
	var pools []*lbpool.Pool
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		pools = append(pools, &lbpool.Pool{
			Name:       fmt.Sprint("pool-", i),
			Ranges:     rapid.SliceOfN(rapid.Custom(drawRange), 0, 3).Draw(t, "ranges"),
			Reserved:   rapid.SliceOfN(rapid.Custom(drawRange), 0, 2).Draw(t, "reserved"),
			AvoidBuggy: rapid.Bool().Draw(t, "avoidBuggy"),
			ReuseAfter: time.Duration(rapid.IntRange(0, 3).Draw(t, "reuseAfter")) * time.Second,
		})
	}
	return pools
}

// TestAllocationsAreTheirTwin fills random pools in random ways and asks them and
// the stupid twin the same questions.
func TestAllocationsAreTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := drawPools(t)
		index := lbpool.Divide(pools)
		allocations := lbpool.NewAllocations(index)
		if rapid.Bool().Draw(t, "used before") {
			for i := range pools {
				for range 5 {
					allocations.Defer(drawRange(t).From())
					allocations.Rest(drawRange(t).From(), at(0))
					if a, ok := allocations.Next(i, lbpool.IPv4, at(0)); ok {
						allocations.Occupy(a, &lbpool.Holder{})
					}
				}
			}
			allocations.Reset(rapid.IntRange(0, 9).Draw(t, "room"))
		}
		w := &twin{pools: pools, held: map[netip.Addr]bool{}, out: map[netip.Addr]bool{}}
		now := at(10)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			a := drawRange(t).From()
			known := slices.ContainsFunc(w.freed, func(x freed) bool { return x.a == a }) || slices.Contains(w.later, a)
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				allocations.Occupy(a, &lbpool.Holder{Name: fmt.Sprint(i)})
				w.held[a] = true
			case 1:
				if !known {
					allocations.Exclude(a)
					w.out[a] = true
				}
			case 2:
				if !w.held[a] && w.poolOf(a) >= 0 && !known {
					allocations.Rest(a, at(i/8))
					w.freed = append(w.freed, freed{a, at(i / 8)})
				}
			case 3:
				if allocations.Defer(a); !w.held[a] && !w.out[a] && !known {
					w.later = append(w.later, a)
				}
			default:
				pool := rapid.IntRange(0, len(pools)-1).Draw(t, "pool")
				f := lbpool.FamilyOf(a)
				got, ok := allocations.Next(pool, f, now)
				want, wantOK := w.next(pool, f, now)
				if got != want || ok != wantOK {
					t.Fatalf("next of pool %d: %v, %v; the twin says %v, %v", pool, got, ok, want, wantOK)
				}
				if ok {
					allocations.Occupy(got, &lbpool.Holder{Name: fmt.Sprint(i)})
					w.held[got] = true
				}
			}
			for pool := range pools {
				for _, f := range []lbpool.Family{lbpool.IPv4, lbpool.IPv6} {
					if got, want := allocations.Usage(pool, f, now), w.usage(pool, f, now); got != want {
						t.Fatalf("usage of pool %d: %+v; the twin says %+v", pool, got, want)
					}
				}
			}
			if got, want := index.PoolOf(a), w.poolOf(a); got != want {
				t.Fatalf("%v is in pool %d; the twin says %d", a, got, want)
			}
			if got, want := index.IsReserved(a), w.poolOf(a) >= 0 && inside(pools[w.poolOf(a)].Reserved, a); got != want {
				t.Fatalf("%v is reserved: %v; the twin says %v", a, got, want)
			}
			if allocations.Taken(a) != w.held[a] {
				t.Fatalf("%v taken: %v", a, allocations.Taken(a))
			}
		}
	})
}

// TestOverlapGoesToTheFirst: every common address belongs to the first pool,
// and the overlap names exactly those.
func TestOverlapGoesToTheFirst(t *testing.T) {
	index := lbpool.Divide([]*lbpool.Pool{
		{Name: "a", Ranges: ranges(t, "10.0.0.0/28")},
		{Name: "b", Ranges: ranges(t, "10.0.0.32/28")},
		{Name: "c", Ranges: ranges(t, "10.0.0.8-10.0.0.39")},
	})
	var got []string
	for _, o := range index.Overlaps {
		got = append(got, fmt.Sprint(o.Pool.Name, " loses ", o.Ranges, " to ", o.First.Name))
	}
	want := []string{"c loses [10.0.0.8-10.0.0.15] to a", "c loses [10.0.0.32-10.0.0.39] to b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, wanted %q", got, want)
	}
	if n := lbpool.NewAllocations(index).Usage(2, lbpool.IPv4, at(0)).Available; n != 16 {
		t.Errorf("pool c has %d addresses, wanted 16", n)
	}
}

func TestHugePoolsSaturate(t *testing.T) {
	index := lbpool.Divide([]*lbpool.Pool{{Ranges: ranges(t, "2001:db8::/32", "2001:db9::/64", "fd00::/66")}})
	allocations := lbpool.NewAllocations(index)
	if n := allocations.Usage(0, lbpool.IPv6, at(0)).Available; n != math.MaxInt64 {
		t.Errorf("%d available", n)
	}
	far := netip.MustParseAddr("2001:db8:ffff::1") // beyond what one bitmap can count
	allocations.Occupy(far, &lbpool.Holder{Name: "far"})
	if !allocations.Taken(far) || allocations.Usage(0, lbpool.IPv6, at(0)).Assigned != 1 {
		t.Error("an address far behind the beginning of its range is not recorded")
	}
	if a, ok := allocations.Next(0, lbpool.IPv6, at(0)); !ok || a != netip.MustParseAddr("2001:db8::1") {
		t.Errorf("next is %v, %v", a, ok)
	}
}

// The longest rested comes first, and only once nothing unused is left.
func TestLeastRecentlyFreed(t *testing.T) {
	allocations := lbpool.NewAllocations(lbpool.Divide([]*lbpool.Pool{{Ranges: ranges(t, "10.0.0.1-10.0.0.3"), ReuseAfter: time.Minute}}))
	allocations.Rest(netip.MustParseAddr("10.0.0.2"), at(0))
	allocations.Rest(netip.MustParseAddr("10.0.0.1"), at(30))
	for i, step := range []struct {
		now  int
		want string
		ok   bool
	}{{0, "10.0.0.3", true}, {0, "10.0.0.2", false}, {60, "10.0.0.2", true}, {60, "10.0.0.1", false}, {90, "10.0.0.1", true}} {
		a, ok := allocations.Next(0, lbpool.IPv4, at(step.now))
		if ok != step.ok || ok && a.String() != step.want {
			t.Fatalf("step %d: %v, %v; wanted %s, %v", i, a, ok, step.want, step.ok)
		}
		if until := allocations.Wake(0, lbpool.IPv4, at(step.now)); !ok && until != at(map[string]int{"10.0.0.2": 60, "10.0.0.1": 90}[step.want]) {
			t.Fatalf("step %d: wake at %v", i, until.Unix())
		}
		if ok {
			allocations.Occupy(a, &lbpool.Holder{})
		}
	}
}

// TestNextDoesNotAllocate: the choice of an address is on the path of every
// waiting Service of every plan.
func TestNextDoesNotAllocate(t *testing.T) {
	allocations := lbpool.NewAllocations(lbpool.Divide([]*lbpool.Pool{{Ranges: ranges(t, "10.0.0.0/8", "2001:db8::/64"), AvoidBuggy: true}}))
	one := &lbpool.Holder{Name: "one"}
	for range 10_000 {
		a, _ := allocations.Next(0, lbpool.IPv4, at(0))
		allocations.Occupy(a, one)
	}
	two, free := &lbpool.Holder{Name: "two"}, netip.MustParseAddr("10.200.0.1")
	if n := testing.AllocsPerRun(1000, func() {
		a, ok := allocations.Next(0, lbpool.IPv4, at(0))
		if o, why := allocations.Obstacle(a, two); !ok || o != nil || why != "" {
			t.Fatal("the next address has an obstacle", o, why)
		}
		if o, _ := allocations.Obstacle(free, two); o != nil {
			t.Fatal("a free address has an obstacle")
		}
		allocations.Usage(0, lbpool.IPv4, at(0))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestManyScatteredPools: what a pool costs does not grow with the square of the
// ranges that are there already.
func TestManyScatteredPools(t *testing.T) {
	divide := func(n int) time.Duration {
		pools := make([]*lbpool.Pool, n)
		for i := range pools {
			pools[i] = &lbpool.Pool{Name: fmt.Sprint(i)}
			for j := range 1000 {
				a := netip.AddrFrom4([4]byte{10, byte((j*n + i) >> 15), byte((j*n + i) >> 7), byte((j*n + i) << 1)})
				pools[i].Ranges = append(pools[i].Ranges, netipx.IPRangeFrom(a, a))
			}
		}
		began := time.Now()
		if e := lbpool.Divide(pools); e.PoolOf(netip.MustParseAddr("10.0.0.2")) != 1 || len(e.Overlaps) > 0 {
			t.Fatal("addresses are not where they belong")
		}
		return time.Since(began)
	}
	busy.Growth(t, divide, 4, 40, 40)
}
