package ownership

import (
	"maps"
	"net/netip"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// never stands for "no timer": a step at least this often is harmless.
const never = time.Hour

// Options of a Machine.
type Options struct {
	Node     string // name of this node
	Announce announce.Options
	// HandOverOnCordon hands addresses over as soon as this node is cordoned.
	HandOverOnCordon bool
	// HandOver is how long a node that was asked to leave waits for its successors at most,
	// after the noticePeriod.
	HandOver time.Duration
}

// Machine is the state of one node. It is not safe for concurrent use.
type Machine struct {
	opts Options
	moment
	holdings     holdings
	lan          lan
	departure    departure
	roster       roster
	memberView   memberView
	absences     absences
	toldServices toldServices    // nil until anything may be announced
	taken        []announce.Take // by this step, and not told yet
	seized       seizures
}

// moment is the input and result of one step. The next step uses only plan, made, since,
// orphaned and others of it.
type moment struct {
	now   time.Time
	world World
	self  announce.Facts
	plan  *announce.Plan
	made  announce.Made            // plan, and a cluster for which it is valid
	since map[netip.Addr]time.Time // L2.Since of the last plan of a complete cluster
	// orphaned is L2.Orphaned of that plan.
	orphaned map[netip.Addr]time.Time
	// others is BGP.Others of that plan.
	others map[netip.Addr]announce.Other
	out    *Output
}

// New returns the machine of a node that has just started.
func New(opts Options) *Machine {
	return &Machine{opts: opts, holdings: newHoldings(), lan: newLAN(), seized: seizures{}}
}

// maxPlans is how often one step compiles at most: taking an address without a question
// needs a new plan.
const maxPlans = 3

// Step applies events and returns what is to be done now.
func (m *Machine) Step(now time.Time, w World, events ...Event) *Output {
	m.now, m.world, m.out = now, w, &Output{}
	for _, e := range events {
		e.apply(m)
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
	m.prolong()
	m.tellTaken()
	m.announceEvents()
	m.declare()
	m.report()
	m.out.Wake = now.Add(m.wake())
	if m.self.Leaving && m.isHandedOver() {
		m.out.End = Done
	}
	return m.out
}

// compile makes a new plan, and another if by that a claim of this node must be raised.
func (m *Machine) compile() {
	if m.makePlan() {
		m.makePlan()
	}
}

func (m *Machine) makePlan() (raised bool) {
	members := m.world.Members
	m.absences.note(members, m.now)
	m.self = m.facts()
	m.holdings.remember(m.opts.Node, members.Claims)
	if m.refreshView(); len(m.memberView.alive) > 1 {
		m.lan.met, m.lan.probed = true, false
	}
	before, view := m.plan, m.view()
	m.lan.recognise(m.memberView.macs, m.opts.Node, m.now)
	view.Refused = m.lan.refusals()
	m.plan = announce.Compile(m.world.Cluster, m.opts.Node, view, m.now, m.opts.Announce)
	m.made = announce.Made{Plan: m.plan, Of: m.world.Cluster}
	m.out.Plans++
	if m.world.Synced {
		m.since, m.orphaned, m.others = m.plan.L2.Since, m.plan.L2.Orphaned, m.plan.BGP.Others
	}
	raised = m.yield(before)
	m.holdings.concede(m.opts.Node, &m.plan.L2)
	m.holdings.noteAnswers(m.plan.L2.Answers, m.now)
	return raised
}

// StillValid reports whether the last plan is valid for c, too, and c has nothing else that
// a step would act on. Then no step is needed. While the speaker stops, any change may end
// what it waits for, see announce.Answer.Awaits.
func (m *Machine) StillValid(c *snapshot.Cluster) bool {
	return !m.departure.stops.isSaid() && m.made.StillValid(c)
}

// view is the View for a plan, without Refused, which needs the MACs of the speakers.
func (m *Machine) view() announce.View {
	return announce.View{
		Alive: m.memberView.alive, Claims: m.memberView.claims, Facts: m.memberView.facts,
		HandingOver: m.holdings.handing, Remembered: m.holdings.remembered, Placed: m.holdings.placed, Cut: m.holdings.cut, Lost: m.holdings.losses,
		Since: m.since, Orphaned: m.orphaned, Others: m.others, Unserved: m.world.Proxy.Unserved,
		NodeIndex: m.nodes().NodeIndex, Before: m.made,
	}
}

// yield drops claims of this node that a better one beats, which gossip or a SpeakerStatus
// has brought: a hand-over is complete, or a split has healed. It reports whether it has
// raised one instead, to that of a member which is gone.
func (m *Machine) yield(before *announce.Plan) (raised bool) {
	for _, a := range sorted(m.holdings.claims) {
		best := m.plan.L2.Claims[a]
		if !best.Beats(announce.Claim{Epoch: m.holdings.claims[a], Node: m.opts.Node}) {
			continue
		}
		if _, alive := m.world.Members.Alive[best.Node]; !alive && m.holdings.outlives(a, m.now) && best.Epoch < announce.MaxCount(m.now) {
			m.holdings.claims[a] = best.Epoch + 1
			raised = true
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
	return raised
}

// waiting is why nothing on the LAN may be claimed yet; "": it may.
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

// declare sets what layer 2 and the members are to do.
func (m *Machine) declare() {
	known := make(map[netip.Addr]struct{}, m.plan.L2.Owners.Len())
	for a := range m.plan.L2.Owners.All() {
		known[a] = struct{}{}
	}
	m.holdings.forget(known)
	want := make(map[netip.Addr]Announcement, len(m.plan.L2.Answers))
	if m.waiting() == "" {
		for a, answer := range m.plan.L2.Answers {
			if answer.HandOver == "" {
				// After a restart of all speakers only a SpeakerStatus has the claim.
				m.holdings.resume(a, answer.Epoch, m.now)
			}
			want[a] = Announcement{Interfaces: answer.Interfaces, Round: m.world.Members.Rounds[a]}
		}
	}
	up := map[string]bool{}
	for _, i := range m.self.Interfaces {
		up[i.Name] = i.Up
	}
	m.toldServices.forget(m.holdings.has)
	added, cut := m.holdings.answer(want, known, up)
	m.lan.forget(cut)
	m.out.LAN = Announcing{Addresses: want, Speakers: m.memberView.speakers, Nearby: m.nearby(m.listensOn()), Added: added}
	if m.world.Synced { // an incomplete list of nodes would remove peers
		facts := m.self
		facts.HandsOver = m.seized.among(m.plan.L2.HandsOver, m.now)
		m.out.Members = &Declaration{Self: m.nodes().self, Peers: m.nodes().peers, Watch: m.plan.L2.Watch, Facts: facts, Claims: maps.Clone(m.holdings.claims), Known: known}
	}
}

// isHandedOver reports whether no address is left that another node could take, or is about
// to.
func (m *Machine) isHandedOver() bool {
	if m.waiting() != "" {
		return true // nothing was ever announced
	}
	for _, answer := range m.plan.L2.Answers {
		if answer.HandOver != "" || answer.Awaits {
			return false
		}
	}
	return true
}

// wake is how long until a step is needed without an event.
func (m *Machine) wake() time.Duration {
	next := min(m.absences.wake(m.now), m.departure.wake(m.now))
	if !m.departure.stops.isSaid() { // a speaker that stops asks no more
		next = min(next, m.lan.wake(m.now))
	}
	if w := m.plan.Wake(m.now); w > 0 {
		next = min(next, w)
	}
	return next
}
