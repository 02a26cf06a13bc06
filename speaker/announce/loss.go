package announce

import (
	"net/netip"
	"slices"
	"time"
)

// Loss counts how often better claims took an address from this node against what it
// saw; see L2.Concedes.
type Loss struct {
	Times int
	last  time.Time
}

const (
	// quarrel is how many losses in a row make a node doubt what it sees. One may be
	// an endpoint that has moved on, and then comes back; each more lets an address go
	// round for as long as a SpeakerStatus waits to be written.
	quarrel = 2
	// inARow is how soon one must follow the other. Who lags takes an address back
	// as soon as the API server shows the claim that took it, which takes a second
	// or two where that is slow.
	inARow = 30 * time.Second
	// calm ends a quarrel. Until then whoever answers keeps the address, also where
	// it would let a node have it that is preferred.
	calm = 10 * time.Minute
)

// isQuarrel reports whether who lost so often had better ask.
func (l Loss) isQuarrel(now time.Time) bool { return l.Times >= quarrel && now.Sub(l.last) < calm }

// Again is l after one more loss.
func (l Loss) Again(now time.Time) Loss {
	if now.Sub(l.last) > inARow {
		l.Times = 0
	}
	return Loss{l.Times + 1, now}
}

// Concedes reports whether a plan of node me leaves a to another node. Then whatever has
// been lost of it is no quarrel: this node sees what the others do, if a little later,
// and nobody who edits preferences again and again has to wait until one has calmed.
func (l *L2) Concedes(a netip.Addr, me string) bool {
	owner := l.Owners[a]
	return owner != "" && owner != me && !slices.ContainsFunc(l.Barred, func(t Take) bool { return t.Address == a })
}
