package ownership

import (
	"maps"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
)

// How soon the LAN is asked again about an address that another host answers for: a member
// that gossip calls dead may fall silent at any moment, a host outside the cluster seldom
// goes away.
const (
	retryMember  = 250 * time.Millisecond
	retryForeign = 10 * time.Second
	retryFailed  = time.Second
	retryDoubt   = 2 * time.Second // a watch may lag for hours
	// retryDeaf is for a node that gets no answers at all: it asks nearly without a
	// pause, since the first answer shows that it is back, and is silent until then.
	retryDeaf = 10 * time.Millisecond
	// patience is how long a live node may fail to answer for its address, and its
	// speaker fail to answer whether it runs: it may get no CPU time, or be behind a
	// firewall. After this long its addresses move.
	patience = 2 * time.Second
)

// lan is what is known from the LAN, and what it is being asked.
type lan struct {
	// deferred are addresses that this node does not take for now, since another host
	// answers for them or the LAN could not be asked.
	deferred map[netip.Addr]deferral
	// silent is since when no host has answered for an address whose owner is alive.
	silent map[netip.Addr]time.Time
	// asking are the addresses in questions that have no Finding yet.
	asking map[netip.Addr]struct{}
	met    bool // other speakers have been alive
	deaf   int  // how many Inquiries in a row had no answer from any host
	// probing: this node has lost all other members, and an Inquiry without Takes is
	// under way; probed: it knows from one whether it is cut off.
	probing, probed bool
}

// cutOff is how many Inquiries in a row without any answer mean that this node is cut off
// from its LAN. One may be lost, or the process may have had no CPU time to receive the
// answers.
const cutOff = 2

// deferral is why an address is not taken, and until when the LAN is not asked again.
type deferral struct {
	announce.Refusal
	until time.Time
	doubt bool // announce.Take.Doubtful of the question
}

func newLAN() lan {
	return lan{deferred: map[netip.Addr]deferral{}, silent: map[netip.Addr]time.Time{}, asking: map[netip.Addr]struct{}{}}
}

func (l *lan) isAsking(a netip.Addr) bool {
	_, asking := l.asking[a]
	return asking
}

// answeredByMember reports whether a member's node has answered for a deferred address.
func (l *lan) answeredByMember(a netip.Addr) bool {
	d := l.deferred[a]
	return d.Node != "" && d.MAC != ""
}

// isDue reports whether the LAN is to be asked again about a deferred address.
func (l *lan) isDue(t announce.Take, now time.Time) bool {
	d := l.deferred[t.Address]
	return !d.until.After(now) || d.doubt && !t.Doubtful
}

// postpone defers an address, and reports whether it was deferred already.
func (l *lan) postpone(a netip.Addr, by announce.Refusal, until time.Time, doubt bool) (again bool) {
	_, again = l.deferred[a]
	l.deferred[a] = deferral{by, until, doubt}
	return again
}

// clear forgets what is known about an address.
func (l *lan) clear(a netip.Addr) {
	delete(l.deferred, a)
	delete(l.silent, a)
}

// forget drops what is known about these addresses, so that they are asked about again.
func (l *lan) forget(addresses []netip.Addr) {
	for _, a := range addresses {
		delete(l.deferred, a)
	}
}

// prune drops the addresses that are not wanted any more; those that this node owns only
// once the other host has been silent for long enough.
func (l *lan) prune(wanted map[netip.Addr]struct{}, owned func(netip.Addr) bool, now time.Time) {
	maps.DeleteFunc(l.deferred, func(a netip.Addr, d deferral) bool {
		_, isWanted := wanted[a]
		return !isWanted && (!owned(a) || now.After(d.until))
	})
	maps.DeleteFunc(l.silent, func(a netip.Addr, _ time.Time) bool { _, deferred := l.deferred[a]; return !deferred })
}

// refusals are the reasons of the deferred addresses.
func (l *lan) refusals() map[netip.Addr]announce.Refusal {
	out := make(map[netip.Addr]announce.Refusal, len(l.deferred))
	for a, d := range l.deferred {
		out[a] = d.Refusal
	}
	return out
}

// recognise corrects deferrals by a host that has turned out to be a member.
func (l *lan) recognise(macs map[string]string, me string, now time.Time) {
	for a, d := range l.deferred {
		if node := macs[d.MAC]; d.Node == "" && node != "" && node != me {
			l.deferred[a] = deferral{Refusal: announce.Refusal{Node: node, MAC: d.MAC}, until: now.Add(retryMember)}
		}
	}
}

// timing is that of questions which decide whether an owner is gone.
func (l *lan) timing() Timing {
	if l.deaf >= cutOff {
		return continuous()
	}
	return takeover()
}

// record updates l from a Finding, and reports whether this node is cut off from its LAN.
func (l *lan) record(f *Finding) (cut bool) {
	for a := range f.Takes {
		delete(l.asking, a)
	}
	if len(f.Takes) == 0 {
		l.probing = false
	}
	if len(f.Nodes) == 0 || f.Err != nil { // the Inquiry had no hosts that should answer
		return false
	}
	if l.deaf++; !f.Deaf {
		l.deaf = 0
	}
	cut = l.deaf >= cutOff && len(f.Found) == 0
	l.probed = l.probed || !f.Deaf || cut
	return cut
}

// silentSince is since when no host has answered for an address of a live node.
func (l *lan) silentSince(a netip.Addr, now time.Time) time.Time {
	if _, known := l.silent[a]; !known {
		l.silent[a] = now
	}
	return l.silent[a]
}

// wake is how long until a deferred address is to be asked about again. One in a pending
// question waits for the Finding.
func (l *lan) wake(now time.Time) time.Duration {
	next := never
	for a, d := range l.deferred {
		if !l.isAsking(a) {
			next = min(next, max(retryDeaf, d.until.Sub(now)))
		}
	}
	return next
}
