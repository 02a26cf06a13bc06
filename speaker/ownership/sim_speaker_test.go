package ownership

import (
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// A node of a simulated fleet: the loop around its machine, its watch, and what a
// test does to it.

// start boots the speaker of a node.
func (n *simNode) start() {
	n.note("%s starts", n.name)
	m := New(Options{Node: n.name, HandOver: 3 * time.Second})
	n.speaker = &simSpeaker{machine: m, answers: map[netip.Addr]Announcement{}}
	n.speaker.gossip = newSimGossip(n)
	n.speaker.wake.Value = func() { n.happen() }
	sp := n.speaker
	sp.writing.Value = func() { n.write(sp) }
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
	n.agenda.Set(&sp.wake, n.now.Add(max(0, out.Wake.Sub(n.now))))
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
	eth0 := announce.Interface{Name: "eth0", MAC: n.mac, Up: n.carrier, Deaf: n.deaf && n.carrier, Prefixes: []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/16", i)), netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:1::%x/64", i))}}
	return World{
		Cluster: n.cluster, Synced: true, Members: n.speaker.gossip.view(),
		Link: Link{Interfaces: []announce.Interface{eth0}}, Proxy: KubeProxy{Behind: n.behind},
	}
}

// publish has the SpeakerStatus written as package speaker does: with a pause after the last
// write, and what is announced once it has stood for a while.
func (n *simNode) publish(s *v1alpha1.SpeakerStatusStatus) {
	sp := n.speaker
	if !reflect.DeepEqual(s, sp.status) {
		sp.status, sp.stands = s, n.now
	}
	if s == nil || reflect.DeepEqual(s, n.shown) {
		sp.differs = time.Time{}
		n.agenda.Remove(&sp.writing)
		return
	}
	if sp.differs.IsZero() {
		sp.differs = n.now
	}
	wait := sp.written.Add(writePause).Sub(n.now)
	if n.shown != nil && !s.Leaving && s.Leaving == n.shown.Leaving && reflect.DeepEqual(s.Interfaces, n.shown.Interfaces) {
		wait = max(wait, min(sp.stands.Add(settles).Sub(n.now), sp.differs.Add(settlesBy).Sub(n.now)))
	}
	n.agenda.Set(&sp.writing, n.now.Add(max(0, wait)))
}

// write writes the SpeakerStatus.
func (n *simNode) write(sp *simSpeaker) {
	if n.speaker != sp || !n.hasAPI() {
		return
	}
	sp.written, sp.differs = n.now, time.Time{}
	n.shown = sp.status
	object := &v1alpha1.SpeakerStatus{Status: *sp.status.DeepCopy()}
	object.Name = n.name
	n.put(object)
}

// hasAPI reports whether n reaches the API server, which is near the client.
func (n *simNode) hasAPI() bool { return n.onNet() && n.segment == 0 && !n.apiDown }

// put changes the cluster; every node's watch shows it when it does, and no older state of
// an object after a newer one.
func (s *sim) put(changed ...snapshot.Object) {
	s.truth = s.truth.With(changed...)
	s.puts++
	number := s.puts
	for _, n := range s.nodes {
		s.in(s.about(watchDelay)+n.lag, func() {
			if n.hasAPI() {
				for _, o := range changed {
					if about := snapshot.RefOf(o); number > max(n.listed, n.seen[about]) {
						n.seen[about] = number
						n.cluster = n.cluster.With(o)
					}
				}
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
			n.cluster, n.listed = n.truth, n.puts
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
