package balance

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk is descend's twin: it walks down the scores, one endpoint after another.
func (q *pick) walk(key uint64, bound int64, skip int) int {
	below, skipped := uint64(math.MaxUint64), None
	for {
		i, score := q.plan.rendezvous(key, below)
		if i < 0 {
			break
		}
		below = score
		if skip > 0 {
			skip, skipped = skip-1, i
			continue
		}
		if q.set.Endpoints[i].Health.active.Load() < bound && q.usable(i) {
			return i
		}
	}
	if skipped >= 0 && q.usable(skipped) {
		return skipped
	}
	return None
}

func hashed(n, most int) *Set {
	s := &Set{}
	for i := range n {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.Endpoints = append(s.Endpoints, Endpoint{Addr: netip.AddrPortFrom(addr, 80), Health: new(Health)})
	}
	return s.Arrange(Policy{Algorithm: Hash, HashBy: "$request_uri", MaxRequests: most}, []byte("uid"), CookieKey{})
}

// Whatever is full, ejected, sick, due for a probe or tried: the endpoint is the one that
// a walk down the scores comes to, and is left in the same state.
func TestDescend(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "endpoints")
		most := rapid.IntRange(0, 3).Draw(t, "most")
		now := began.Add(rapid.SampledFrom([]time.Duration{0, 1100 * time.Millisecond}).Draw(t, "later"))
		var picks [2]*pick
		for k := range picks {
			s := hashed(n, most)
			picks[k] = &pick{picker: new(Picker), set: s, plan: s.plan, now: now}
		}
		for i := range n {
			active, state := rapid.Int64Range(0, 4).Draw(t, "active"), rapid.IntRange(0, 8).Draw(t, "state")
			for _, q := range picks {
				h := q.set.Endpoints[i].Health
				h.active.Store(active)
				for range sickAfter {
					switch state {
					case 0:
						h.Failed(began)
					case 1:
						h.Broke(began)
					case 2:
						h.Checked(false, HealthCheck{Failures: 1, Successes: 1})
					}
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "tried") == 0 {
				picks[0].tried = append(picks[0].tried, i)
			}
		}
		picks[1].tried = picks[0].tried
		key, skip := rapid.Uint64().Draw(t, "key"), rapid.IntRange(0, MaxSubset).Draw(t, "skip")
		bound := rapid.SampledFrom([]int64{0, 1, 3, math.MaxInt64}).Draw(t, "bound")
		if got, want := picks[0].descend(key, bound, skip), picks[1].walk(key, bound, skip); got != want {
			t.Fatalf("endpoint %d, want %d", got, want)
		}
		for i := range n {
			if got, want := picks[0].set.Endpoints[i].Health.until.Load(), picks[1].set.Endpoints[i].Health.until.Load(); got != want {
				t.Fatalf("endpoint %d is out of turn until %d, want %d", i, got, want)
			}
		}
	})
}

// A request that is refused since all of many endpoints are full costs little more than
// one that is not.
func TestRefusingIsCheap(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	least := func(s *Set, want int) time.Duration {
		var p Picker
		best := time.Hour
		for k := range uint64(20) {
			ses := Session{kind: byKey, key: mix(k)}
			at := time.Now()
			got := p.Pick(s, now, &ses, nil)
			best = min(best, time.Since(at))
			if (got == Full) != (want == Full) {
				t.Fatalf("picked %d", got)
			}
		}
		return best
	}
	free, full := hashed(1000, 1), hashed(1000, 1)
	for i := range full.Endpoints {
		full.Endpoints[i].Health.active.Store(1)
	}
	if refused, taken := least(full, Full), least(free, 0); refused > 100*taken {
		t.Errorf("%s to refuse a request, %s to place one", refused, taken)
	} else {
		t.Logf("%s to refuse a request, %s to place one", refused, taken)
	}
}
