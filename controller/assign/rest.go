package assign

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// Freed says when an address lost its last Service.
type Freed struct {
	Address netip.Addr
	At      time.Time
}

const (
	// maxFreed bounds how many freed addresses are remembered beyond those that
	// still rest; the oldest are forgotten, which makes them as good as new.
	maxFreed = 1 << 14
	// maxRests bounds how many are, resting or not: in a pool that is never used up,
	// one tenant alone could free addresses without end, and each costs every plan.
	maxRests = 1 << 17
	// maxResting is how many ranges a pool's status holds: those of a /24 of
	// which every other address rests.
	maxResting = 128
	// maxRecalled bounds what is read of them.
	maxRecalled = 1 << 16
)

// freed enters which addresses rest: those of earlier plans, then the
// ones that the last plan still showed in use.
func (w *work) freed() {
	allocations := w.pools.allocations
	usable := func(a netip.Addr) bool { return !allocations.Taken(a) && w.pools.poolOf(a) != nil }
	var fresh []Freed
	for _, h := range w.prev.Holdings {
		if w.wasReal(h) && usable(h.Address) {
			fresh = append(fresh, Freed{h.Address, w.now})
		}
	}
	fresh = inTurn(fresh)
	stale := func(f Freed) bool { // it is in use, or was, however briefly
		_, again := slices.BinarySearchFunc(fresh, f, Freed.compare)
		return again || !usable(f.Address)
	}
	if w.plan.Freed = w.prev.Freed; len(fresh) > 0 || slices.ContainsFunc(w.prev.Freed, stale) {
		w.plan.Freed = slices.DeleteFunc(slices.Clone(w.prev.Freed), stale)
		w.plan.Freed = w.forget(append(w.plan.Freed, fresh...))
	}
	for _, f := range w.plan.Freed {
		allocations.Rest(f.Address, f.At)
	}
}

// freeLost enters what this plan takes away. Until the snapshot shows that it is
// gone it is in use, and a later plan enters it again.
func (w *work) freeLost() {
	var lost []Freed
	for _, c := range w.sorted {
		for _, l := range c.trouble.losses() {
			if w.pools.poolOf(l.addr) != nil {
				lost = append(lost, Freed{l.addr, w.now})
			}
		}
	}
	if len(lost) > 0 {
		w.plan.Freed = slices.Concat(w.plan.Freed, inTurn(lost))
	}
}

// inTurn orders what was freed at one time, each once: of a shared address
// there were several holders.
func inTurn(list []Freed) []Freed {
	slices.SortFunc(list, Freed.compare)
	return slices.Compact(list)
}

// compare orders by address.
func (f Freed) compare(o Freed) int { return f.Address.Compare(o.Address) }

// forget drops the oldest entries above the bounds: those that do not rest any
// more above the first, any above the second.
func (w *work) forget(list []Freed) []Freed {
	extra := len(list) - maxFreed
	if extra <= 0 {
		return list
	}
	list = slices.DeleteFunc(list, func(f Freed) bool {
		drop := extra > 0 && !w.rests(f)
		if drop {
			extra--
		}
		return drop
	})
	return list[max(0, len(list)-maxRests):]
}

// rests reports whether an address of our pools has not rested long enough.
func (w *work) rests(f Freed) bool {
	return w.now.Before(f.At.Add(w.reuseAfter(w.pools.poolOf(f.Address))))
}

func (w *work) reuseAfter(p *pool) time.Duration { return w.pools.poolIndex.Pools[p.index].ReuseAfter }

// wasReal reports whether a Service can have had an address that the last plan
// listed: a plan that was never carried out frees nothing.
func (w *work) wasReal(h Holding) bool {
	if !h.Pending {
		return true
	}
	_, alive := w.c.Services.Get(h.Service)
	return !alive
}

// recall finds out what a new leader can know of the time before it: what rests
// by the statuses of pools, and what a speaker still announces although no Service
// has it, which must have been freed just now. (What a Service has is dropped
// in freed.) Status is input: an address of another pool means nothing, a time to
// come means now.
func (w *work) recall() {
	since := map[netip.Addr]time.Time{}
	for _, p := range w.pools.list {
		if w.reuseAfter(p) > 0 {
			w.recallPool(p, since)
		}
	}
	for key, speaker := range w.c.SpeakerStatuses.All() {
		if _, alive := w.c.Nodes.Get(snapshot.Key{Name: key.Name}); !alive {
			continue // nobody is left to correct what it says
		}
		for _, said := range speaker.Status.Announcing {
			a, err := lbpool.ParseAddr(said.Address)
			if err != nil {
				continue
			}
			if p := w.pools.poolOf(a); p != nil && w.reuseAfter(p) > 0 {
				since[a] = w.now
			}
		}
	}
	for a, at := range since {
		w.prev.Freed = append(w.prev.Freed, Freed{a, at})
	}
	slices.SortFunc(w.prev.Freed, func(a, b Freed) int {
		return cmp.Or(a.At.Compare(b.At), a.Address.Compare(b.Address))
	})
}

// recallPool reads what rests by the status of one pool.
func (w *work) recallPool(p *pool, since map[netip.Addr]time.Time) {
	left := maxRecalled
	for _, said := range p.obj.Status.Resting {
		r, err := lbpool.ParseReserved(said.Addresses)
		if err != nil {
			continue
		}
		at := said.Since.Time
		if at.After(w.now) {
			at = w.now
		}
		for a := r.From(); a.IsValid() && !r.To().Less(a) && left > 0; a = a.Next() {
			left--
			if w.pools.poolOf(a) == p && w.rests(Freed{a, at}) && at.After(since[a]) {
				since[a] = at
			}
		}
	}
}

// resting is what rests now, by pool and in the order of address.
func (w *work) resting() map[*pool][]Freed {
	list := map[*pool][]Freed{}
	for _, f := range w.plan.Freed {
		if !w.pools.allocations.Taken(f.Address) && w.rests(f) {
			p := w.pools.poolOf(f.Address)
			list[p] = append(list[p], f)
		}
	}
	for _, of := range list {
		slices.SortFunc(of, Freed.compare)
	}
	return list
}

// A restingRange is addresses that rest since one time.
type restingRange struct {
	from, to netip.Addr
	since    time.Time
}

// restingRanges puts what rests, in the order of address, into no more than
// maxResting ranges. Times are rounded up, so that neighbours can be one range
// and nothing rests too short: to seconds, which is what a status can hold, or
// where that leaves too many, to an eighth of the rest in full seconds. Where
// neither suffices, those that still rest longest are listed.
func restingRanges(list []Freed, reuseAfter time.Duration) (told []v1alpha1.RestingAddresses) {
	ranges := mergeResting(list, time.Second)
	if len(ranges) > maxResting {
		ranges = mergeResting(list, max(time.Second, (reuseAfter/8+time.Second-1).Truncate(time.Second)))
	}
	if len(ranges) > maxResting {
		slices.SortFunc(ranges, func(a, b restingRange) int {
			return cmp.Or(b.since.Compare(a.since), a.from.Compare(b.from))
		})
		ranges = ranges[:maxResting]
	}
	for _, r := range ranges {
		text := r.from.String()
		if r.from != r.to {
			text += "-" + r.to.String()
		}
		told = append(told, v1alpha1.RestingAddresses{Addresses: text, Since: metav1.NewTime(r.since)})
	}
	return told
}

// mergeResting joins neighbours that were freed within the same grain of time.
func mergeResting(list []Freed, grain time.Duration) (ranges []restingRange) {
	for _, f := range list {
		since := roundUp(f.At, grain)
		if n := len(ranges); n > 0 && ranges[n-1].to.Next() == f.Address && ranges[n-1].since.Equal(since) {
			ranges[n-1].to = f.Address
		} else {
			ranges = append(ranges, restingRange{f.Address, f.Address, since})
		}
	}
	return ranges
}

// roundUp returns the first multiple of grain that is not before t.
func roundUp(t time.Time, grain time.Duration) time.Time {
	down := t.Truncate(grain)
	if down.Before(t) {
		return down.Add(grain)
	}
	return down
}

// wakeRested asks for a plan when an address has rested, at a full second: of
// many that were freed one after the other, many are then ready at once.
func (w *work) wakeRested(t time.Time) {
	if !t.IsZero() {
		w.wake(roundUp(t, time.Second))
	}
}
