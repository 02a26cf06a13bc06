package balance

import (
	"math"
	"slices"
	"time"
)

// What Pick returns in place of an index.
const (
	// None says that every endpoint was tried, or that there is none.
	None = -1
	// Full says that those left have as many requests as they may have.
	Full = -2
)

// overload is how far above the mean the load of an endpoint may be before a
// hash passes it over (consistent hashing with bounded loads).
const overload = 1.25

// draws is how often two endpoints are drawn before all are looked through.
const draws = 8

// Pick returns the index of the endpoint that s.Session(...) leads to, or the
// next by the policy of s, or None, or Full. It passes over those tried, ejected
// or full; an ejected one is offered when no other is left. A session whose
// endpoint is passed over may change.
func (p *Picker) Pick(s *Set, now time.Time, ses *Session, tried []int) int {
	if s == nil || s.plan == nil {
		return p.Next(s, now, tried)
	}
	q := &pick{picker: p, set: s, plan: s.plan, now: now, tried: tried}
	i := None
	switch ses.kind {
	case byTag:
		i = q.tag(ses)
	case bySticky:
		i = q.sticky(ses)
	case byKey:
		i = q.hash(ses)
	case anywhere:
		i = q.anywhere()
	}
	if i == None {
		return q.lastResort()
	}
	return i
}

// Begin counts a request to the endpoint at index i of s. It reports false if
// the endpoint has as many as the policy allows. Each that returns true is
// followed by one End with the endpoint's Health.
func (p *Picker) Begin(s *Set, i int) bool {
	if !s.Endpoints[i].Health.begin(s.plan.limit()) {
		return false
	}
	p.active.Add(1)
	return true
}

// End counts a request that is over.
func (p *Picker) End(h *Health) {
	h.active.Add(-1)
	p.active.Add(-1)
}

// InTurn reports whether s has no policy beyond taking endpoints in turn: then a
// request has no Session.
func (s *Set) InTurn() bool { return s.plan == nil }

// Counts reports whether the policy of s needs to know what is under way. If it
// does not, Begin and End may be left out.
func (s *Set) Counts() bool {
	return s.plan != nil && (s.plan.policy.Algorithm != RoundRobin || s.plan.policy.MaxRequests > 0)
}

func (p *plan) limit() int {
	if p == nil {
		return 0
	}
	return p.policy.MaxRequests
}

// pick is one call of Pick.
type pick struct {
	picker *Picker
	set    *Set
	plan   *plan
	now    time.Time
	tried  []int

	asked, panic bool // see panics
}

// usable reports whether the endpoint at i may be asked now. It may make the
// request a probe of an ejected one, so only ask about what will be taken.
func (q *pick) usable(i int) bool {
	h := q.set.Endpoints[i].Health
	return q.free(i) && (h.Admit(q.now) || h.doubted() && q.panics())
}

// open reports what usable would, and makes no probe.
func (q *pick) open(i int) bool {
	h := q.set.Endpoints[i].Health
	return q.free(i) && (h.admits(q.now) || h.doubted() && q.panics())
}

// panics is that of the set, asked once.
func (q *pick) panics() bool {
	if !q.asked {
		q.asked, q.panic = true, q.set.panics()
	}
	return q.panic
}

// free reports whether the endpoint at i was not tried and has room.
func (q *pick) free(i int) bool {
	return !slices.Contains(q.tried, i) && !q.set.Endpoints[i].Health.full(q.plan.limit())
}

func (q *pick) tag(ses *Session) int {
	i, here := q.plan.tagged(ses.key)
	if here && q.usable(i) {
		return i
	}
	if here && q.plan.policy.Cookie.ChangeOnFailure {
		ses.fresh = true
	}
	return q.anywhere()
}

func (q *pick) sticky(ses *Session) int {
	for range draws {
		if i, _ := q.plan.rendezvous(ses.key, math.MaxUint64); i < 0 || q.usable(i) {
			return i
		}
		if !ses.fresh && !q.plan.policy.Cookie.ChangeOnFailure {
			break
		}
		ses.draws++
		ses.key, ses.fresh = mix(ses.draws), true
	}
	return q.descend(ses.key, math.MaxInt64, 0)
}

// hash takes the best endpoint that is not above the bound, or the one of its
// subset whose turn it is.
func (q *pick) hash(ses *Session) int {
	n := int64(len(q.plan.seeds))
	if n == 0 {
		return None
	}
	skip := 0
	if k := min(q.plan.policy.Subset, int(n)); k > 1 {
		skip = int(mix(q.picker.next.Add(1)) % uint64(k))
	}
	bound := int64(math.Ceil(overload * float64(q.picker.active.Load()+1) / float64(n)))
	return q.descend(ses.key, bound, skip)
}

// descend takes the first in the order of their scores for key, behind the first skip,
// that has less than bound requests and can be used. What it skipped is the last that it
// would take. However many cannot be used, the endpoints are looked through a few times.
func (q *pick) descend(key uint64, bound int64, skip int) int {
	below, skipped := uint64(math.MaxUint64), None
	for ; skip > 0; skip-- {
		i, score := q.plan.rendezvous(key, below)
		if i < 0 {
			break
		}
		below, skipped = score, i
	}
	i, score := q.plan.rendezvous(key, below) // mostly it can be used, and no other is looked at
	for range draws {
		if i < 0 {
			break
		}
		if q.set.Endpoints[i].Health.active.Load() < bound && q.usable(i) {
			return i
		}
		i, score = q.best(key, score, bound) // again only if somebody else was quicker to probe it
	}
	if skipped >= 0 && q.usable(skipped) {
		return skipped
	}
	return None
}

// best is rendezvous among those that have less than bound requests and could be used.
func (q *pick) best(key, below uint64, bound int64) (best int, score uint64) {
	best = None
	for i, seed := range q.plan.seeds {
		s := mix(seed ^ key)
		if s < below && (best < 0 || s > score) && q.set.Endpoints[i].Health.active.Load() < bound && q.open(i) {
			best, score = i, s
		}
	}
	return best, score
}

func (q *pick) anywhere() int {
	if a := q.plan.policy.Algorithm; a == LeastRequests || a == PeakEWMA {
		return q.lesser()
	}
	n := uint64(len(q.set.Endpoints))
	for range 4 * n { // endpoints that start are passed over more than once
		turn := q.picker.next.Add(1) - 1
		i := int(turn % n)
		if share := q.plan.share(q.set.Endpoints[i].Health, q.now); share < 1 && float64(mix(turn)>>11)/(1<<53) >= share {
			continue
		}
		if q.usable(i) {
			return i
		}
	}
	return None
}

// lesser draws two endpoints and takes the cheaper. One that is ejected and may be
// probed by now is taken when it is drawn, whatever it costs: what made it costly is
// why it was ejected, and to ask it later is to ask it not.
func (q *pick) lesser() int {
	n := uint64(len(q.set.Endpoints))
	first := None
	for range draws {
		if n == 0 {
			break
		}
		i := int(mix(q.picker.next.Add(1)) % n)
		if i == first || !q.free(i) {
			continue
		}
		if h := q.set.Endpoints[i].Health; h.Ejected() {
			if h.Admit(q.now) {
				return i
			}
			if !h.doubted() || !q.panics() {
				continue
			}
		}
		if first == None && n > 1 {
			first = i
			continue
		}
		if first >= 0 && q.cheaper(first, i) {
			return first
		}
		return i
	}
	return first
}

// cheaper reports whether the endpoint at i costs at most what that at j does. Where one
// has not answered yet, how fast they are does not count, or all went to the new one until
// it has.
func (q *pick) cheaper(i, j int) bool {
	timed := q.plan.policy.Algorithm == PeakEWMA && q.set.Endpoints[i].Health.timed() && q.set.Endpoints[j].Health.timed()
	return q.cost(i, timed) <= q.cost(j, timed)
}

func (q *pick) cost(i int, timed bool) float64 {
	h := q.set.Endpoints[i].Health
	cost := float64(h.active.Load() + 1)
	if timed {
		cost *= 1 + h.expected(q.now)
	}
	return cost / q.plan.share(h, q.now)
}

// lastResort looks through all endpoints, those in turn first.
func (q *pick) lastResort() int {
	answer := None
	n, start := uint64(len(q.set.Endpoints)), q.picker.next.Load()
	for k := range n {
		i := int((start%n + k) % n) // start+k may overflow, and miss one
		switch h := q.set.Endpoints[i].Health; {
		case slices.Contains(q.tried, i):
		case h.full(q.plan.limit()):
			if answer == None {
				answer = Full
			}
		case !h.Ejected():
			return i
		default:
			answer = i
		}
	}
	return answer
}
