package ownership

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quayside.io/speaker/announce"
)

// maxWitnesses is how many other nodes are asked for a sign of life at most.
const maxWitnesses = 32

// takeover is the timing of the question whether a dead member's address is still answered
// for: five times within 50 ms.
func takeover() Timing { return Timing{Times: 5, Every: 10 * time.Millisecond} }

// firstClaim is the timing before the first announcement of an address: three questions
// within 600 ms, a short form of address conflict detection (RFC 5227).
func firstClaim() Timing { return Timing{Times: 3, Every: 200 * time.Millisecond} }

// repeatedClaim is that of the question after a member's node has answered, which may have
// a speaker of another kind on it: it is known to answer at once, so that four questions
// without an answer, within 200 ms, say as much as the first claim's three.
func repeatedClaim() Timing { return Timing{Times: 4, Every: 50 * time.Millisecond} }

// continuous is the timing of a node that is cut off: the windows of its Inquiries follow
// each other closely, so that it listens nearly all the time, with few questions.
func continuous() Timing { return Timing{Times: 3, Every: retryMember / 3} }

// act carries out the plan's takes: at once where the owner is alive and hands over,
// otherwise after asking the LAN. It reports whether an address was taken, which needs a
// new plan.
func (m *Machine) act() (granted bool) {
	if m.waiting() != "" || m.departure.stops.isSaid() {
		return false
	}
	// Four batches: a first claim asks ten times as long as a takeover may take, and a
	// node that takes from a deaf one must itself get answers on that LAN.
	died, first, again, deaf := map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}
	ask := func(t announce.Take) {
		switch {
		case m.lan.isAsking(t.Address):
		case t.Cause == announce.Deaf:
			deaf[t.Address] = t
		case t.Cause == announce.First && m.lan.answeredByMember(t.Address):
			again[t.Address] = t
		case t.Cause == announce.First:
			first[t.Address] = t
		default:
			died[t.Address] = t
		}
	}
	for _, t := range m.plan.L2.Take {
		if isPlanned(t) && !t.Doubtful {
			m.grant(t)
			granted = true
		} else {
			ask(t)
		}
	}
	wanted := map[netip.Addr]struct{}{}
	for _, t := range m.plan.L2.Barred {
		wanted[t.Address] = struct{}{}
		if m.lan.isDue(t, m.now) {
			ask(t)
		}
	}
	m.lan.prune(wanted, m.holdings.has, m.now)
	m.ask(died, m.lan.timing())
	m.ask(deaf, takeover())
	m.ask(first, firstClaim())
	m.ask(again, repeatedClaim())
	if len(died) == 0 {
		m.probeWitnesses()
	}
	return granted
}

// probeWitnesses asks other nodes for a sign of life once no other member answers this node
// and it has nothing to take: it may itself be cut off, and another node may have taken its
// addresses.
func (m *Machine) probeWitnesses() {
	isAlone := m.lan.met && len(m.memberView.alive) == 1
	if !isAlone || m.lan.probing || m.lan.probed || len(m.holdings.answered) == 0 {
		return
	}
	q := &Inquiry{Nodes: map[string]netip.Addr{}, Losers: map[string]netip.Addr{}, Timing: m.lan.timing()}
	if m.nameWitnesses(q); len(q.Nodes) > 0 {
		m.lan.probing = true
		m.out.Ask = append(m.out.Ask, q)
	}
}

// isPlanned reports whether the owner of an address is alive and hands it over, which needs
// no question.
func isPlanned(t announce.Take) bool {
	return t.Cause == announce.Leaving || t.Cause == announce.Ineligible || t.Cause == announce.Preferred
}

// ask adds an Inquiry, which a Finding answers. Beside the addresses it asks for hosts that
// should answer if the LAN works at all: a speaker that is itself cut off must take nothing,
// or it would return with newer claims than the nodes that kept working.
func (m *Machine) ask(takes map[netip.Addr]announce.Take, timing Timing) {
	if len(takes) == 0 {
		return
	}
	q := &Inquiry{Takes: takes, Nodes: map[string]netip.Addr{}, Losers: map[string]netip.Addr{}, Timing: timing}
	allFirst, near := true, []string{}
	for _, a := range sorted(takes) {
		isFirst := takes[a].Cause == announce.First
		if takes[a].Cause == announce.Deaf {
			near = append(near, takes[a].Interfaces...)
		}
		m.lan.asking[a] = struct{}{}
		q.Questions = append(q.Questions, Question{Address: a, Interfaces: takes[a].Interfaces, Held: !isFirst})
		allFirst = allFirst && isFirst
	}
	switch {
	case len(near) > 0:
		q.Nearby = m.nearby(func(i *announce.Interface) bool { return slices.Contains(near, i.Name) })
		m.nameLosers(q)
	case !allFirst && m.lan.met:
		m.nameWitnesses(q)
	}
	m.out.Ask = append(m.out.Ask, q)
}

// nameWitnesses fills Nodes and Losers, the nodes that are to lose an address always, others
// up to maxWitnesses.
func (m *Machine) nameWitnesses(q *Inquiry) {
	losers := map[string]struct{}{}
	for _, t := range q.Takes {
		losers[t.From] = struct{}{}
	}
	peers := m.nodes().peers
	for _, p := range peers {
		_, loses := losers[p.Name]
		if loses {
			q.Losers[p.Name] = p.Addr
		}
		if loses || len(q.Nodes) < maxWitnesses {
			q.Nodes[p.Name] = p.Addr
		}
	}
}

// apply takes the addresses for which no host answered, if they are still to be taken.
func (f *Finding) apply(m *Machine) {
	if m.lan.record(f) {
		// This node was cut off, so another may have taken its addresses: it asks before
		// it answers again, like one whose link was down.
		m.lan.forget(m.holdings.cutAll())
	}
	m.compile() // the world may have changed while the LAN was asked
	for _, t := range slices.Concat(m.plan.L2.Take, m.plan.L2.Barred) {
		if _, asked := f.Takes[t.Address]; asked {
			m.judge(t, f)
		}
	}
}

// judge decides by a Finding whether to take an address.
func (m *Machine) judge(t announce.Take, f *Finding) {
	found, taken := f.Found[t.Address]
	if t.Cause == announce.Deaf && m.memberView.macs[found.MAC] == t.From {
		// It is deaf and not dumb: what it repeats of its announcements shows no ear.
		taken = found.Answered
	}
	switch {
	case taken && m.memberView.macs[found.MAC] == m.opts.Node:
		m.grant(t) // the answer came from another interface of this node on the same LAN
	case taken:
		delete(m.lan.silent, t.Address)
		m.refuse(t, announce.Refusal{Node: m.memberView.macs[found.MAC], MAC: found.MAC}, "somebody answers for it")
	case t.Cause == announce.Deaf && m.hears(f, t.From) != "":
		m.refuse(t, announce.Refusal{Node: t.From, MAC: m.hears(f, t.From)}, "its node answers on the LAN, and its speaker may only be slow")
	case f.Err != nil:
		m.lan.postpone(t.Address, announce.Refusal{Node: cmp.Or(t.From, m.opts.Node)}, m.now.Add(retryFailed), false)
		m.change(Change{Kind: Unasked, Take: t, Err: f.Err})
	case f.Deaf:
		m.refuse(t, announce.Refusal{Node: t.From}, "this node hears nobody")
	case t.Cause != announce.Deaf && f.livesOn(t.From) && m.now.Sub(m.lan.silentSince(t.Address, m.now)) < patience:
		m.refuse(t, announce.Refusal{Node: t.From}, "its node lives and may only be slow")
	default:
		m.grant(t)
	}
}

// hears is the MAC with which a node has answered any question; "": it has not.
func (m *Machine) hears(f *Finding, node string) string {
	for _, found := range f.Found {
		if found.Answered && m.memberView.macs[found.MAC] == node {
			return found.MAC
		}
	}
	return ""
}

// refuse defers an address for a while.
func (m *Machine) refuse(t announce.Take, by announce.Refusal, why string) {
	pause := retryMember
	switch {
	case m.lan.deaf > 0 && by.MAC == "":
		pause = retryDeaf
	case by.Node == "":
		pause = retryForeign
	case (t.Doubtful || t.Cause == announce.Deaf) && by.MAC != "": // the owner answers
		pause = retryDoubt
	}
	if again := m.lan.postpone(t.Address, by, m.now.Add(pause), t.Doubtful); !again {
		m.change(Change{Kind: NotTaken, Take: t, By: by, Why: why})
	}
}

// grant takes an address.
func (m *Machine) grant(t announce.Take) {
	m.lan.clear(t.Address)
	m.holdings.take(t)
	m.seized.note(t, m.opts.Node, m.now)
	c := Change{Kind: Taken, Take: t}
	if seen, ok := m.world.Members.LastSeen[t.From]; ok && t.Cause == announce.Died {
		c.Outage = m.now.Sub(seen)
	}
	m.change(c)
	m.loadTold()
	m.toldServices[t.Address] = t.Services
	m.taken = append(m.taken, t)
}

func orEvery(interfaces []string) string {
	if len(interfaces) == 0 {
		return "every interface"
	}
	return strings.Join(interfaces, ", ")
}

// apply records that another host answers for an address of this node. The node keeps the
// address, since its clients have its MAC, and reports the conflict.
func (c Conflict) apply(m *Machine) {
	by := announce.Refusal{MAC: c.MAC}
	m.lan.postpone(c.Address, by, m.now.Add(6*retryForeign), false)
	m.change(Change{Kind: Contested, Take: announce.Take{Address: c.Address}, By: by, Interface: c.Interface})
}

// sorted are the keys of m in order, so that the result does not depend on the order of a
// map.
func sorted[V any](m map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(m), netip.Addr.Compare)
}
