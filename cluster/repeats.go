package cluster

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
)

const (
	// RemindEvery is how often it is looked which Problems are to be told again.
	RemindEvery = 30 * time.Second
	// An API server keeps an Event for an hour, if nobody has told it otherwise. What
	// lasts is told again before that, this much after the last time,
	repeatEvery = 45 * time.Minute
	// and the first time up to this much sooner: what begins at once is spread.
	repeatSpread = 30 * time.Minute
)

// Repeats remembers when Problems were told that last, for whoever looks for an Event
// about an object must find one as long as something is wrong with it.
type Repeats struct {
	// Most is how many are due at once. The others wait, the oldest first.
	Most int

	next map[snapshot.Problem]time.Time // when to tell each again
}

// Due returns those of the Problems that exist now which are to be told again. One that
// was not there at the last call counts as told now: when a Problem begins, it is told
// by others.
func (r *Repeats) Due(problems []snapshot.Problem, now time.Time) (due []snapshot.Problem) {
	next := make(map[snapshot.Problem]time.Time, len(problems))
	for _, p := range problems {
		at, known := r.next[p]
		if !known {
			at = now.Add(repeatEvery - sooner(p))
		}
		if next[p] = at; !now.Before(at) {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b snapshot.Problem) int { return cmp.Or(next[a].Compare(next[b]), a.Compare(b)) })
	due = slices.Compact(due)
	due = due[:min(len(due), r.Most)]
	for _, p := range due {
		next[p] = now.Add(repeatEvery)
	}
	r.next = next
	return due
}

// Remind calls tell every RemindEvery, until ctx ends.
func Remind(ctx context.Context, tell func(now time.Time)) error {
	tick := time.NewTicker(RemindEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			tell(now)
		}
	}
}

// sooner is by how much the first repeat of p comes before its time.
func sooner(p snapshot.Problem) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String())) // never fails
	const mixer = 0x9e3779b97f4a7c15   // texts that are alike differ in the last bits only
	return time.Duration(h.Sum64() * mixer >> 16 % uint64(repeatSpread))
}
