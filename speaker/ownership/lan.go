package ownership

import (
	"maps"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
)

// How soon an address that somebody answers for is asked about again: a member
// that gossip calls dead may die any moment, a stranger seldom leaves.
const (
	retryMember   = 250 * time.Millisecond
	retryStranger = 10 * time.Second
	retryFailed   = time.Second
	retryDoubt    = 2 * time.Second // a watch that lags may do so for hours
	// Who hears nobody asks on without a pause: the first answer says that it is
	// back, and until then it is silent itself.
	retryDeaf = 10 * time.Millisecond
	// A node that lives but says nothing about an address, neither yes nor no,
	// may be starved or behind a firewall. After this long its addresses move.
	patience = 2 * time.Second
)

// lan is what the LAN has said, and what it is being asked.
type lan struct {
	// deferred are addresses that are left alone, since somebody else answers for
	// them or nobody could tell.
	deferred map[netip.Addr]deferral
	// silent says since when nobody answers for an address whose owner lives.
	silent map[netip.Addr]time.Time
	// asking are the addresses that a question is about.
	asking map[netip.Addr]struct{}
	met    bool // other speakers have been alive
	deaf   int  // how many questions in a row brought no sign of life
	// sounding says that a node that has lost all others asks for a sign of life,
	// sounded that it knows whether it hears anybody.
	sounding, sounded bool
}

// cutOff is how many questions in a row that nobody answers at all make a node
// believe that it is cut off from its LAN. One may be lost, or be put by a process
// that got no processor to hear the answers.
const cutOff = 2

// deferral is why an address is left alone, and until when it is not asked about
// again.
type deferral struct {
	announce.Refusal
	until time.Time
	doubt bool // the question was a doubtful one
}

func newLAN() lan {
	return lan{deferred: map[netip.Addr]deferral{}, silent: map[netip.Addr]time.Time{}, asking: map[netip.Addr]struct{}{}}
}

func (l *lan) isAsking(a netip.Addr) bool {
	_, asking := l.asking[a]
	return asking
}

// isDue reports whether an address that is left alone is to be asked about again.
func (l *lan) isDue(t announce.Take, now time.Time) bool {
	d := l.deferred[t.Address]
	return !d.until.After(now) || d.doubt && !t.Doubtful
}

// put leaves an address alone, and reports whether it was left alone already.
func (l *lan) put(a netip.Addr, by announce.Refusal, until time.Time, doubt bool) (again bool) {
	_, again = l.deferred[a]
	l.deferred[a] = deferral{by, until, doubt}
	return again
}

// clear forgets what was said about an address.
func (l *lan) clear(a netip.Addr) {
	delete(l.deferred, a)
	delete(l.silent, a)
}

// forget forgets who was there: he is to be heard again.
func (l *lan) forget(addresses []netip.Addr) {
	for _, a := range addresses {
		delete(l.deferred, a)
	}
}

// prune forgets what nobody wants any more; what this node owns it forgets when
// the stranger has been silent for long enough.
func (l *lan) prune(wanted map[netip.Addr]struct{}, owned func(netip.Addr) bool, now time.Time) {
	maps.DeleteFunc(l.deferred, func(a netip.Addr, d deferral) bool {
		_, isWanted := wanted[a]
		return !isWanted && (!owned(a) || now.After(d.until))
	})
	maps.DeleteFunc(l.silent, func(a netip.Addr, _ time.Time) bool { _, deferred := l.deferred[a]; return !deferred })
}

// refusals are what is said about the addresses that are left alone.
func (l *lan) refusals() map[netip.Addr]announce.Refusal {
	out := make(map[netip.Addr]announce.Refusal, len(l.deferred))
	for a, d := range l.deferred {
		out[a] = d.Refusal
	}
	return out
}

// recognise finds out that a stranger is a member that had not been met.
func (l *lan) recognise(macs map[string]string, me string, now time.Time) {
	for a, d := range l.deferred {
		if node := macs[d.MAC]; d.Node == "" && node != "" && node != me {
			l.deferred[a] = deferral{Refusal: announce.Refusal{Node: node, MAC: d.MAC}, until: now.Add(retryMember)}
		}
	}
}

// timing is that of questions that decide whether somebody is gone.
func (l *lan) timing() Timing {
	if l.deaf >= cutOff {
		return lastingly()
	}
	return takeover()
}

// hear notes that a question was answered, and reports whether this node is cut off
// from its LAN, as far as it can know.
func (l *lan) hear(f *Finding) (cut bool) {
	for a := range f.Takes {
		delete(l.asking, a)
	}
	if len(f.Takes) == 0 {
		l.sounding = false
	}
	if len(f.Nodes) == 0 || f.Err != nil { // nobody was asked who should answer
		return false
	}
	if l.deaf++; !f.Deaf {
		l.deaf = 0
	}
	cut = l.deaf >= cutOff && len(f.Found) == 0
	l.sounded = l.sounded || !f.Deaf || cut
	return cut
}

// silentSince is when an address of a living node was first not answered for.
func (l *lan) silentSince(a netip.Addr, now time.Time) time.Time {
	if _, known := l.silent[a]; !known {
		l.silent[a] = now
	}
	return l.silent[a]
}

// wake is how long until an address that is left alone is to be looked at again.
// One that is being asked about waits for the answer.
func (l *lan) wake(now time.Time) time.Duration {
	next := never
	for a, d := range l.deferred {
		if !l.isAsking(a) {
			next = min(next, max(retryDeaf, d.until.Sub(now)))
		}
	}
	return next
}
