package balance_test

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/proxy/balance"
)

var epoch = time.Unix(1_800_000_000, 0)

func set(n int) *balance.Set {
	s := &balance.Set{}
	for i := range n {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.Endpoints = append(s.Endpoints, balance.Endpoint{Addr: netip.AddrPortFrom(addr, 80), Health: &balance.Health{}})
	}
	return s
}

func eject(s *balance.Set, i int) {
	for range 3 {
		s.Endpoints[i].Health.Failed(epoch)
	}
}

// TestRoundRobinIsExact: 600 requests over 3 endpoints are 200 each, wherever
// the turn starts and however many goroutines take it.
func TestRoundRobinIsExact(t *testing.T) {
	s := set(3)
	var p balance.Picker
	p.Start(^uint64(0) - 298) // the counter may well wrap: 2^64 is one more than a multiple of 3
	var mu sync.Mutex
	counts := map[int]int{}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 100 {
				i := p.Next(s, epoch, nil)
				mu.Lock()
				counts[i]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range 3 {
		if counts[i] < 199 || counts[i] > 201 {
			t.Errorf("over the wrap: %v, want 200 each, give or take one", counts)
		}
	}
	clear(counts)
	p.Start(7)
	for range 600 {
		counts[p.Next(s, epoch, nil)]++
	}
	if counts[0] != 200 || counts[1] != 200 || counts[2] != 200 {
		t.Errorf("%v, want 200 each", counts)
	}
}

// TestTenPodsInAHundredRequests is case L1 of ingress-controller-conformance.
func TestTenPodsInAHundredRequests(t *testing.T) {
	var p balance.Picker
	seen := map[int]bool{}
	for range 100 {
		seen[p.Next(set(10), epoch, nil)] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d pods seen, want 10", len(seen))
	}
}

func TestStartSpreadsProxies(t *testing.T) {
	s := set(5)
	first := map[int]bool{}
	for offset := range uint64(5) {
		var p balance.Picker
		p.Start(offset)
		first[p.Next(s, epoch, nil)] = true
	}
	if len(first) != 5 {
		t.Errorf("five offsets begin at %d endpoints", len(first))
	}
}

func TestNothingToPick(t *testing.T) {
	var p balance.Picker
	if p.Next(nil, epoch, nil) != -1 || p.Next(&balance.Set{}, epoch, nil) != -1 || p.Next(set(2), epoch, []int{1, 0}) != -1 {
		t.Error("picked from nothing")
	}
}

// TestNextSkips: never a tried endpoint, never an ejected one while another is
// left, never -1 while one is untried.
func TestNextSkips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "endpoints")
		s := set(n)
		var p balance.Picker
		p.Start(rapid.Uint64().Draw(t, "start"))
		out := rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID).Draw(t, "ejected")
		for _, i := range out {
			eject(s, i)
		}
		var tried []int
		for range n {
			i := p.Next(s, epoch, tried)
			if i < 0 || slices.Contains(tried, i) {
				t.Fatalf("picked %d after %v", i, tried)
			}
			if slices.Contains(out, i) && len(tried) < n-len(out) {
				t.Fatalf("picked the ejected %d after %v, ejected are %v", i, tried, out)
			}
			tried = append(tried, i)
		}
		if i := p.Next(s, epoch, tried); i != -1 {
			t.Fatalf("picked %d, all were tried", i)
		}
	})
}

// TestEjectedLoadIsShared: the neighbour of an ejected endpoint does not get all
// of its requests.
func TestEjectedLoadIsShared(t *testing.T) {
	s := set(4)
	eject(s, 1)
	var p balance.Picker
	counts := map[int]int{}
	for range 900 {
		counts[p.Next(s, epoch, nil)]++
	}
	if counts[0] != 300 || counts[2] != 300 || counts[3] != 300 {
		t.Errorf("%v, want 300 for each of 0, 2 and 3", counts)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	s := set(100)
	eject(s, 3)
	var p balance.Picker
	tried := []int{1, 2}
	if n := testing.AllocsPerRun(200, func() {
		if i := p.Next(s, epoch, tried); i >= 0 {
			s.Endpoints[i].Health.Succeeded()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHealth(t *testing.T) {
	var h balance.Health
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	for i, want := range []bool{false, false, true} {
		if h.Failed(epoch) != want {
			t.Fatalf("failure %d: ejected is %v", i+1, !want)
		}
	}
	for range 100 { // requests under way that fail later are the same misfortune
		h.Failed(epoch)
	}
	if h.Admit(at(999 * time.Millisecond)) {
		t.Error("admitted too soon")
	}
	if !h.Admit(at(time.Second)) {
		t.Error("no probe after a second")
	}
	if h.Admit(at(time.Second + time.Millisecond)) {
		t.Error("a second probe beside the first")
	}
	h.Failed(at(1100 * time.Millisecond))
	if h.Admit(at(3 * time.Second)) {
		t.Error("the pause did not double")
	}
	if !h.Admit(at(3200 * time.Millisecond)) {
		t.Error("no probe after the doubled pause")
	}
	if !h.Admit(at(4300 * time.Millisecond)) {
		t.Error("a probe that never reported bars all others")
	}
	h.Succeeded()
	if h.Ejected() || !h.Admit(at(4300*time.Millisecond)) {
		t.Error("still ejected after a success")
	}
	if h.Failed(at(5 * time.Second)) {
		t.Error("one failure ejects after a success")
	}
	for range 3 {
		h.Failed(at(5 * time.Second))
	}
	if !h.Admit(at(6 * time.Second)) {
		t.Error("the pause did not begin anew after a success")
	}
	now := at(6 * time.Second)
	for range 40 { // however long it is dead, it is asked twice a minute
		h.Failed(now)
		now = now.Add(32 * time.Second)
		if !h.Admit(now) {
			t.Fatal("the pause grew beyond 32 s")
		}
	}
}

// TestOneProbeAmongMany: of many goroutines that ask at once, one probes.
func TestOneProbeAmongMany(t *testing.T) {
	s := set(1)
	eject(s, 0)
	var mu sync.Mutex
	admitted := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if s.Endpoints[0].Health.Admit(epoch.Add(time.Second)) {
					mu.Lock()
					admitted++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if admitted != 1 {
		t.Errorf("%d probes, want 1", admitted)
	}
}
