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

// twoPools returns a book for two pools that follow each other, and all their
// addresses.
func twoPools(n int) (*Book, []netip.Addr) {
	var all []netip.Addr
	for a := netip.MustParseAddr("10.0.0.0"); len(all) < 2*n; a = a.Next() {
		all = append(all, a)
	}
	var pools []*Pool
	for half := range slices.Chunk(all, n) {
		pools = append(pools, &Pool{Ranges: []netipx.IPRange{netipx.IPRangeFrom(half[0], half[n-1])}})
	}
	return NewBook(Divide(pools)), all
}

// TestJoinIsItsTwin lets newcomers join tenants on some addresses, in a book
// that remembers whom it turned away, and compares with asking on each address
// in the order in which it could first be shared.
func TestJoinIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 5, 70, 140}).Draw(t, "addresses")
		book, all := twoPools(n)
		barred := func(a netip.Addr) bool { return a.As4()[3]%7 == 6 }
		type sitting struct {
			a netip.Addr
			t *Tenant
		}
		var sat []sitting
		sit := func(a netip.Addr, n *Tenant) {
			book.Sit(a, n)
			sat = append(sat, sitting{a, n})
		}
		first := drawTenant(t)
		for _, a := range all { // full of the like, or nearly
			if rapid.IntRange(0, 9).Draw(t, "free") > 0 {
				n := *first
				sit(a, &n)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "newcomers") {
			n, pool := drawTenant(t), rapid.IntRange(0, 1).Draw(t, "pool")
			var want netip.Addr
			for _, s := range sat {
				if n.Sharing == nil || n.differs(s.t) || book.estate.PoolOf(s.a) != pool || barred(s.a) {
					continue
				}
				if !slices.ContainsFunc(sat, func(o sitting) bool { return o.a == s.a && n.Bar(o.t) != "" }) {
					want = s.a
					break
				}
			}
			got, ok := book.Join(pool, IPv4, n, barred)
			if got != want || ok != want.IsValid() {
				t.Fatalf("it joins at %v (%v), the twin at %v", got, ok, want)
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0, 1:
				if ok {
					sit(got, n)
				}
			case 2: // whatever the rules say, as a status can
				sit(rapid.SampledFrom(all).Draw(t, "where"), n)
			}
		}
	})
}

// TestWhoWaitsIsNotTurnedAwayAnew counts the addresses that are looked at when
// many wait for a full pool, with one port in common and one of their own: each
// address once, however many wait.
func TestWhoWaitsIsNotTurnedAwayAnew(t *testing.T) {
	book, all := twoPools(500)
	for i, a := range all {
		book.Sit(a, waiter(i))
	}
	looks := 0
	for i := range 5_000 {
		if a, ok := book.Join(i%2, IPv4, waiter(len(all)+i), func(netip.Addr) bool { looks++; return false }); ok {
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
	book, all := twoPools(70)
	outside := netip.MustParseAddr("192.0.2.1")
	for round := range 3 {
		for i, a := range append(all, outside) {
			if book.Taken(a) {
				t.Fatalf("round %d: somebody sits on %v", round, a)
			}
			book.Sit(a, sharer(i))
			book.Sit(a, sharer(len(all)+i))
		}
		if a, ok := book.Join(0, IPv4, sharer(9999), func(netip.Addr) bool { return false }); !ok || a != all[0] {
			t.Fatalf("round %d: joins at %v (%v)", round, a, ok)
		}
		book.Reset(round)
		if a, ok := book.Join(0, IPv4, sharer(9999), func(netip.Addr) bool { return false }); ok {
			t.Fatalf("round %d: joins nobody at %v", round, a)
		}
		if a, ok := book.FirstShared(0, IPv4, sharer(9999)); ok {
			t.Fatalf("round %d: %v is shared with nobody", round, a)
		}
		if len(book.table)+len(book.pages) > 0 {
			t.Fatalf("round %d: %d seats and %d pages are left", round, len(book.table), len(book.pages))
		}
		if a, ok := book.Next(0, IPv4, time.Time{}); !ok || a != all[0] {
			t.Fatalf("round %d: the next is %v (%v)", round, a, ok)
		}
	}
}

// TestFirstShared: the address that is named to who may not join it is the first
// on which anybody shares under his key, be it beside others.
func TestFirstShared(t *testing.T) {
	book, all := twoPools(5)
	of := func(i int, key string) *Tenant {
		n := sharer(i)
		n.Key = key
		return n
	}
	for i, sits := range []struct {
		at  int
		key string
	}{{1, "k"}, {1, "l"}, {2, "l"}, {3, "m"}} {
		book.Sit(all[sits.at], of(i, sits.key))
	}
	for key, want := range map[string]int{"k": 1, "l": 1, "m": 3} {
		if a, ok := book.FirstShared(0, IPv4, of(9, key)); !ok || a != all[want] {
			t.Errorf("%q: %v (%v), want %v", key, a, ok, all[want])
		}
	}
	if a, ok := book.FirstShared(1, IPv4, of(9, "k")); ok {
		t.Errorf("of the other pool: %v", a)
	}
}

// waiter listens on port 80 and one of its own.
func waiter(i int) *Tenant {
	n := sharer(1000 + i)
	n.Ports = slices.Insert(n.Ports, 0, Port{"TCP", 80})
	return n
}

// BenchmarkJoin is one more Service that waits for a pool that is full.
func BenchmarkJoin(b *testing.B) {
	for _, held := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			book, all := twoPools(held)
			for i, a := range all {
				book.Sit(a, waiter(i))
			}
			n := waiter(len(all))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := book.Join(0, IPv4, n, func(netip.Addr) bool { return false }); ok {
					b.Fatal("it joins")
				}
			}
		})
	}
}
