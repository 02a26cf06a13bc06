package controller

import (
	"fmt"
	"maps"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

const (
	// settled is how long beyond its pause a write must stand for the next one not
	// to count as a repetition.
	settled = time.Second
	// freeRepeats is how often in a row an object is written again without a pause:
	// a plan of several steps, and people who change their mind, need that.
	freeRepeats = 3
	// reportAfter is how many repetitions in a row are reported: only a machine
	// undoes as many.
	reportAfter = 2 * freeRepeats
)

// reasonContested is the reason of the Problem that another client undoes our writes.
const reasonContested = "Contested"

// contests remembers which writes succeeded lately. One that has to be repeated
// at once, again and again, was undone by somebody who will go on as long as we
// do: another controller for load balancers, a webhook. So each repetition waits
// longer than the one before, and a newer version does not shorten that, for it
// is what the other made of it.
//
// It is about Services and Ingresses. The status of a pool is nobody else's, and
// changes as fast as Services come and go.
type contests map[snapshot.Ref]contest

type contest struct {
	undone int       // how many writes in a row did not stand
	until  time.Time // the next write waits for this,
	waits  bool      // if there is one
}

// due returns those of updates that may be written now, and forgets writes that
// stood.
func (c contests) due(updates []assign.Update, now time.Time) []assign.Update {
	maps.DeleteFunc(c, func(_ snapshot.Ref, past contest) bool { return !past.waits && !now.Before(past.until.Add(settled)) })
	if len(c) == 0 {
		return updates
	}
	for about, past := range c { // what waited may not be wanted any more
		past.waits = false
		c[about] = past
	}
	var ready []assign.Update
	for _, u := range updates {
		about := snapshot.RefOf(u.Was)
		if past := c[about]; now.Before(past.until) {
			past.waits = true
			c[about] = past
		} else {
			ready = append(ready, u)
		}
	}
	return ready
}

// note enters a write that succeeded.
func (c contests) note(o snapshot.Object, now time.Time) {
	about := snapshot.RefOf(o)
	if about.Kind == snapshot.IPAddressPool.String() {
		return
	}
	past, known := c[about]
	if known {
		past.undone++
	}
	c[about] = contest{undone: past.undone, until: now.Add(past.pause())}
}

// pause is how long the next write waits.
func (c contest) pause() time.Duration {
	if c.undone < freeRepeats {
		return 0
	}
	return min(firstPause<<min(c.undone-freeRepeats, 16), longPause)
}

// next is when the first write that waits is due, or a Problem may be over;
// zero: never.
func (c contests) next() (first time.Time) {
	for _, past := range c {
		switch {
		case past.waits:
			first = earlier(first, past.until)
		case past.undone >= reportAfter:
			first = earlier(first, past.until.Add(settled))
		}
	}
	return first
}

// problems reports the objects whose status does not stay as it is written.
func (c contests) problems() (all []snapshot.Problem) {
	for about, past := range c {
		if past.undone >= reportAfter {
			all = append(all, snapshot.Problem{Object: about, Reason: reasonContested, Message: fmt.Sprintf(
				"somebody undoes at once what Quayside writes to the status or its annotation of this %s: stop that other controller or webhook, "+
					"or give the %s a class that only one of them serves; until then it is written ever more rarely, every %v in the end",
				about.Kind, about.Kind, longPause)})
		}
	}
	return all
}
