package speaker

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/l2"
)

// manyServices is how many addresses TestManyAddresses adds.
const manyServices = 1000

// manyAddress is the address of the i-th of them.
func manyAddress(i int) string { return fmt.Sprintf("10.0.%d.%d", 8+i/200, 1+i%200) }

// TestManyAddresses lets a third of a thousand addresses change hands at once.
func TestManyAddresses(t *testing.T) {
	if !inside(t) {
		return
	}
	f := newFleet(t, 3)
	f.many = true
	f.startAll()
	var owners map[string][]netip.Addr
	took := f.eventually("all are answered for", func() bool { owners = f.whoAll(); return len(owners[""]) == 0 })
	t.Logf("%d addresses answered %v after the start, by %d, %d and %d", manyServices, took.Round(time.Millisecond), len(owners["n1"]), len(owners["n2"]), len(owners["n3"]))
	for _, name := range []string{"n1", "n2", "n3"} {
		if n := len(owners[name]); n > manyServices*5/12+10 {
			t.Errorf("%s owns %d of %d", name, n, manyServices)
		}
	}
	f.hosts["n1"].cable("nomaster")
	took = f.eventually("the survivors answer for all", func() bool {
		owners = f.whoAll()
		return len(owners[""])+len(owners["n1"]) == 0
	})
	t.Logf("all taken over from n1 after %v", took.Round(time.Millisecond))
	f.hosts["n1"].cable("master lan")
	time.Sleep(2 * time.Second)
	if n := len(f.whoAll()["n1"]); n > 0 {
		t.Errorf("n1 returned and took %d addresses", n)
	}
	// The last one standing has no speaker to talk to, but hears that hosts ask.
	f.hosts["n1"].cable("nomaster")
	f.hosts["n2"].cable("nomaster")
	took = f.eventually("the last one answers for all", func() bool { return len(f.whoAll()["n3"]) == manyServices })
	t.Logf("n3 alone answers for all after %v", took.Round(time.Millisecond))
}

// whoAll asks for all addresses at once: who answers for which.
func (f *fleet) whoAll() map[string][]netip.Addr {
	f.t.Helper()
	questions := make([]l2.Question, manyServices)
	for i := range questions {
		questions[i] = l2.Question{Address: netip.MustParseAddr(manyAddress(i)), Interfaces: []string{"lan"}}
	}
	found, err := f.ask.Probe(f.t.Context(), questions, l2.Timing{Times: 2, Every: 60 * time.Millisecond})
	if err != nil {
		f.t.Fatal(err)
	}
	names := map[string]string{}
	for _, h := range f.hosts {
		names[h.mac] = h.name
	}
	out := map[string][]netip.Addr{}
	for _, q := range questions {
		name := names[found[q.Address].MAC]
		out[name] = append(out[name], q.Address)
	}
	return out
}
