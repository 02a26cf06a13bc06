package cluster

import (
	"slices"
	"sync"
	"time"

	"quayside.io/cluster/snapshot"
)

// ringSize is how many events Files keeps.
const ringSize = 256

// Event is something that happened, as told to the owner of an object.
type Event struct {
	About                 snapshot.Ref
	Type, Reason, Message string
	Last                  time.Time
	Count                 int
}

// eventRing keeps the latest events for display.
type eventRing struct {
	mu     sync.Mutex
	events []Event // oldest first
}

func (r *eventRing) add(about snapshot.Ref, eventType, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Event{About: about, Type: eventType, Reason: reason, Message: message, Last: time.Now(), Count: 1}
	same := func(o Event) bool {
		return o.About == about && o.Type == eventType && o.Reason == reason && o.Message == message
	}
	if i := slices.IndexFunc(r.events, same); i >= 0 {
		e.Count += r.events[i].Count
		r.events = slices.Delete(r.events, i, i+1)
	} else if len(r.events) == ringSize {
		r.events = slices.Delete(r.events, 0, 1)
	}
	r.events = append(r.events, e)
}

func (r *eventRing) list() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
