package cluster

import "sync"

// change is one piece of news for the ledger.
type change struct {
	apply   func(*ledger)
	urgent  bool          // do not wait for more
	entered chan struct{} // closed when the snapshot shows it; nil if nobody waits
}

// inbox collects changes for the loop. Posting never blocks.
type inbox struct {
	ready chan struct{} // something is inside
	hurry chan struct{} // something urgent is inside

	mu      sync.Mutex
	changes []change
	urgent  bool
}

func newInbox() *inbox {
	return &inbox{ready: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

func (in *inbox) post(c change) {
	in.mu.Lock()
	in.changes = append(in.changes, c)
	in.urgent = in.urgent || c.urgent
	in.mu.Unlock()
	wake(in.ready)
	if c.urgent {
		wake(in.hurry)
	}
}

func (in *inbox) isUrgent() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.urgent
}

// take empties the inbox. What was posted before is taken, so that a wake-up
// still pending for it would find nothing; it is harmless and may come.
func (in *inbox) take() []change {
	in.mu.Lock()
	defer in.mu.Unlock()
	changes := in.changes
	in.changes, in.urgent = nil, false
	return changes
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
