package ownership

import (
	"maps"
	"net/netip"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// never is how long nothing is to happen by itself.
const never = time.Hour

// Options of a Machine.
type Options struct {
	Node     string // the name of this one
	Announce announce.Options
	// HandOverOnCordon hands addresses over as soon as this node is cordoned.
	HandOverOnCordon bool
	// HandOver bounds how long a node that was asked to leave waits for successors,
	// beside the NoticePeriod.
	HandOver time.Duration
}

// Machine is what one node remembers. It is not safe for concurrent use.
type Machine struct {
	opts Options
	moment
	holdings  holdings
	lan       lan
	departure departure
	roster    roster
	hearsay   hearsay
	lacks     lacks
	told      map[snapshot.Problem]struct{} // what people have been told of
	heard     heard                         // nil until anything may be announced
}

// moment is what a step begins with and finds out. Nothing of it is remembered but
// the plan, and what stands in it.
type moment struct {
	now   time.Time
	world World
	self  announce.Facts
	plan  *announce.Plan
	made  announce.Made            // plan, and of which cluster it is right
	since map[netip.Addr]time.Time // that of the last plan of the whole cluster
	// others is BGP.Others of that plan.
	others map[netip.Addr]announce.Other
	out    *Output
}

// New returns the machine of a node that has just started.
func New(opts Options) *Machine {
	return &Machine{opts: opts, holdings: newHoldings(), lan: newLAN(), told: map[snapshot.Problem]struct{}{}}
}

// maxPlans bounds how often a step decides anew after what it granted at once.
const maxPlans = 3

// Step takes in what happened and decides what is to be done now.
func (m *Machine) Step(now time.Time, w World, events ...Event) *Output {
	m.now, m.world, m.out = now, w, &Output{}
	for _, e := range events {
		e.happen(m)
	}
	if m.departure.isOverdue(now) && m.plan != nil {
		m.out.Plan, m.out.End = m.plan, Overdue
		return m.out
	}
	for range maxPlans {
		m.compile()
		if !m.act() {
			break
		}
	}
	m.herald()
	m.declare()
	m.report()
	m.out.Wake = now.Add(m.wake())
	if m.self.Leaving && m.isHandedOver() {
		m.out.End = Done
	}
	return m.out
}

// compile makes the plan of this moment.
func (m *Machine) compile() {
	members := m.world.Members
	if len(members.Alive) > 1 {
		m.lan.met, m.lan.sounded = true, false
	}
	m.lacks.note(members, m.now)
	m.self = m.facts()
	m.holdings.remember(m.opts.Node, members.Claims)
	m.hear()
	before, view := m.plan, m.view()
	m.lan.recognise(m.hearsay.macs, m.opts.Node, m.now)
	view.Refused = m.lan.refusals()
	m.plan = announce.Compile(m.world.Cluster, m.opts.Node, view, m.now, m.opts.Announce)
	m.made = announce.Made{Plan: m.plan, Of: m.world.Cluster}
	m.out.Plans++
	if m.world.Synced {
		m.since, m.others = m.plan.L2.Since, m.plan.BGP.Others
	}
	m.yield(before)
	m.holdings.concede(m.opts.Node, &m.plan.L2)
	m.holdings.noteHandOver(m.plan.L2.Answers, m.now)
}

// Stands reports whether the last plan is right of c, too, and there is nothing else to
// learn from c. Then no step is needed.
func (m *Machine) Stands(c *snapshot.Cluster) bool { return m.made.Stands(c) }

// view is what a plan is made of, but for what the LAN has refused: that names the nodes
// whose MACs the speakers show.
func (m *Machine) view() announce.View {
	return announce.View{
		Alive: m.hearsay.alive, Claims: m.hearsay.claims, Facts: m.hearsay.facts,
		HandingOver: m.holdings.handing, Remembered: m.holdings.remembered, Cut: m.holdings.cut, Lost: m.holdings.losses,
		Since: m.since, Others: m.others, Unserved: m.world.Proxy.Unserved,
		Roll: m.nodes().Roll, Before: m.made,
	}
}

// yield drops the claims of this node that a better one silences, whether
// gossip has brought that or, when the API server was quicker, a SpeakerStatus:
// a hand-over is complete, or two sides of a split have met again.
func (m *Machine) yield(before *announce.Plan) {
	for _, a := range sorted(m.holdings.claims) {
		best := m.plan.L2.Claims[a]
		if !best.Beats(announce.Claim{Epoch: m.holdings.claims[a], Node: m.opts.Node}) {
			continue
		}
		m.holdings.lose(a, m.now)
		m.change(Change{Kind: Lost, Take: announce.Take{Address: a}, To: best})
		if before == nil {
			continue
		}
		if answer, ok := before.L2.Answers[a]; ok {
			m.notify(answer, "Moved", "node "+m.opts.Node+" stops announcing "+a.String()+": node "+best.Node+" does now")
		}
	}
}

// waiting says why nothing on the LAN may be claimed yet.
func (m *Machine) waiting() string {
	switch members := m.world.Members; {
	case m.world.Link.Mute != "":
		return m.world.Link.Mute
	case !m.world.Synced:
		return "waiting for the cluster's objects"
	case m.world.Link.Interfaces == nil:
		return "waiting for the interfaces of this machine"
	case members.Waiting != "":
		return members.Waiting
	case !members.Settled:
		return "waiting for the other speakers"
	}
	return ""
}

// declare says what layer 2 and the members are to do.
func (m *Machine) declare() {
	known := make(map[netip.Addr]struct{}, len(m.plan.L2.Owners))
	for a := range m.plan.L2.Owners {
		known[a] = struct{}{}
	}
	m.holdings.forget(known)
	want := make(map[netip.Addr]Announcement, len(m.plan.L2.Answers))
	if m.waiting() == "" {
		for a, answer := range m.plan.L2.Answers {
			if answer.HandOver == "" {
				// After a total restart the claim stands in a SpeakerStatus only.
				m.holdings.claims[a] = answer.Epoch
			}
			want[a] = Announcement{Interfaces: answer.Interfaces, Round: m.world.Members.Rounds[a]}
		}
	}
	up := map[string]bool{}
	for _, i := range m.self.Interfaces {
		up[i.Name] = i.Up
	}
	m.heard.forget(m.holdings.has)
	added, cut := m.holdings.answer(want, known, up)
	m.lan.forget(cut)
	m.out.LAN = Announcing{Addresses: want, Speakers: m.hearsay.speakers, Nearby: m.nearby(m.listensOn()), Added: added}
	if m.world.Synced { // half a list of nodes is no list of peers
		m.out.Members = &Declaration{Self: m.nodes().self, Peers: m.nodes().peers, Watch: m.plan.L2.Watch, Facts: m.self, Claims: maps.Clone(m.holdings.claims), Known: known}
	}
}

// isHandedOver reports whether nothing is left that somebody else could take.
func (m *Machine) isHandedOver() bool {
	if m.waiting() != "" {
		return true // nothing was ever announced
	}
	for _, answer := range m.plan.L2.Answers {
		if answer.HandOver != "" {
			return false
		}
	}
	return true
}

// wake is how long until something changes by itself.
func (m *Machine) wake() time.Duration {
	next := min(m.lacks.wake(m.now), m.departure.wake(m.now))
	if !m.departure.stops.isSaid() { // who ends asks nothing any more
		next = min(next, m.lan.wake(m.now))
	}
	if w := m.plan.Wake(m.now); w > 0 {
		next = min(next, w)
	}
	return next
}
