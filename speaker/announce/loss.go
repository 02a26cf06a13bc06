package announce

import (
	"net/netip"
	"slices"
	"time"
)

// Loss counts how often better claims took an address from this node although its own plan
// kept it; see L2.Concedes.
type Loss struct {
	Times int
	last  time.Time
}

const (
	// flapLimit losses in a row make a node doubt its own watch. One loss may come from
	// an endpoint that moves away and back; each further one lets the address flap for as
	// long as it takes to write a SpeakerStatus.
	flapLimit = 2
	// flapWindow is the longest time between two losses in a row. A node whose watch lags
	// takes an address back as soon as the API server shows the claim that took it, which
	// takes a second or two where the API server is slow.
	flapWindow = 30 * time.Second
	// FlapReset is how long after the last loss flapping ends. Until then the node that
	// answers keeps the address, even if a preferred node could have it.
	FlapReset = 10 * time.Minute
)

// isFlapping reports whether the address was lost so often that the LAN is to be asked
// before it is taken again.
func (l Loss) isFlapping(now time.Time) bool {
	return l.Times >= flapLimit && now.Sub(l.last) < FlapReset
}

// Again returns l after one more loss.
func (l Loss) Again(now time.Time) Loss {
	if now.Sub(l.last) > flapWindow {
		l.Times = 0
	}
	return Loss{l.Times + 1, now}
}

// Concedes reports whether a plan of node me leaves a to another node. Then earlier losses
// of it were no flapping: this node sees what the others see, if a little later. So an
// operator who edits preferences several times need not wait for FlapReset. A plan that leaves
// a to a claim that is not published yet, though others are preferred to its node, concedes
// nothing: a is taken back as soon as it is known under which preferences that was made.
func (l *L2) Concedes(a netip.Addr, me string) bool {
	owner := l.Owners.Of(a)
	return owner != "" && owner != me && !l.Owners.isUntold(a) && !slices.ContainsFunc(l.Barred, func(t Take) bool { return t.Address == a })
}
