package ownership

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// A simulated fleet: machines that are real, on a LAN, with a gossip and in a time
// that are made up. It is deterministic: the same seed gives the same history.

// tester is a test, or one history of rapid.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Delays of the simulated world, those of profile fast. Each is drawn from half to
// the whole of its bound.
const (
	gossipDelay = 30 * time.Millisecond  // of a message from speaker to speaker
	noticeDelay = 300 * time.Millisecond // until a member that is out of reach is missed
	joinDelay   = 500 * time.Millisecond // until one that is back is met
	watchDelay  = 50 * time.Millisecond  // of a write by way of the API server
	writePause  = 500 * time.Millisecond // between two statuses of one speaker
	reaping     = 60 * time.Millisecond  // a killed process listens until its kernel has closed all
)

// sim is the world of a fleet.
type sim struct {
	t         tester
	now       time.Time
	chance    *rand.Rand
	agenda    agenda
	count     int
	nodes     []*simNode
	strangers map[netip.Addr]*simStranger
	truth     *snapshot.Cluster // what the API server has
	apiDown   bool
	farHost   bool // a host on segment 1 answers, as the client on segment 0 does
	watch     *watcher
	log       []string
}

// simNode is one machine of the LAN, and the speaker on it.
type simNode struct {
	*sim
	name, mac string
	index     int
	segment   int  // of the LAN; 0 is where the client is
	carrier   bool // its cable is plugged in
	silenced  bool // it drops every packet
	gossipCut bool // it drops those of gossip

	speaker *simSpeaker // nil: it does not run
	closing time.Time   // until when the kernel closes what a killed one had open
	paused  bool        // the speaker gets no processor
	cluster *snapshot.Cluster
	lag     time.Duration                 // of its watch, beside the usual
	behind  bool                          // its kube-proxy
	stale   bool                          // its watch has missed something
	shown   *v1alpha1.SpeakerStatusStatus // what was written last
}

// simSpeaker is a speaker from its start to its end.
type simSpeaker struct {
	machine *Machine
	answers map[netip.Addr]Announcement
	gossip  *simGossip
	wake    *event
	inbox   []Event
	poked   bool
	written time.Time
	status  *v1alpha1.SpeakerStatusStatus
	writing bool
	leaving bool // it was asked to
}

// simStranger is a host that is none of ours.
type simStranger struct {
	mac     string
	segment int
}

// event is something that will happen.
type event struct {
	at     time.Time
	number int
	what   func()
}

// cancel makes nothing of it.
func (e *event) cancel() {
	if e != nil {
		e.what = func() {}
	}
}

// agenda is a heap of events.
type agenda []*event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(a[i].at.Compare(a[j].at), cmp.Compare(a[i].number, a[j].number)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(e any) { *a = append(*a, e.(*event)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newSim(t tester, nodes int, seed uint64) *sim {
	s := &sim{t: t, now: began(), chance: rand.New(rand.NewPCG(seed, 0)), strangers: map[netip.Addr]*simStranger{}}
	cluster := snapshot.Of(append(objects(nodes), endpoints("n1", "n2"))...)
	for i := range nodes {
		s.nodes = append(s.nodes, &simNode{sim: s, name: fmt.Sprintf("n%d", i+1), index: i, mac: fmt.Sprintf("02:00:00:00:00:%02x", i+1), carrier: true, cluster: cluster})
	}
	s.truth = cluster
	s.watch = newWatcher(s)
	return s
}

// in puts something on the agenda.
func (s *sim) in(d time.Duration, what func()) *event {
	s.count++
	e := &event{s.now.Add(max(0, d)), s.count, what}
	heap.Push(&s.agenda, e)
	return e
}

// about is between half of a delay and the whole.
func (s *sim) about(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.chance.Int64N(int64(d/2)+1))
}

// run lets time pass.
func (s *sim) run(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); ; {
		if len(s.agenda) == 0 || s.agenda[0].at.After(end) {
			s.now = end
			s.watch.look()
			return
		}
		e := heap.Pop(&s.agenda).(*event)
		s.now = e.at
		e.what()
		s.watch.look()
	}
}

// until lets time pass until something holds, and says how long it took.
func (s *sim) until(what string, bound time.Duration, holds func() bool) time.Duration {
	s.t.Helper()
	from := s.now
	for !holds() {
		if s.now.Sub(from) > bound {
			s.fatalf("not within %v: %s", bound, what)
		}
		s.run(5 * time.Millisecond)
	}
	return s.now.Sub(from)
}

func (s *sim) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%9.3f ", s.now.Sub(began()).Seconds())+fmt.Sprintf(format, args...))
}

func (s *sim) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%9.3f %s\n%s", s.now.Sub(began()).Seconds(), fmt.Sprintf(format, args...), strings.Join(s.log[max(0, len(s.log)-150):], "\n"))
}

// The LAN.

// onLAN reports whether the kernel of a node hears and is heard.
func (n *simNode) onLAN() bool { return n.carrier && !n.silenced }

// works reports whether its speaker gets to answer what the LAN asks.
func (n *simNode) works() bool { return n.speaker != nil && !n.paused }

// hears reports whether n hears what other says.
func (n *simNode) hears(other *simNode) bool {
	return n == other || n.onLAN() && other.onLAN() && n.segment == other.segment
}

// answering are those on a segment that answer for an address.
func (s *sim) answering(a netip.Addr, segment int) (macs []string) {
	for _, n := range s.nodes {
		if n.works() && n.onLAN() && n.segment == segment {
			if _, answers := n.speaker.answers[a]; answers {
				macs = append(macs, n.mac)
			}
		}
	}
	if x := s.strangers[a]; x != nil && x.segment == segment {
		macs = append(macs, x.mac)
	}
	return macs
}

// who is the node that a client near the LAN reaches at an address, "" nobody, or
// the MAC of a stranger.
func (s *sim) who(a string) string { return s.whoOn(a, 0) }

func (s *sim) whoOn(a string, segment int) string {
	macs := s.answering(netip.MustParseAddr(a), segment)
	if len(macs) == 0 {
		return ""
	}
	for _, n := range s.nodes {
		if n.mac == macs[0] {
			return n.name
		}
	}
	return macs[0]
}

func (s *sim) node(name string) *simNode {
	i := slices.IndexFunc(s.nodes, func(n *simNode) bool { return n.name == name })
	if i < 0 {
		s.fatalf("no node is called %q", name)
	}
	return s.nodes[i]
}

func (s *sim) at(a netip.Addr) *simNode {
	for _, n := range s.nodes {
		if netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", n.index+1)) == a {
			return n
		}
	}
	return nil
}

// asking is an Inquiry under way.
type asking struct {
	*simNode
	*Inquiry
	by            *simSpeaker
	found         map[netip.Addr]Found
	before, after bool // signs of life before the last question, and since
}

// ask puts an Inquiry to the LAN.
func (n *simNode) ask(q *Inquiry) {
	a := &asking{simNode: n, Inquiry: q, by: n.speaker, found: map[netip.Addr]Found{}}
	for i := range q.Timing.Times {
		n.in(time.Duration(i)*q.Timing.Every, func() { a.put(i == q.Timing.Times-1) })
	}
	n.in(q.Timing.Window(), a.end)
}

// put asks once.
func (a *asking) put(last bool) {
	if !a.onLAN() {
		return
	}
	answered := a.segment == 0 || a.farHost
	for _, q := range a.Questions {
		for _, mac := range a.answering(q.Address, a.segment) {
			if _, known := a.found[q.Address]; !known && mac != a.mac {
				a.found[q.Address] = Found{"eth0", mac}
			}
			answered = answered || mac != a.mac
		}
	}
	for _, at := range a.Nodes {
		if host := a.at(at); host != nil && host != a.simNode && a.hears(host) {
			a.found[at] = Found{"eth0", host.mac}
			answered = true
		}
	}
	if last {
		a.after = answered
	} else {
		a.before = a.before || answered
	}
}

// liveness is what the kernel of another node says of its speaker.
func (n *simNode) liveness(other *simNode) Liveness {
	switch {
	case other == nil || !n.hears(other) || n.gossipCut || other.gossipCut:
		return Silent
	case other.speaker != nil || n.now.Before(other.closing):
		return Listening
	}
	return Closed
}

func (a *asking) end() {
	f := &Finding{Inquiry: a.Inquiry, Found: a.found, Liveness: map[string]Liveness{}, Deaf: len(a.Nodes) > 0 && !(a.before && a.after)}
	for name := range a.Losers {
		f.Liveness[name] = a.liveness(a.node(name))
	}
	a.tell(f)
	a.watchTheDying(f, 10)
}

func (a *asking) tell(f *Finding) {
	if a.speaker == a.by {
		a.happen(f)
	}
}

func (a *asking) watchTheDying(f *Finding, looks int) {
	if looks == 0 || !f.Slow() {
		return
	}
	a.in(25*time.Millisecond, func() {
		later, died := *f, false
		later.Liveness = map[string]Liveness{}
		for name, l := range f.Liveness {
			if l == Listening {
				l = a.liveness(a.node(name))
				died = died || l == Closed
			}
			later.Liveness[name] = l
		}
		if died {
			a.tell(&later)
		} else {
			a.watchTheDying(&later, looks-1)
		}
	})
}

// The speaker.

// start boots the speaker of a node.
func (n *simNode) start() {
	n.note("%s starts", n.name)
	m := New(Options{Node: n.name, HandOver: 3 * time.Second})
	n.speaker = &simSpeaker{machine: m, answers: map[netip.Addr]Announcement{}}
	n.speaker.gossip = newSimGossip(n)
	n.happen()
}

// happen lets the speaker take a step for what happened.
func (n *simNode) happen(events ...Event) {
	sp := n.speaker
	if sp == nil {
		return
	}
	sp.inbox = append(sp.inbox, events...)
	if !sp.poked {
		sp.poked = true
		n.in(0, func() { n.step(sp) })
	}
}

// step takes one, unless the speaker has ended or rests.
func (n *simNode) step(sp *simSpeaker) {
	if n.speaker != sp || n.paused {
		return
	}
	events := sp.inbox
	sp.inbox, sp.poked = nil, false
	out := sp.machine.Step(n.now, n.world(), events...)
	for _, c := range out.Changes {
		n.note("%s: %s", n.name, describe(c))
	}
	n.watch.steps++
	if out.End == Overdue {
		n.end()
		return
	}
	for _, q := range out.Ask {
		n.ask(q)
	}
	sp.answers = out.LAN.Addresses
	if out.Members != nil {
		sp.gossip.declare(out.Members)
	}
	n.publish(out.Report.Status)
	if out.End == Done {
		n.in(200*time.Millisecond, func() {
			if n.speaker == sp {
				n.end()
			}
		})
		sp.poked = true // it lingers, and takes no step any more
		return
	}
	sp.wake.cancel()
	sp.wake = n.in(out.Wake.Sub(n.now), func() { n.happen() })
}

func describe(c Change) string {
	switch c.Kind {
	case Taken:
		return fmt.Sprintf("takes %s from %q (%s, epoch %d)", c.Address, c.From, c.Cause, c.Epoch)
	case Lost:
		return fmt.Sprintf("gives %s up to %s", c.Address, c.To.Node)
	case NotTaken:
		return fmt.Sprintf("does not take %s from %q: %s (%s %s)", c.Address, c.From, c.Why, c.By.Node, c.By.MAC)
	case Contested:
		return fmt.Sprintf("hears %s on %s", c.By.MAC, c.Address)
	}
	return fmt.Sprintf("%+v", c)
}

// world is what a node sees.
func (n *simNode) world() World {
	i := n.index + 1
	eth0 := announce.Interface{Name: "eth0", MAC: n.mac, Up: n.carrier, Prefixes: []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/16", i)), netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:1::%x/64", i))}}
	return World{
		Cluster: n.cluster, Synced: true, Members: n.speaker.gossip.view(),
		Link: Link{Interfaces: []announce.Interface{eth0}}, Proxy: KubeProxy{Behind: n.behind},
	}
}

// publish writes the SpeakerStatus, with a pause after the last write.
func (n *simNode) publish(s *v1alpha1.SpeakerStatusStatus) {
	sp := n.speaker
	if sp.status = s; s == nil || sp.writing || reflect.DeepEqual(s, n.shown) {
		return
	}
	sp.writing = true
	n.in(sp.written.Add(writePause).Sub(n.now), func() {
		sp.writing, sp.written = false, n.now
		if n.speaker == sp && sp.status != nil && n.hasAPI() {
			n.shown = sp.status
			object := &v1alpha1.SpeakerStatus{Status: *sp.status.DeepCopy()}
			object.Name = n.name
			n.put(object)
		}
	})
}

// hasAPI reports whether n reaches the API server, which is near the client.
func (n *simNode) hasAPI() bool { return n.onLAN() && n.segment == 0 && !n.apiDown }

// put changes the cluster; every node's watch shows it when it does.
func (s *sim) put(objects ...snapshot.Object) {
	s.truth = s.truth.With(objects...)
	for _, n := range s.nodes {
		s.in(s.about(watchDelay)+n.lag, func() {
			if n.hasAPI() {
				n.cluster = n.cluster.With(objects...)
				n.happen()
			} else {
				n.stale = true
			}
		})
	}
}

// catchUp lists what a watch has missed.
func (n *simNode) catchUp() {
	if n.stale && n.hasAPI() {
		n.stale = false
		n.in(n.about(watchDelay)+n.lag, func() {
			n.cluster = n.truth
			n.happen()
			if n.speaker != nil {
				n.publish(n.speaker.status)
			}
		})
	}
}

// end is that of the speaker's process, and of its sockets at once.
func (n *simNode) end() {
	n.note("the speaker of %s ends", n.name)
	n.speaker.gossip.leave()
	n.speaker = nil
}

// kill is SIGKILL.
func (n *simNode) kill() {
	n.note("the speaker of %s is killed", n.name)
	n.speaker = nil
	n.closing = n.now.Add(reaping)
	n.changed()
}

// terminate is SIGTERM.
func (n *simNode) terminate() {
	if n.speaker != nil {
		n.speaker.leaving = true
	}
	n.happen(Leave{})
}

// pause is SIGSTOP, resume SIGCONT.
func (n *simNode) pause() {
	n.paused = true
	n.changed()
}

func (n *simNode) resume() {
	n.paused = false
	n.changed()
	if sp := n.speaker; sp != nil {
		sp.poked = false
		n.happen()
	}
}

// cable does something to how n is connected.
func (n *simNode) cable(what string, do func()) {
	n.note("%s: %s", n.name, what)
	do()
	n.changed()
	n.stale = true
	n.catchUp()
	n.happen() // it may have seen its link change
}

// changed tells gossip that who reaches whom may be another.
func (s *sim) changed() {
	for _, n := range s.nodes {
		if n.speaker != nil {
			n.speaker.gossip.feel()
		}
	}
}

// use lets a strange host have an address, or nobody.
func (s *sim) use(a string, mac string) {
	address := netip.MustParseAddr(a)
	if delete(s.strangers, address); mac == "" {
		return
	}
	s.strangers[address] = &simStranger{mac: mac}
	for _, n := range s.nodes {
		if n.works() && n.onLAN() && n.segment == 0 {
			if _, answers := n.speaker.answers[address]; answers {
				n.happen(Conflict{Address: address, Interface: "eth0", MAC: mac})
			}
		}
	}
}

func endpoints(nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "local-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "local"}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, n := range nodes {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{NodeName: &n, Addresses: []string{"10.1.0.1"}})
	}
	return s
}
