package lbpool

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawHolder returns one of few kinds, of which one is common: a crowd on one
// address mostly gets along.
func drawHolder(t *rapid.T) *Holder {
	n := &Holder{Realm: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "realm")}
	if rapid.IntRange(0, 9).Draw(t, "alone") == 0 {
		return n
	}
	n.Sharing = &Sharing{
		Key:     rapid.SampledFrom([]string{"k", "k", "k", "k", "l"}).Draw(t, "key"),
		Backend: rapid.SampledFrom([]string{"", "", "", "", "Local"}).Draw(t, "backend"),
		Admits:  rapid.SampledFrom([][]string{nil, {"b"}, {"*"}}).Draw(t, "admits"),
	}
	for number := range rapid.Int32Range(0, 3).Draw(t, "ports") {
		n.Ports = append(n.Ports, Port{"TCP", 10*number + rapid.Int32Range(0, 9).Draw(t, "port")})
	}
	return n
}

// TestHoldersAreTheirTwin puts holders on one address, few and many, and compares
// who is in the way of another with asking each in turn.
func TestHoldersAreTheirTwin(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.1")
	rapid.Check(t, func(t *rapid.T) {
		allocations := NewAllocations(Divide(nil))
		var held []*Holder
		for range rapid.IntRange(0, 3*linear).Draw(t, "holders") {
			n := drawHolder(t)
			if len(held) > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				n = rapid.SampledFrom(held).Draw(t, "who")
			}
			if allocations.Occupy(a, n); !slices.Contains(held, n) {
				held = append(held, n)
			}
		}
		if got := slices.Collect(allocations.Holders(a)); !slices.Equal(got, held) {
			t.Fatalf("on it are %v, want %v", got, held)
		}
		asks, but := drawHolder(t), drawHolder(t)
		if len(held) > 0 {
			asks = rapid.SampledFrom(append(held, asks, asks)).Draw(t, "who asks")
			but = rapid.SampledFrom(append(held, but)).Draw(t, "who does not count")
		}
		for what, c := range map[string]struct {
			allocations func() (*Holder, string)
			twin        func(o *Holder) string
		}{
			"Obstacle": {func() (*Holder, string) { return allocations.Obstacle(a, asks) }, asks.Bar},
			"Obstacle but": {func() (*Holder, string) { return allocations.Obstacle(a, asks, but) }, func(o *Holder) string {
				if o == but {
					return ""
				}
				return asks.Bar(o)
			}},
			"Clash": {func() (*Holder, string) { return allocations.Clash(a, asks) }, asks.Clash},
			"Unadmitted": {func() (*Holder, string) { return allocations.Unadmitted(a, asks), "" }, func(o *Holder) string {
				if asks.Unadmitted(o) {
					return "yes"
				}
				return ""
			}},
		} {
			i := slices.IndexFunc(held, func(o *Holder) bool { return o != asks && c.twin(o) != "" })
			switch got, why := c.allocations(); {
			case i < 0 && got == nil:
			case i < 0 || got != held[i]:
				t.Fatalf("%s: %v, the twin says the one at %d", what, got, i)
			case what != "Unadmitted" && why != c.twin(got):
				t.Fatalf("%s: %q, the twin says %q", what, why, c.twin(got))
			}
		}
	})
}

// TestACrowdIsNotAskedOneByOne counts the questions about kinds of holders when
// many of one kind hold an address: as many for 10,000 as for 100.
func TestACrowdIsNotAskedOneByOne(t *testing.T) {
	for _, n := range []int{100, 10_000} {
		c, asked := &holders{}, 0
		for i := range n {
			c.add(sharer(i))
		}
		newcomer := sharer(n)
		o := c.first(newcomer, nil, func(t, o *Holder) bool { asked++; return t.bars(o) }, true)
		if o != nil || asked != 1 {
			t.Errorf("of %d, %d were asked, and %v is in the way", n, asked, o)
		}
		newcomer.Ports[0].Number = int32(n / 2)
		if o := c.first(newcomer, nil, (*Holder).bars, true); o != c.all[n/2] {
			t.Errorf("%v is in the way, want %v", o, c.all[n/2])
		}
	}
}

// sharer returns a holder that shares, and listens on port i.
func sharer(i int) *Holder {
	return &Holder{Realm: "team", Name: fmt.Sprint(i), Sharing: &Sharing{Key: "k", Ports: []Port{{"TCP", int32(i)}}}}
}

// BenchmarkCrowd gives one address to n holders, each asked about before.
func BenchmarkCrowd(b *testing.B) {
	a := netip.MustParseAddr("10.0.0.1")
	for _, n := range []int{10, 100, 1_000, 10_000} {
		var list []*Holder
		for i := range n {
			list = append(list, sharer(i))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				allocations := NewAllocations(Divide(nil))
				for _, t := range list {
					if o, why := allocations.Obstacle(a, t); o != nil {
						b.Fatal(why)
					}
					allocations.Occupy(a, t)
				}
			}
		})
	}
}
