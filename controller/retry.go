package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
	// earnest is the pause from which on a refusal is more than a moment's.
	earnest = 8 * firstPause
)

// reasonRefused is the reason of the Problem that the server refuses a write.
const reasonRefused = "WriteRefused"

// retries remembers which writes failed, so that each is tried again with
// growing pauses of its own: an object that the server refuses costs little,
// however often others change. A newer version of the object is tried at once.
type retries map[snapshot.Ref]retry

type retry struct {
	version string // that was refused
	pause   time.Duration
	at      time.Time // when to try it again
	says    string    // what the server says, if it says no
}

// due returns those of updates that may be tried now, and forgets the failures
// of what is not wanted any more.
func (r retries) due(updates []assign.Update, now time.Time) []assign.Update {
	if len(r) == 0 {
		return updates
	}
	wanted := make(map[snapshot.Ref]bool, len(updates))
	var ready []assign.Update
	for _, u := range updates {
		about := snapshot.RefOf(u.Was)
		wanted[about] = true
		if f, failed := r[about]; !failed || f.version != u.Was.GetResourceVersion() || !now.Before(f.at) {
			ready = append(ready, u)
		}
	}
	maps.DeleteFunc(r, func(about snapshot.Ref, _ retry) bool { return !wanted[about] })
	return ready
}

// note enters the outcome of one try.
func (r retries) note(o snapshot.Object, err error, now time.Time) {
	about := snapshot.RefOf(o)
	if err == nil {
		delete(r, about)
		return
	}
	pause := min(max(2*r[about].pause, firstPause), longPause)
	failed := retry{version: o.GetResourceVersion(), pause: pause, at: now.Add(pause)}
	if errors.Is(err, cluster.ErrRefused) {
		failed.says = err.Error()
	}
	r[about] = failed
}

// problems tells which writes the server goes on to refuse: nobody sees in an
// object what could not be written into it.
func (r retries) problems() (all []snapshot.Problem) {
	for about, failed := range r {
		if failed.says != "" && failed.pause >= earnest {
			all = append(all, snapshot.Problem{Object: about, Reason: reasonRefused, Message: fmt.Sprintf(
				"%s; it is tried again, every %v in the end", failed.says, longPause)})
		}
	}
	return all
}

// next is when the earliest retry is due; zero: there is none.
func (r retries) next() time.Time {
	if len(r) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(slices.Collect(maps.Values(r)), func(a, b retry) int { return a.at.Compare(b.at) }).at
}
