package ownership

import (
	"net/netip"
	"time"

	"quayside.io/test/objects"
)

// Bounds of what a client may see.
const (
	// silentAtMost is how long an address may be without an answer while somebody
	// who is in reach of the client and able to answer has lived for that long: its
	// owner died (missed, asked about three times), or is starved (patience).
	silentAtMost = patience + 1500*time.Millisecond
	// bothAtMost is how long two may answer on one segment: until they have met
	// again, and one has heard of the other's claim. Those who hear of it by the API
	// server alone have what their watches lag, too.
	bothAtMost = 1500 * time.Millisecond
)

// watcher is a client on each segment that looks at every address after every
// event.
type watcher struct {
	*sim
	addresses []netip.Addr
	silent    map[spot]time.Time // since when nobody answers, though somebody could
	both      map[spot]time.Time // since when two do
	able      map[*simSpeaker]time.Time
	steps     int
	// longest is the longest that an address was silent, and answered twice, since
	// it was last reset.
	longest struct{ silent, both time.Duration }
}

// spot is one address on one segment.
type spot struct {
	address netip.Addr
	segment int
}

func newWatcher(s *sim) *watcher {
	w := &watcher{sim: s, silent: map[spot]time.Time{}, both: map[spot]time.Time{}, able: map[*simSpeaker]time.Time{}}
	for i := range objects.Services {
		w.addresses = append(w.addresses, netip.MustParseAddr(objects.VIP(i)))
	}
	w.addresses = append(w.addresses, netip.MustParseAddr(objects.VIP6))
	return w
}

// reset forgets the longest times so far.
func (w *watcher) reset() { w.longest.silent, w.longest.both = 0, 0 }

// disturb begins to count anew: a fault among those who were about to mend another
// takes its own time.
func (w *watcher) disturb() {
	clear(w.silent)
	clear(w.both)
}

// look keeps the invariants.
func (w *watcher) look() {
	w.noteAble()
	for segment := range 2 {
		able, agree := w.canAnswer(segment), bothAtMost+w.lagging(segment)
		for _, a := range w.addresses {
			at := spot{a, segment}
			macs := w.answering(a, segment)
			if w.strangers[a] != nil {
				delete(w.silent, at)
				delete(w.both, at)
				continue
			}
			w.longest.silent = max(w.longest.silent, w.lasts(w.silent, at, len(macs) == 0 && able, silentAtMost, "is not answered for"))
			w.longest.both = max(w.longest.both, w.lasts(w.both, at, len(macs) > 1 && w.canAgree(segment), agree, "is answered for by two"))
		}
	}
}

// lasts notes how long something holds, which may not be for longer than bound.
func (w *watcher) lasts(since map[spot]time.Time, at spot, holds bool, bound time.Duration, what string) time.Duration {
	from, held := since[at]
	switch {
	case !holds:
		delete(since, at)
		return 0
	case !held:
		since[at] = w.now
		return 0
	}
	if w.now.Sub(from) > bound {
		w.fatalf("%s on segment %d %s for %v", at.address, at.segment, what, w.now.Sub(from))
	}
	return w.now.Sub(from)
}

// noteAble notes since when each speaker could answer.
func (w *watcher) noteAble() {
	for _, n := range w.nodes {
		switch _, known := w.able[n.speaker]; {
		case !n.works() || !n.onLAN() || n.speaker.leaving:
			delete(w.able, n.speaker)
		case !known && n.speaker.gossip.settled:
			w.able[n.speaker] = w.now
		}
	}
}

// canAnswer reports whether somebody on a segment can: one that has met the others,
// and hears more than itself, or it would call itself deaf.
func (w *watcher) canAnswer(segment int) bool {
	hosts := 0
	if segment == 0 || w.farHost {
		hosts++ // the client
	}
	able := 0
	for _, n := range w.nodes {
		if n.segment != segment || !n.onLAN() {
			continue
		}
		hosts++
		if n.speaker != nil && !w.able[n.speaker].IsZero() {
			able++
		}
	}
	return able > 0 && hosts > 1
}

// canAgree reports whether all who speak on a segment hear of each other's claims,
// by gossip or by way of the API server.
func (w *watcher) canAgree(segment int) bool {
	return w.all(segment, gossips) || w.all(segment, (*simNode).hasAPI)
}

// lagging is the longest lag of a watch by which those on a segment have to agree.
func (w *watcher) lagging(segment int) (longest time.Duration) {
	if w.all(segment, gossips) {
		return 0
	}
	w.all(segment, func(n *simNode) bool {
		longest = max(longest, n.lag)
		return true
	})
	return longest
}

func gossips(n *simNode) bool { return !n.gossipCut }

// all reports whether something holds for all who speak on a segment.
func (w *watcher) all(segment int, holds func(*simNode) bool) bool {
	for _, n := range w.nodes {
		if n.works() && n.onLAN() && n.segment == segment && !holds(n) {
			return false
		}
	}
	return true
}
