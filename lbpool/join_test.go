package lbpool

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

// twoPools returns allocations for two pools that follow each other, and all their
// addresses.
func twoPools(n int) (*Allocations, []netip.Addr) {
	var all []netip.Addr
	for a := netip.MustParseAddr("10.0.0.0"); len(all) < 2*n; a = a.Next() {
		all = append(all, a)
	}
	var pools []*Pool
	for half := range slices.Chunk(all, n) {
		pools = append(pools, &Pool{Ranges: []netipx.IPRange{netipx.IPRangeFrom(half[0], half[n-1])}})
	}
	return NewAllocations(Divide(pools)), all
}

// TestJoinIsItsTwin lets newcomers join holders on some addresses, in allocations
// that remembers whom it turned away, and compares with asking on each address
// in the order in which it could first be shared.
func TestJoinIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 5, 70, 140}).Draw(t, "addresses")
		allocations, all := twoPools(n)
		barred := func(a netip.Addr) bool { return a.As4()[3]%7 == 6 }
		type holding struct {
			a netip.Addr
			t *Holder
		}
		var held []holding
		occupy := func(a netip.Addr, n *Holder) {
			allocations.Occupy(a, n)
			held = append(held, holding{a, n})
		}
		first := drawHolder(t)
		for _, a := range all { // full of the like, or nearly
			if rapid.IntRange(0, 9).Draw(t, "free") > 0 {
				n := *first
				occupy(a, &n)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "newcomers") {
			n, pool := drawHolder(t), rapid.IntRange(0, 1).Draw(t, "pool")
			var want netip.Addr
			for _, s := range held {
				if n.Sharing == nil || n.differs(s.t) || allocations.pools.PoolOf(s.a) != pool || barred(s.a) {
					continue
				}
				if !slices.ContainsFunc(held, func(o holding) bool { return o.a == s.a && n.Bar(o.t) != "" }) {
					want = s.a
					break
				}
			}
			got, ok := allocations.Join(pool, IPv4, n, barred)
			if got != want || ok != want.IsValid() {
				t.Fatalf("it joins at %v (%v), the twin at %v", got, ok, want)
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0, 1:
				if ok {
					occupy(got, n)
				}
			case 2: // whatever the rules say, as a status can
				occupy(rapid.SampledFrom(all).Draw(t, "where"), n)
			}
		}
	})
}

// TestWhoWaitsIsNotTurnedAwayAnew counts the addresses that are looked at when
// many wait for a full pool, with one port in common and one of their own: each
// address once, however many wait.
func TestWhoWaitsIsNotTurnedAwayAnew(t *testing.T) {
	allocations, all := twoPools(500)
	for i, a := range all {
		allocations.Occupy(a, waiter(i))
	}
	looks := 0
	for i := range 5_000 {
		if a, ok := allocations.Join(i%2, IPv4, waiter(len(all)+i), func(netip.Addr) bool { looks++; return false }); ok {
			t.Fatalf("it joins at %v", a)
		}
	}
	if looks != len(all) {
		t.Errorf("%d looks at %d addresses", looks, len(all))
	}
}

// TestResetForgetsEverybody: what remains of an earlier plan would be joined, or
// named as an obstacle, in the next one.
func TestResetForgetsEverybody(t *testing.T) {
	allocations, all := twoPools(70)
	outside := netip.MustParseAddr("192.0.2.1")
	for round := range 3 {
		for i, a := range append(all, outside) {
			if allocations.Taken(a) {
				t.Fatalf("round %d: somebody holds %v", round, a)
			}
			allocations.Occupy(a, sharer(i))
			allocations.Occupy(a, sharer(len(all)+i))
		}
		if a, ok := allocations.Join(0, IPv4, sharer(9999), func(netip.Addr) bool { return false }); !ok || a != all[0] {
			t.Fatalf("round %d: joins at %v (%v)", round, a, ok)
		}
		allocations.Reset(round)
		if a, ok := allocations.Join(0, IPv4, sharer(9999), func(netip.Addr) bool { return false }); ok {
			t.Fatalf("round %d: joins nobody at %v", round, a)
		}
		if a, ok := allocations.FirstShared(0, IPv4, sharer(9999)); ok {
			t.Fatalf("round %d: %v is shared with nobody", round, a)
		}
		if len(allocations.held)+len(allocations.pages) > 0 {
			t.Fatalf("round %d: %d holders and %d pages are left", round, len(allocations.held), len(allocations.pages))
		}
		if a, ok := allocations.Next(0, IPv4, time.Time{}); !ok || a != all[0] {
			t.Fatalf("round %d: the next is %v (%v)", round, a, ok)
		}
	}
}

// TestFirstShared: the address that is named to who may not join it is the first
// on which anybody shares under his key, be it beside others.
func TestFirstShared(t *testing.T) {
	allocations, all := twoPools(5)
	of := func(i int, key string) *Holder {
		n := sharer(i)
		n.Key = key
		return n
	}
	for i, held := range []struct {
		at  int
		key string
	}{{1, "k"}, {1, "l"}, {2, "l"}, {3, "m"}} {
		allocations.Occupy(all[held.at], of(i, held.key))
	}
	for key, want := range map[string]int{"k": 1, "l": 1, "m": 3} {
		if a, ok := allocations.FirstShared(0, IPv4, of(9, key)); !ok || a != all[want] {
			t.Errorf("%q: %v (%v), want %v", key, a, ok, all[want])
		}
	}
	if a, ok := allocations.FirstShared(1, IPv4, of(9, "k")); ok {
		t.Errorf("of the other pool: %v", a)
	}
}

// waiter listens on port 80 and one of its own.
func waiter(i int) *Holder {
	n := sharer(1000 + i)
	n.Ports = slices.Insert(n.Ports, 0, Port{"TCP", 80})
	return n
}

// BenchmarkJoin is one more Service that waits for a pool that is full.
func BenchmarkJoin(b *testing.B) {
	for _, held := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			allocations, all := twoPools(held)
			for i, a := range all {
				allocations.Occupy(a, waiter(i))
			}
			n := waiter(len(all))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := allocations.Join(0, IPv4, n, func(netip.Addr) bool { return false }); ok {
					b.Fatal("it joins")
				}
			}
		})
	}
}
