package speaker

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
)

// mind is what the loop remembers between turns. Everything else is recomputed.
type mind struct {
	*Speaker
	pub *publisher

	cluster *snapshot.Cluster
	members *members.View
	macs    map[string]string // of all speakers, this one's included: whose they are
	plan    *announce.Plan
	self    announce.Facts
	stops   farewell // this speaker is to end
	drained farewell // its node is to go
	met     bool     // other speakers have been alive
	deaf    bool     // the last question to the LAN brought no sign of life

	// mine are the claims of this node, which members may not have taken in yet.
	mine map[netip.Addr]int64
	// remembered are claims of this node on addresses that had no Service.
	remembered map[netip.Addr]struct{}
	// since is that of the last plan of the whole cluster.
	since map[netip.Addr]time.Time
	// losses are the addresses that better claims took from this node.
	losses map[netip.Addr]announce.Loss
	// handing says since when an address is answered only for a successor.
	handing map[netip.Addr]time.Time
	// refused are addresses that somebody else answers for.
	refused map[netip.Addr]refusal
	// silent says since when nobody answers for an address whose owner lives.
	silent map[netip.Addr]time.Time
	// answered are the addresses that were answered for at the last turn, with
	// their interfaces; cut are those of this node that lost all of them.
	answered map[netip.Addr][]string
	cut      map[netip.Addr]struct{}
	// asking are the addresses that a question to the LAN is about.
	asking  map[netip.Addr]struct{}
	answers chan verdict
	told    map[snapshot.Problem]struct{}
	absent  map[string]time.Time // since when members are missing
	waits   time.Time            // since when the members do not work; zero: they do
	retry   *time.Timer
}

// loop owns the mind. It returns when the addresses are handed over, or when a
// hand fails; then one of running has been received already.
func (s *Speaker) loop(ctx, hands context.Context, p *publisher, failed <-chan error, running *int) error {
	m := &mind{
		Speaker: s, pub: p, mine: map[netip.Addr]int64{}, remembered: map[netip.Addr]struct{}{}, handing: map[netip.Addr]time.Time{}, losses: map[netip.Addr]announce.Loss{},
		refused: map[netip.Addr]refusal{}, silent: map[netip.Addr]time.Time{}, asking: map[netip.Addr]struct{}{}, cut: map[netip.Addr]struct{}{},
		answers: make(chan verdict, 16), told: map[snapshot.Problem]struct{}{}, retry: time.NewTimer(time.Hour),
	}
	defer m.awaitQuestions()
	sub := s.opts.Source.Watch(Kinds()...)
	defer sub.Stop()
	leave := ctx.Done()
	synced := s.opts.Source.Synced()
	var gone <-chan time.Time // the bound of a polite end
	calm := time.NewTimer(0)  // holds back what only the cluster's churn causes
	held := true
	for {
		// One of these happened: the cluster changed, or is complete; members or
		// interfaces changed; the LAN answered; a stranger showed up; the rules are
		// written; time passed; we are to go; a hand broke.
		select {
		case <-sub.C():
			// A compilation of a large cluster takes a while; churn may not take
			// more than half of our time. Whatever else happens does not wait.
			if !held {
				held = true
				calm.Reset(m.metrics.lastCompile())
			}
			continue
		case <-calm.C:
			held = false
		case <-synced:
			synced = nil
		case <-s.membersWatch():
		case <-s.l2.Watch():
		case <-s.rules.Watch():
		case c := <-s.l2.Conflicts():
			m.stranger(c)
		case v := <-m.answers:
			m.hear(v)
		case <-m.retry.C:
		case <-leave:
			leave = nil
			m.stops.say(time.Now(), m.needsNotice())
			gone = time.After(notice + s.opts.HandOver)
		case <-gone:
			s.opts.Log.Warn("addresses were not taken over in time", "addresses", len(m.plan.L2.Answers))
			return nil
		case err := <-failed:
			*running--
			return err
		}
		m.turn(hands)
		if m.self.Leaving && m.handedOver() {
			return m.linger(hands)
		}
	}
}

// turn compiles and acts, once more for what it granted at once.
func (m *mind) turn(hands context.Context) {
	for range 3 {
		m.compile()
		if !m.act(hands) {
			break
		}
	}
	m.declare()
	m.tell()
}

// compile makes the plan of this moment.
func (m *mind) compile() {
	began := time.Now()
	m.cluster = m.opts.Source.Snapshot()
	m.members = m.membersView()
	m.met = m.met || len(m.members.Alive) > 1
	m.noteLacks(began)
	m.self = m.facts(began)
	m.remember()
	before, view := m.plan, m.view()
	m.macs = announce.MACs(m.cluster, view)
	m.recognise()
	view.Refused = m.refusals()
	m.plan = announce.Compile(m.cluster, m.opts.NodeName, view, began, announce.Options{IgnoreExcludeLabel: m.opts.IgnoreExcludeLB, ExternalIPs: m.opts.ExternalIPs})
	if m.synced() {
		m.since = m.plan.L2.Since
	}
	m.yield(before)
	for a, answer := range m.plan.L2.Answers {
		if _, known := m.handing[a]; answer.HandOver != "" && !known {
			m.handing[a] = began
		} else if answer.HandOver == "" {
			delete(m.handing, a)
		}
	}
	maps.DeleteFunc(m.handing, func(a netip.Addr, _ time.Time) bool { return !m.claims(a) })
	m.metrics.compiled(time.Since(began))
	wait := time.Hour
	if w := m.plan.Wake(time.Now()); w > 0 {
		wait = w
	}
	m.retry.Reset(min(wait, m.nextRetry(), m.nextLack(began), m.stops.wake(began), m.drained.wake(began)))
}

// remember notes claims of this node that it does not carry out: gossip keeps
// them for a while after the last Service of an address has gone.
func (m *mind) remember() {
	for a, c := range m.members.Claims {
		if _, carried := m.mine[a]; c.Node == m.opts.NodeName && !carried {
			m.remembered[a] = struct{}{}
		}
	}
	maps.DeleteFunc(m.remembered, func(a netip.Addr, _ struct{}) bool {
		return m.members.Claims[a].Node != m.opts.NodeName
	})
}

// yield drops the claims of this node that a better one silences, whether
// gossip has brought that or, when the API server was quicker, a SpeakerStatus.
func (m *mind) yield(before *announce.Plan) {
	for a, epoch := range m.mine {
		if best := m.plan.L2.Claims[a]; best.Beats(announce.Claim{Epoch: epoch, Node: m.opts.NodeName}) {
			delete(m.mine, a)
			m.losses[a] = m.losses[a].Again(time.Now())
			m.lost(a, best, before)
		}
	}
}

// claims reports whether this node's claim on a is the best known.
func (m *mind) claims(a netip.Addr) bool {
	_, ok := m.mine[a]
	return ok
}

// view adds to what the members know what this node knows of itself, but for what
// the LAN has refused: that names the nodes whose MACs the view shows.
func (m *mind) view() announce.View {
	v := announce.View{
		Alive:       maps.Clone(m.members.Alive),
		Claims:      maps.Clone(m.members.Claims),
		Facts:       maps.Clone(m.members.Facts),
		HandingOver: m.handing,
		Remembered:  m.remembered,
		Cut:         m.cut,
		Lost:        m.losses,
		Since:       m.since,
	}
	if v.Claims == nil {
		v.Claims = map[netip.Addr]announce.Claim{}
	}
	if v.Facts == nil {
		v.Facts = map[string]announce.Facts{}
	}
	v.Alive[m.opts.NodeName] = struct{}{}
	v.Facts[m.opts.NodeName] = m.self
	for a, epoch := range m.mine {
		c := announce.Claim{Epoch: epoch, Node: m.opts.NodeName}
		if best, ok := v.Claims[a]; !ok || !best.Beats(c) {
			v.Claims[a] = c
		}
	}
	return v
}

// refusals are what the LAN has said about addresses.
func (m *mind) refusals() map[netip.Addr]announce.Refusal {
	out := make(map[netip.Addr]announce.Refusal, len(m.refused))
	for a, r := range m.refused {
		out[a] = r.Refusal
	}
	return out
}

// waiting says why nothing may be claimed yet.
func (m *mind) waiting() string {
	if m.mute != "" {
		return m.mute
	}
	if !m.synced() {
		return "waiting for the cluster's objects"
	}
	select {
	case <-m.l2.Ready():
	default:
		return "waiting for the interfaces of this machine"
	}
	if m.members.Waiting != "" {
		return m.members.Waiting
	}
	if !m.members.Settled {
		return "waiting for the other speakers"
	}
	return ""
}

func (m *mind) synced() bool {
	select {
	case <-m.opts.Source.Synced():
		return true
	default:
		return false
	}
}

// answersWithin bounds how long a claim waits until this node answers.
const answersWithin = 250 * time.Millisecond

// declare sets in the hands what is wanted.
func (m *mind) declare() {
	known := make(map[netip.Addr]struct{}, len(m.plan.L2.Owners))
	for a := range m.plan.L2.Owners {
		known[a] = struct{}{}
	}
	want := &l2.Want{Addresses: make(map[netip.Addr]l2.Announcement, len(m.plan.L2.Answers)), Members: m.speakers()}
	// The claim on an address that is gone is remembered by the members for a
	// while, should it come back.
	maps.DeleteFunc(m.mine, func(a netip.Addr, _ int64) bool { _, exists := known[a]; return !exists })
	maps.DeleteFunc(m.losses, func(a netip.Addr, _ announce.Loss) bool { _, exists := known[a]; return !exists })
	if m.waiting() == "" {
		for a, answer := range m.plan.L2.Answers {
			if answer.HandOver == "" {
				// After a total restart the claim stands in a SpeakerStatus only.
				m.mine[a] = answer.Epoch
			}
			want.Addresses[a] = l2.Announcement{Interfaces: answer.Interfaces, Round: m.members.Rounds[a]}
		}
	}
	added := false
	for a := range want.Addresses {
		_, answered := m.answered[a]
		added = added || !answered
	}
	m.noteCut(want, known)
	m.l2.Set(want)
	if added {
		// Whoever hands an address over stops answering when it hears of the claim.
		m.l2.Await(want, answersWithin)
	}
	m.metrics.announced(want.Addresses, m.plan.L2.Answers)
	if m.Speaker.members != nil && m.synced() { // half a list of nodes is no list of peers
		self, peers := m.peers()
		m.Speaker.members.Set(&members.Want{Self: self, Peers: peers, Facts: m.self, Claims: maps.Clone(m.mine), Known: known})
	}
}

// noteCut notes addresses that are not answered for any more since every link
// that carried them is down. When one comes up again, others may have taken
// them: to announce them at once would cut the connections that they have.
func (m *mind) noteCut(want *l2.Want, known map[netip.Addr]struct{}) {
	up := map[string]bool{}
	for _, i := range m.self.Interfaces {
		up[i.Name] = i.Up
	}
	for a, interfaces := range m.answered {
		if _, still := want.Addresses[a]; !still && len(interfaces) > 0 && !slices.ContainsFunc(interfaces, func(name string) bool { return up[name] }) {
			m.cut[a] = struct{}{}
			delete(m.refused, a) // who was there is to be heard again
		}
	}
	maps.DeleteFunc(m.cut, func(a netip.Addr, _ struct{}) bool { _, exists := known[a]; return !exists || !m.claims(a) })
	m.answered = make(map[netip.Addr][]string, len(want.Addresses))
	for a, announcement := range want.Addresses {
		m.answered[a] = announcement.Interfaces
	}
}

// speakers are the MACs of all speakers, this one's included: two interfaces on
// one LAN hear each other.
func (m *mind) speakers() map[string]struct{} {
	out := map[string]struct{}{}
	for mac := range m.macs {
		out[mac] = struct{}{}
	}
	return out
}

// peers are the nodes by their first InternalIP.
func (m *mind) peers() (self netip.Addr, peers []members.Peer) {
	for _, n := range m.cluster.Nodes.Sorted() {
		for _, a := range n.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || a.Type != "InternalIP" {
				continue
			}
			if n.Name == m.opts.NodeName {
				self = ip
			} else {
				peers = append(peers, members.Peer{Name: n.Name, Addr: ip})
			}
			break
		}
	}
	return self, peers
}

// handedOver reports whether nothing is left that somebody else could take.
func (m *mind) handedOver() bool {
	if m.waiting() != "" {
		return true // nothing was ever announced
	}
	return !slices.ContainsFunc(slices.Collect(maps.Values(m.plan.L2.Answers)), func(a announce.Answer) bool { return a.HandOver != "" })
}

// linger lets what was said last reach the others, and the API server, which
// may be gone too.
func (m *mind) linger(ctx context.Context) error {
	began := time.Now()
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		if spent := time.Since(began); spent > time.Second || spent > 200*time.Millisecond && m.pub.flushed() {
			break
		}
	}
	return nil
}
