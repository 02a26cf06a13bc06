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

// maxWitnesses bounds how many other nodes are asked for a sign of life.
const maxWitnesses = 32

// takeover is the timing that decides whether a silent member is really gone:
// five questions within 50 ms.
func takeover() Timing { return Timing{Times: 5, Every: 10 * time.Millisecond} }

// firstClaim is the timing before an address is announced that never was: three
// questions within 600 ms, RFC 5227 in spirit.
func firstClaim() Timing { return Timing{Times: 3, Every: 200 * time.Millisecond} }

// lastingly is the timing of a node that is cut off: one question follows the other,
// so that hardly a moment passes unheard, and not more often than it must.
func lastingly() Timing { return Timing{Times: 3, Every: retryMember / 3} }

// act carries out the plan's takes: at once where the owner is alive and lets
// go, after asking the LAN otherwise. It reports whether something was granted,
// which makes another plan.
func (m *Machine) act() (granted bool) {
	if m.waiting() != "" || m.departure.stops.isSaid() {
		return false
	}
	// Three batches: a first claim asks ten times as long as a takeover may take, and
	// who takes from one that nobody hears must hear others on that very LAN.
	died, first, deaf := map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}
	ask := func(t announce.Take) {
		switch {
		case m.lan.isAsking(t.Address):
		case t.Cause == announce.Deaf:
			deaf[t.Address] = t
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
	if len(died) == 0 {
		m.sound()
	}
	return granted
}

// sound asks for a sign of life once this node has lost all others and has nothing to
// ask for: are they gone, or is it cut off, and what it has another's by now?
func (m *Machine) sound() {
	isAlone := m.lan.met && len(m.world.Members.Alive) == 1
	if !isAlone || m.lan.sounding || m.lan.sounded || len(m.holdings.answered) == 0 {
		return
	}
	q := &Inquiry{Nodes: map[string]netip.Addr{}, Losers: map[string]netip.Addr{}, Timing: m.lan.timing()}
	if m.nameWitnesses(q); len(q.Nodes) > 0 {
		m.lan.sounding = true
		m.out.Ask = append(m.out.Ask, q)
	}
}

// isPlanned reports whether the owner of an address lives and lets go of it: that
// needs no question.
func isPlanned(t announce.Take) bool {
	return t.Cause == announce.Leaving || t.Cause == announce.Ineligible || t.Cause == announce.Preferred
}

// ask puts questions to the LAN; a Finding brings the answer. Beside the addresses
// it asks for hosts that should answer if the LAN works at all: a speaker that is
// itself cut off must take nothing: it would return with newer claims than those
// who kept working.
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

// nameWitnesses enters where other nodes can be asked for: those that lose an
// address first.
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

// happen grants what nobody answered for, if it is still to be taken.
func (f *Finding) happen(m *Machine) {
	if m.lan.hear(f) {
		// Whoever hears this node again must not hear it say what may have changed
		// meanwhile: it asks first, like one whose link was down.
		m.lan.forget(m.holdings.cutAll())
	}
	m.compile() // the world may have moved while the LAN was asked
	for _, t := range slices.Concat(m.plan.L2.Take, m.plan.L2.Barred) {
		if _, asked := f.Takes[t.Address]; asked {
			m.judge(t, f)
		}
	}
}

// judge decides whether an address is taken that the LAN was asked about.
func (m *Machine) judge(t announce.Take, f *Finding) {
	found, taken := f.Found[t.Address]
	switch {
	case taken && m.hearsay.macs[found.MAC] == m.opts.Node:
		m.grant(t) // an interface of ours hears another: both are on one LAN
	case taken:
		delete(m.lan.silent, t.Address)
		m.refuse(t, announce.Refusal{Node: m.hearsay.macs[found.MAC], MAC: found.MAC}, "somebody answers for it")
	case t.Cause == announce.Deaf && m.hears(f, t.From) != "":
		m.refuse(t, announce.Refusal{Node: t.From, MAC: m.hears(f, t.From)}, "its node answers on the LAN, and its speaker may only be slow")
	case f.Err != nil:
		m.lan.put(t.Address, announce.Refusal{Node: cmp.Or(t.From, m.opts.Node)}, m.now.Add(retryFailed), false)
		m.change(Change{Kind: Unasked, Take: t, Err: f.Err})
	case f.Deaf:
		m.refuse(t, announce.Refusal{Node: t.From}, "this node hears nobody")
	case t.Cause != announce.Deaf && f.livesOn(t.From) && m.now.Sub(m.lan.silentSince(t.Address, m.now)) < patience:
		m.refuse(t, announce.Refusal{Node: t.From}, "its node lives and may only be slow")
	default:
		m.grant(t)
	}
}

// hears is the MAC by which a node has answered anything that was asked; "" it has not.
func (m *Machine) hears(f *Finding, node string) string {
	for _, found := range f.Found {
		if m.hearsay.macs[found.MAC] == node {
			return found.MAC
		}
	}
	return ""
}

// refuse leaves an address alone for a while.
func (m *Machine) refuse(t announce.Take, by announce.Refusal, why string) {
	pause := retryMember
	switch {
	case m.lan.deaf > 0 && by.MAC == "":
		pause = retryDeaf
	case by.Node == "":
		pause = retryStranger
	case (t.Doubtful || t.Cause == announce.Deaf) && by.MAC != "": // the owner answers, and so knows why
		pause = retryDoubt
	}
	if again := m.lan.put(t.Address, by, m.now.Add(pause), t.Doubtful); !again {
		m.change(Change{Kind: NotTaken, Take: t, By: by, Why: why})
	}
}

// grant makes an address this node's.
func (m *Machine) grant(t announce.Take) {
	m.lan.clear(t.Address)
	m.holdings.take(t.Address, t.Epoch)
	c := Change{Kind: Taken, Take: t}
	if seen, ok := m.world.Members.LastSeen[t.From]; ok && t.Cause == announce.Died {
		c.Outage = m.now.Sub(seen)
	}
	m.change(c)
	text := m.announces(t.Address, t.Interfaces)
	switch {
	case t.Cause == announce.Returned:
		text += " again"
	case t.From != "":
		text += " (before: node " + t.From + ", " + string(t.Cause) + ")"
	}
	m.recall()
	m.heard[t.Address] = t.Services
	m.notify(t.Answer, "Announcing", text)
}

func orEvery(interfaces []string) string {
	if len(interfaces) == 0 {
		return "every interface"
	}
	return strings.Join(interfaces, ", ")
}

// happen hears of somebody who claims an address of ours. We keep it, since
// our clients know us, and say so.
func (c Conflict) happen(m *Machine) {
	by := announce.Refusal{MAC: c.MAC}
	m.lan.put(c.Address, by, m.now.Add(6*retryStranger), false)
	m.change(Change{Kind: Contested, Take: announce.Take{Address: c.Address}, By: by, Interface: c.Interface})
}

// sorted are the keys of m in order: what follows from it must not depend on
// chance.
func sorted[V any](m map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(m), netip.Addr.Compare)
}
