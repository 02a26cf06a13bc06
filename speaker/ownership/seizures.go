package ownership

import (
	"maps"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
)

// seizures are the addresses that this node took from another, and when. While watches
// lag, nodes take an address from each other, and who has lost it doubts its own watch: it
// leaves the address to an owner that answers, see announce.Take.Doubtful. When this node
// finds that it may not serve such an address any more, or that another is preferred by now,
// it tells the next owner by name, which then does not doubt. Of other addresses it need not
// say so: nobody has lost them.
type seizures map[netip.Addr]time.Time

// note records a take, and drops those that nobody can doubt any more. An owner that said
// that it leaves has not lost anything.
func (s seizures) note(t announce.Take, me string, now time.Time) {
	maps.DeleteFunc(s, func(_ netip.Addr, at time.Time) bool { return now.Sub(at) > announce.FlapReset })
	if t.From != "" && t.From != me && t.Cause != announce.Leaving {
		s[t.Address] = now
	}
}

// among returns what is told of the hand-overs of a plan; nil: nothing.
func (s seizures) among(handsOver map[netip.Addr]announce.Claim, now time.Time) (told map[netip.Addr]announce.Claim) {
	for a, to := range handsOver {
		if at, seized := s[a]; seized && now.Sub(at) <= announce.FlapReset {
			if told == nil {
				told = map[netip.Addr]announce.Claim{}
			}
			told[a] = to
		}
	}
	return told
}
