package lbpool

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTenant returns one of few kinds, of which one is common: a crowd on one
// address mostly gets along.
func drawTenant(t *rapid.T) *Tenant {
	n := &Tenant{Realm: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "realm")}
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

// TestCompanyIsItsTwin puts tenants on one address, few and many, and compares
// who is in the way of another with asking each in turn.
func TestCompanyIsItsTwin(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.1")
	rapid.Check(t, func(t *rapid.T) {
		book := NewBook(Divide(nil))
		var sit []*Tenant
		for range rapid.IntRange(0, 3*crowded).Draw(t, "tenants") {
			n := drawTenant(t)
			if len(sit) > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				n = rapid.SampledFrom(sit).Draw(t, "who")
			}
			if book.Sit(a, n); !slices.Contains(sit, n) {
				sit = append(sit, n)
			}
		}
		if got := slices.Collect(book.Tenants(a)); !slices.Equal(got, sit) {
			t.Fatalf("on it are %v, want %v", got, sit)
		}
		asks, but := drawTenant(t), drawTenant(t)
		if len(sit) > 0 {
			asks = rapid.SampledFrom(append(sit, asks, asks)).Draw(t, "who asks")
			but = rapid.SampledFrom(append(sit, but)).Draw(t, "who does not count")
		}
		for what, c := range map[string]struct {
			book func() (*Tenant, string)
			twin func(o *Tenant) string
		}{
			"Obstacle": {func() (*Tenant, string) { return book.Obstacle(a, asks) }, asks.Bar},
			"Obstacle but": {func() (*Tenant, string) { return book.Obstacle(a, asks, but) }, func(o *Tenant) string {
				if o == but {
					return ""
				}
				return asks.Bar(o)
			}},
			"Clash": {func() (*Tenant, string) { return book.Clash(a, asks) }, asks.Clash},
			"Stranger": {func() (*Tenant, string) { return book.Stranger(a, asks), "" }, func(o *Tenant) string {
				if asks.Stranger(o) {
					return "yes"
				}
				return ""
			}},
		} {
			i := slices.IndexFunc(sit, func(o *Tenant) bool { return o != asks && c.twin(o) != "" })
			switch got, why := c.book(); {
			case i < 0 && got == nil:
			case i < 0 || got != sit[i]:
				t.Fatalf("%s: %v, the twin says the one at %d", what, got, i)
			case what != "Stranger" && why != c.twin(got):
				t.Fatalf("%s: %q, the twin says %q", what, why, c.twin(got))
			}
		}
	})
}

// TestACrowdIsNotAskedOneByOne counts the questions about kinds of tenants when
// many of one kind sit on an address: as many for 10,000 as for 100.
func TestACrowdIsNotAskedOneByOne(t *testing.T) {
	for _, n := range []int{100, 10_000} {
		c, asked := &company{}, 0
		for i := range n {
			c.seat(sharer(i))
		}
		newcomer := sharer(n)
		o := c.first(newcomer, nil, func(t, o *Tenant) bool { asked++; return t.bars(o) }, true)
		if o != nil || asked != 1 {
			t.Errorf("of %d, %d were asked, and %v is in the way", n, asked, o)
		}
		newcomer.Ports[0].Number = int32(n / 2)
		if o := c.first(newcomer, nil, (*Tenant).bars, true); o != c.all[n/2] {
			t.Errorf("%v is in the way, want %v", o, c.all[n/2])
		}
	}
}

// sharer returns a tenant that shares, and listens on port i.
func sharer(i int) *Tenant {
	return &Tenant{Realm: "team", Name: fmt.Sprint(i), Sharing: &Sharing{Key: "k", Ports: []Port{{"TCP", int32(i)}}}}
}

// BenchmarkCrowd seats n tenants on one address, each asked about before.
func BenchmarkCrowd(b *testing.B) {
	a := netip.MustParseAddr("10.0.0.1")
	for _, n := range []int{10, 100, 1_000, 10_000} {
		var list []*Tenant
		for i := range n {
			list = append(list, sharer(i))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				book := NewBook(Divide(nil))
				for _, t := range list {
					if o, why := book.Obstacle(a, t); o != nil {
						b.Fatal(why)
					}
					book.Sit(a, t)
				}
			}
		})
	}
}
