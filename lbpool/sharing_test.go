package lbpool_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/lbpool"
)

func TestSharing(t *testing.T) {
	web := func(change func(*lbpool.Holder)) *lbpool.Holder {
		n := &lbpool.Holder{Realm: "team", Name: "web", Sharing: &lbpool.Sharing{Key: "k", Ports: []lbpool.Port{{Protocol: "TCP", Number: 80}}}}
		change(n)
		return n
	}
	tcp443 := []lbpool.Port{{Protocol: "TCP", Number: 443}}
	udp80 := []lbpool.Port{{Protocol: "UDP", Number: 80}}
	for name, c := range map[string]struct {
		change func(*lbpool.Holder)
		why    string
	}{
		"other port":             {func(n *lbpool.Holder) { n.Ports = tcp443 }, ""},
		"other protocol":         {func(n *lbpool.Holder) { n.Ports = udp80 }, ""},
		"no ports":               {func(n *lbpool.Holder) { n.Ports = nil }, ""},
		"same port":              {func(n *lbpool.Holder) { n.Ports = append(n.Ports, tcp443...) }, "already uses port TCP/80"},
		"no key":                 {func(n *lbpool.Holder) { n.Sharing = nil }, "does not share it"},
		"other key":              {func(n *lbpool.Holder) { n.Ports, n.Key = tcp443, "l" }, `under another key, "l"`},
		"other policy":           {func(n *lbpool.Holder) { n.Ports, n.Backend = tcp443, "Local app=web" }, "same externalTrafficPolicy"},
		"other realm":            {func(n *lbpool.Holder) { n.Ports, n.Realm = tcp443, "b" }, "another namespace"},
		"other realm, one-sided": {func(n *lbpool.Holder) { n.Ports, n.Realm, n.Admits = tcp443, "b", []string{"*"} }, "another namespace"},
	} {
		one, two := web(func(*lbpool.Holder) {}), web(c.change)
		why := one.Bar(two)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, wanted %q", name, why, c.why)
		}
	}
	a := web(func(n *lbpool.Holder) { n.Admits = []string{"b"} })
	b := web(func(n *lbpool.Holder) { n.Realm, n.Admits, n.Ports = "b", []string{"team", "c"}, tcp443 })
	if why := a.Bar(b); why != "" {
		t.Errorf("both permit it, and yet: %s", why)
	}
}

// drawPorts returns some of few ports, so that they collide.
func drawPorts(t *rapid.T) []lbpool.Port {
	ports := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lbpool.Port {
		return lbpool.Port{Protocol: rapid.SampledFrom([]string{"TCP", "UDP"}).Draw(t, "protocol"), Number: rapid.Int32Range(1, 5).Draw(t, "number")}
	}), 0, 4).Draw(t, "ports")
	slices.SortFunc(ports, lbpool.Port.Compare)
	return ports
}

// TestPortsClash compares the walk along two lists with asking for each pair.
func TestPortsClash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &lbpool.Holder{Sharing: &lbpool.Sharing{Ports: drawPorts(t)}}
		b := &lbpool.Holder{Sharing: &lbpool.Sharing{Ports: drawPorts(t)}}
		want := ""
		for _, p := range slices.Backward(a.Ports) {
			if slices.Contains(b.Ports, p) {
				want = "which already uses port " + p.String() + " of it"
			}
		}
		if got := a.Clash(b); got != want {
			t.Fatalf("%v and %v: %q, want %q", a.Ports, b.Ports, got, want)
		}
	})
}

// BenchmarkClash compares two holders that listen on n ports each, and on none
// together.
func BenchmarkClash(b *testing.B) {
	for _, n := range []int32{10, 100, 1_000, 10_000} {
		b.Run(strconv.Itoa(int(n)), func(b *testing.B) {
			one, two := &lbpool.Holder{Sharing: &lbpool.Sharing{}}, &lbpool.Holder{Sharing: &lbpool.Sharing{}}
			for i := range n {
				one.Ports = append(one.Ports, lbpool.Port{Protocol: "TCP", Number: 2*i + 1})
				two.Ports = append(two.Ports, lbpool.Port{Protocol: "TCP", Number: 2*i + 2})
			}
			for b.Loop() {
				if why := one.Clash(two); why != "" {
					b.Fatal(why)
				}
			}
		})
	}
}

// TestSharingIsMutual: whether two may share does not depend on who asks.
func TestSharingIsMutual(t *testing.T) {
	holder := rapid.Custom(func(t *rapid.T) *lbpool.Holder {
		realm := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "realm")
		if rapid.IntRange(0, 2).Draw(t, "alone") == 0 {
			return &lbpool.Holder{Realm: realm}
		}
		return &lbpool.Holder{Realm: realm, Sharing: &lbpool.Sharing{
			Key:     rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"),
			Admits:  rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 0, 2).Draw(t, "admits"),
			Backend: rapid.SampledFrom([]string{"", "Local"}).Draw(t, "backend"),
			Ports:   drawPorts(t),
		}}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := holder.Draw(t, "a"), holder.Draw(t, "b")
		if (a.Bar(b) == "") != (b.Bar(a) == "") {
			t.Fatalf("%q against %q", a.Bar(b), b.Bar(a))
		}
		index := lbpool.Divide([]*lbpool.Pool{{Ranges: ranges(t, "10.0.0.0/30")}})
		allocations, addr := lbpool.NewAllocations(index), netip.MustParseAddr("10.0.0.1")
		allocations.Occupy(addr, a)
		if o, why := allocations.Obstacle(addr, b); (o == nil) != (b.Bar(a) == "") || why != b.Bar(a) {
			t.Fatalf("they say %v, %q", o, why)
		}
		if o, _ := allocations.Obstacle(addr, a); o != nil {
			t.Fatal("a holder is in its own way")
		}
	})
}
