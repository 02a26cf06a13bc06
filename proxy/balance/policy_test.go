package balance_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

var byURI = balance.Policy{Algorithm: balance.Hash, HashBy: "$request_uri"}

// arranged returns n endpoints under p.
func arranged(n int, p balance.Policy) *balance.Set {
	return set(n).Arrange(p, []byte("uid"), balance.CookieKey{})
}

// without returns s without the endpoint at i, and with the health of the rest.
func without(s *balance.Set, i int, p balance.Policy) *balance.Set {
	fewer := &balance.Set{Endpoints: slices.Delete(slices.Clone(s.Endpoints), i, i+1)}
	return fewer.Arrange(p, []byte("uid"), balance.CookieKey{})
}

func get(target string) *exchange.Request { return &exchange.Request{Target: []byte(target)} }

// at is the address of the endpoint that r is sent to.
func at(s *balance.Set, p *balance.Picker, r *exchange.Request, tried ...int) netip.AddrPort {
	ses := s.Session(r, 1)
	i := p.Pick(s, epoch, &ses, tried)
	if i < 0 {
		return netip.AddrPort{}
	}
	return s.Endpoints[i].Addr
}

// An endpoint that leaves moves its own keys and no other, which are its share;
// one that comes takes its share and moves nothing else.
func TestHashMovesLittle(t *testing.T) {
	const keys = 50_000
	for _, n := range []int{2, 5, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			full := arranged(n, byURI)
			fewer := without(full, n/2, byURI)
			gone := full.Endpoints[n/2].Addr
			var p balance.Picker
			moved := 0
			for k := range keys {
				r := get(fmt.Sprintf("/item/%d", k))
				before, after := at(full, &p, r), at(fewer, &p, r)
				if before != after {
					moved++
				}
				if before != after && before != gone {
					t.Fatalf("%s moved from %s to %s, though only %s left", r.Target, before, after, gone)
				}
			}
			if ideal := keys / n; float64(moved) > 1.2*float64(ideal) || float64(moved) < 0.8*float64(ideal) {
				t.Errorf("%d of %d keys moved, ideal is %d", moved, keys, ideal)
			}
		})
	}
}

// The choice of a hash follows from the request and the endpoints alone, not
// from their order or from the proxy.
func TestHashIsTheSameOnEveryProxy(t *testing.T) {
	s := arranged(7, byURI)
	reversed := &balance.Set{Endpoints: slices.Clone(s.Endpoints)}
	slices.Reverse(reversed.Endpoints)
	reversed = reversed.Arrange(byURI, []byte("uid"), balance.CookieKey{})
	var p, q balance.Picker
	q.Start(99)
	for k := range 200 {
		r := get(fmt.Sprint("/", k))
		if a, b := at(s, &p, r), at(reversed, &q, r); a != b {
			t.Fatalf("%s goes to %s here and to %s there", r.Target, a, b)
		}
	}
}

// However the keys are chosen, no endpoint has more than 1.25 of the mean.
func TestHashBoundsTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "endpoints")
		s := arranged(n, byURI)
		var p balance.Picker
		hot := rapid.IntRange(1, 3).Draw(t, "keys")
		active := make([]int, n)
		for total := range rapid.IntRange(1, 200).Draw(t, "requests") {
			ses := s.Session(get(fmt.Sprint("/", total%hot)), 0)
			i := p.Pick(s, epoch, &ses, nil)
			if i < 0 || !p.Begin(s, i) {
				t.Fatalf("request %d was refused: %d", total, i)
			}
			active[i]++
			if bound := int(math.Ceil(1.25 * float64(total+1) / float64(n))); active[i] > bound {
				t.Fatalf("endpoint %d has %d of %d requests, the bound is %d", i, active[i], total+1, bound)
			}
		}
	})
}

// A subset is so many endpoints, the same for one key every time.
func TestHashSubset(t *testing.T) {
	policy := byURI
	policy.Subset = 3
	s := arranged(10, policy)
	var p balance.Picker
	distinct := map[string]bool{}
	for k := range 30 {
		seen := map[netip.AddrPort]bool{}
		for range 60 {
			seen[at(s, &p, get(fmt.Sprint("/", k)))] = true
		}
		if len(seen) != 3 {
			t.Fatalf("key %d was spread over %d endpoints, want 3", k, len(seen))
		}
		distinct[fmt.Sprint(seen)] = true
	}
	if len(distinct) < 10 {
		t.Errorf("30 keys share %d subsets", len(distinct))
	}
}

// Whatever the policy: never one that was tried, never an ejected one while
// another is left, and something as long as one is untried.
func TestPickSkips(t *testing.T) {
	policies := []balance.Policy{
		byURI, {Algorithm: balance.LeastRequests}, {Algorithm: balance.PeakEWMA}, {Cookie: balance.Cookie{Name: "s"}},
		{Cookie: balance.Cookie{Name: "s", Persistent: true}}, {Cookie: balance.Cookie{Name: "s", ChangeOnFailure: true}},
		{Algorithm: balance.Hash, HashBy: "$uri$args", Subset: 2}, {SlowStart: time.Minute},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "endpoints")
		s := arranged(n, rapid.SampledFrom(policies).Draw(t, "policy"))
		var p balance.Picker
		p.Start(rapid.OneOf(rapid.Uint64(), rapid.Uint64Min(math.MaxUint64-8)).Draw(t, "start"))
		out := rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID).Draw(t, "ejected")
		for _, i := range out {
			eject(s, i)
		}
		var tried []int
		ses := s.Session(get("/"), rapid.Uint64().Draw(t, "random"))
		for range n {
			i := p.Pick(s, epoch, &ses, tried)
			if i < 0 || slices.Contains(tried, i) {
				t.Fatalf("picked %d after %v", i, tried)
			}
			if slices.Contains(out, i) && len(tried) < n-len(out) {
				t.Fatalf("picked the ejected %d after %v, ejected are %v", i, tried, out)
			}
			tried = append(tried, i)
		}
		if i := p.Pick(s, epoch, &ses, tried); i != balance.None {
			t.Fatalf("picked %d, all were tried", i)
		}
	})
}

// The limit holds, and over it the answer is Full, whatever the policy.
func TestMaxRequests(t *testing.T) {
	for _, policy := range []balance.Policy{
		{}, {Algorithm: balance.LeastRequests}, {Algorithm: balance.PeakEWMA}, byURI, {Cookie: balance.Cookie{Name: "s"}},
	} {
		policy.MaxRequests = 5
		s := arranged(3, policy)
		var p balance.Picker
		for k := range 15 {
			ses := s.Session(get("/"), uint64(k))
			if i := p.Pick(s, epoch, &ses, nil); i < 0 || !p.Begin(s, i) {
				t.Fatalf("%s: request %d was refused: %d", policy.Algorithm, k, i)
			}
		}
		ses := s.Session(get("/"), 0)
		if i := p.Pick(s, epoch, &ses, nil); i != balance.Full {
			t.Errorf("%s: picked %d with every endpoint full", policy.Algorithm, i)
		}
		if p.Begin(s, 1) {
			t.Errorf("%s: a request above the limit was counted", policy.Algorithm)
		}
		p.End(s.Endpoints[1].Health)
		if i := p.Pick(s, epoch, &ses, nil); i != 1 {
			t.Errorf("%s: picked %d, want the one with room", policy.Algorithm, i)
		}
	}
}

// Two choices keep the busiest endpoint near the mean; one choice would not.
func TestLeastRequestsIsEven(t *testing.T) {
	s := arranged(20, balance.Policy{Algorithm: balance.LeastRequests})
	var p balance.Picker
	var active [20]int
	for range 2000 {
		var ses balance.Session
		i := p.Pick(s, epoch, &ses, nil)
		p.Begin(s, i)
		active[i]++
	}
	if most := slices.Max(active[:]); most > 105 {
		t.Errorf("the busiest of 20 has %d of 2000 requests", most)
	}
}

// A slow endpoint gets little, and is asked again when its slowness is past.
func TestPeakEWMA(t *testing.T) {
	s := arranged(5, balance.Policy{Algorithm: balance.PeakEWMA})
	var p balance.Picker
	share := func(now time.Time) float64 {
		var picked [5]int
		for range 1000 {
			var ses balance.Session
			i := p.Pick(s, now, &ses, nil)
			p.Begin(s, i)
			picked[i]++
		}
		for i, n := range picked {
			for range n {
				p.End(s.Endpoints[i].Health)
			}
		}
		return float64(picked[2]) / 1000
	}
	for i := range 5 {
		s.Endpoints[i].Health.Observe(epoch, time.Millisecond)
	}
	s.Endpoints[2].Health.Observe(epoch, 300*time.Millisecond) // one peak is enough
	if got := share(epoch); got > 0.01 {
		t.Errorf("%.3f of the requests go to the slow endpoint", got)
	}
	for i := range 5 {
		s.Endpoints[i].Health.Observe(epoch.Add(2*time.Minute), time.Millisecond)
	}
	if got := share(epoch.Add(2 * time.Minute)); got < 0.1 {
		t.Errorf("%.3f of the requests go to it two minutes later", got)
	}
}

// How fast an endpoint is that has not answered yet is not known: it gets its share of what
// is under way, and not all there is until it has answered.
func TestPeakEWMADoesNotRushToTheNew(t *testing.T) {
	policy := balance.Policy{Algorithm: balance.PeakEWMA}
	old := arranged(1, policy)
	old.Endpoints[0].Health.Observe(epoch, 50*time.Millisecond)
	now := arranged(2, policy).Keep(old)
	var p balance.Picker
	var picked [2]int
	for range 1000 {
		var ses balance.Session
		i := p.Pick(now, epoch, &ses, nil)
		p.Begin(now, i)
		picked[i]++
	}
	if picked[1] > 510 || picked[1] < 490 {
		t.Errorf("of 1000 requests under way %d are with the new one", picked[1])
	}
	now.Endpoints[1].Health.Observe(epoch, 50*time.Millisecond)
	now.Endpoints[0].Health.Observe(epoch, 5*time.Second)
	for range 100 {
		var ses balance.Session
		if i := p.Pick(now, epoch, &ses, nil); i != 1 {
			t.Fatal("the slower of two that have answered is asked")
		}
	}
}

// A pod that has come to the address of another starts slowly, too.
func TestSlowStartAtAnAddressOfBefore(t *testing.T) {
	policy := balance.Policy{SlowStart: 100 * time.Second}
	old, now := arranged(2, policy), arranged(2, policy)
	old.Endpoints[1].Pod, now.Endpoints[1].Pod = snapshot.Key{Name: "before"}, snapshot.Key{Name: "after"}
	now = now.Keep(old)
	now.Joined(old, epoch)
	var p balance.Picker
	n := 0
	for range 1000 {
		var ses balance.Session
		if p.Pick(now, epoch, &ses, nil) == 1 {
			n++
		}
	}
	if n > 100 {
		t.Errorf("it gets %d of the first 1000 requests", n)
	}
}

// An endpoint that joins gets its whole share after the slow start only, of the turns as
// of what is under way.
func TestSlowStart(t *testing.T) {
	policy := balance.Policy{SlowStart: 100 * time.Second}
	for _, policy.Algorithm = range []balance.Algorithm{balance.RoundRobin, balance.LeastRequests, balance.PeakEWMA} {
		for after, want := range map[time.Duration][2]float64{0: {0.005, 0.1}, 50 * time.Second: {0.08, 0.22}, 200 * time.Second: {0.2, 0.3}} {
			old := arranged(3, policy)
			now := arranged(4, policy).Keep(old)
			now.Joined(old, epoch)
			var p balance.Picker
			n := 0
			for range 4000 {
				var ses balance.Session
				i := p.Pick(now, epoch.Add(after), &ses, nil)
				p.Begin(now, i)
				if i == 3 {
					n++
				}
			}
			if got := float64(n) / 4000; got < want[0] || got > want[1] {
				t.Errorf("algorithm %v, %s after: %.3f of the requests, want %v", policy.Algorithm, after, got, want)
			}
		}
	}
}

// A pod that takes connections and loses them goes out of turn, unless most do.
func TestSickEndpoints(t *testing.T) {
	s := set(4)
	lose := func(i int) {
		for range 5 {
			s.Endpoints[i].Health.Broke(epoch)
		}
	}
	var p balance.Picker
	picked := func() map[int]int {
		counts := map[int]int{}
		for range 400 {
			counts[p.Next(s, epoch, nil)]++
		}
		return counts
	}
	lose(0)
	lose(1)
	s.Endpoints[0].Health.Succeeded() // that it takes connections is nothing new
	if got := picked(); got[0]+got[1] != 0 {
		t.Errorf("endpoints that lose every request are picked: %v", got)
	}
	lose(2)
	if got := picked(); got[0] == 0 || got[1] == 0 || got[2] == 0 || got[3] == 0 {
		t.Errorf("with three of four ejected, all are asked: %v", got)
	}
	s.Endpoints[0].Health.Answered()
	if s.Endpoints[0].Health.Ejected() {
		t.Error("an endpoint that answered is still ejected")
	}
}

func TestPickDoesNotAllocate(t *testing.T) {
	sticky := balance.Policy{Cookie: balance.Cookie{Name: "s", Persistent: true}}
	for _, policy := range []balance.Policy{
		{}, byURI, {Algorithm: balance.LeastRequests}, {Algorithm: balance.PeakEWMA, MaxRequests: 9}, {Cookie: balance.Cookie{Name: "s"}}, sticky,
		{Algorithm: balance.Hash, HashBy: "$http_x_user$cookie_a$arg_q$remote_addr", Subset: 4}, {SlowStart: time.Hour},
	} {
		s := arranged(50, policy)
		eject(s, 3)
		var p balance.Picker
		r := get("/a?q=7")
		r.Header.Add("X-User", "x")
		r.Header.Add("Cookie", "a=b; s=00112233445566778899aabbccddeeff")
		if n := testing.AllocsPerRun(200, func() {
			ses := s.Session(r, 7)
			i := p.Pick(s, epoch, &ses, nil)
			if p.Begin(s, i) {
				s.Endpoints[i].Health.Observe(epoch, time.Millisecond)
				p.End(s.Endpoints[i].Health)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations", policy, n)
		}
	}
}

func BenchmarkPickHash(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := arranged(n, byURI)
			var p balance.Picker
			r := get("/a/b/c")
			for b.Loop() {
				ses := s.Session(r, 7)
				p.Pick(s, epoch, &ses, nil)
			}
		})
	}
}

// Checks put an endpoint out of turn, and they alone put it back, after as many in a row
// as they want.
func TestHealthChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := balance.HealthCheck{Failures: rapid.IntRange(1, 4).Draw(t, "failures"), Successes: rapid.IntRange(1, 4).Draw(t, "successes")}
		var h balance.Health
		now, out, row, last := epoch, false, 0, true
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Minute) // whatever else ejects is over
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				h.Answered()
			case 1:
				h.Succeeded()
			case 2:
				h.Broke(now)
				h.Answered() // so that it is sick for its checks only
			default:
				well := rapid.Bool().Draw(t, "well")
				if row++; well != last {
					row = 1
				}
				last = well
				changed := !out && !well && row >= c.Failures || out && well && row >= c.Successes
				if h.Checked(well, c) != changed {
					t.Fatalf("%d checks with the result %v: it was out: %v, and changes: %v", row, well, out, !changed)
				}
				out = out != changed
			}
			if h.Ejected() != out || h.Admit(now) == out {
				t.Fatalf("it is out of turn: %v, want %v", h.Ejected(), out)
			}
		}
	})
}

// Endpoints that fail their checks get nothing while others are well, and as much as
// others where most fail.
func TestPickWithHealthChecks(t *testing.T) {
	for _, policy := range []balance.Policy{{}, {Algorithm: balance.LeastRequests}, byURI, {Cookie: balance.Cookie{Name: "s"}}} {
		for failing, want := range map[int]int{0: 5, 2: 3, 3: 5, 5: 5} {
			s := arranged(5, policy)
			for i := range failing {
				s.Endpoints[i].Health.Checked(false, balance.HealthCheck{Failures: 1, Successes: 1})
			}
			var p balance.Picker
			seen := map[netip.AddrPort]bool{}
			for k := range 300 {
				ses := s.Session(get(fmt.Sprint("/", k)), uint64(k))
				if i := p.Pick(s, epoch, &ses, nil); i >= 0 {
					seen[s.Endpoints[i].Addr] = true
				}
			}
			if len(seen) != want {
				t.Errorf("%s with %d of 5 failing: %d are asked, want %d", policy.Algorithm, failing, len(seen), want)
			}
		}
	}
}

// An ejected endpoint whose time is over is asked, whatever its load and however slow it
// was, and no draw that another wins costs it its probe.
func TestProbesAreNotDrawnAway(t *testing.T) {
	for _, algorithm := range []balance.Algorithm{balance.LeastRequests, balance.PeakEWMA} {
		for _, n := range []int{2, 5} {
			s := arranged(n, balance.Policy{Algorithm: algorithm})
			eject(s, 1)
			h := s.Endpoints[1].Health
			h.Observe(epoch, time.Minute)
			var p balance.Picker
			for range 50 { // still under way
				p.Begin(s, 1)
			}
			now := epoch.Add(1100 * time.Millisecond)
			asked := 0
			for range 40 {
				var ses balance.Session
				if p.Pick(s, now, &ses, nil) == 1 {
					asked++
				}
			}
			if asked != 1 {
				t.Errorf("%s of %d: its probe is sent %d times", algorithm, n, asked)
			}
			h.Failed(now)
			if now = now.Add(2100 * time.Millisecond); !h.Admit(now) { // one probe has failed
				t.Errorf("%s of %d: one failed probe ejects it for longer than 2 s", algorithm, n)
			}
		}
	}
}
