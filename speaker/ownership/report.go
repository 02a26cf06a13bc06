package ownership

import (
	"maps"
	"slices"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// maxNotAlive bounds what a SpeakerStatus says of others.
const maxNotAlive = 20

func (m *Machine) change(c Change) { m.out.Changes = append(m.out.Changes, c) }

// report says how things stand, with Events where a problem of this node began.
func (m *Machine) report() {
	// The controller's leader reports the problems that every speaker sees. This
	// node's own, and what it alone has heard on the LAN, are reported here, when
	// they begin.
	own := m.ownProblems()
	r := &m.out.Report
	r.Own = slices.Concat(own, m.plan.Heard())
	r.Problems = slices.Concat(m.plan.Problems, own)
	now := make(map[snapshot.Problem]struct{}, len(r.Own))
	for _, p := range r.Own {
		now[p] = struct{}{}
		if _, old := m.told[p]; !old {
			r.Events = append(r.Events, Notice{p.Object, "Warning", p.Reason, p.Message})
		}
	}
	m.told = now
	m.out.Plan, m.out.Waiting, m.out.Leaving = m.plan, m.silence(), m.departure.leaves()
	switch mute := m.world.Link.Mute; {
	case m.waiting() == "":
		r.Status = m.status()
	case mute != "" && m.world.Synced:
		// What the last process of this node announced is not announced any more.
		r.Status = &v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{
			Expected: m.expected(), NotAlive: []string{m.opts.Node + ": " + mute},
		}}
	}
}

// silence says why this node announces nothing at all. Routers are told what to send
// here whether layer 2 can work or not.
func (m *Machine) silence() string {
	if m.world.Synced && m.world.Link.Mute != "" && len(m.plan.BGP.Sessions) > 0 {
		return ""
	}
	return m.waiting()
}

// ownProblems are those that only this node can know.
func (m *Machine) ownProblems() []snapshot.Problem {
	node := snapshot.Ref{Kind: "Node", Key: snapshot.Key{Name: m.opts.Node}}
	members, link := m.world.Members, m.world.Link
	var out []snapshot.Problem
	tell := func(reason, message string) {
		out = append(out, snapshot.Problem{Object: node, Reason: reason, Message: message})
	}
	why := link.Mute
	if why == "" && m.now.Sub(m.lacks.waits) >= starting {
		why = members.Waiting
	}
	if why != "" {
		tell("SpeakerWaiting", "this node announces nothing on its LANs: "+why)
	}
	for _, text := range link.Hazards {
		tell("KernelAnswers", text)
	}
	for _, text := range link.Failures {
		tell("InterfaceFails", text)
	}
	for _, i := range link.Interfaces {
		if i.Up && i.Deaf {
			tell("InterfaceDeaf", "interface "+i.Name+" is up, and no speaker, gateway or neighbour on its LAN answers: what is announced there moves to nodes that are heard; look at the cable, the VLAN and the switch")
		}
	}
	if why := m.world.Proxy.Late; why != "" {
		tell("KubeProxyBehind", "this node takes no new address where another can, until its kube-proxy has written its rules: "+why)
	}
	if !members.Settled || !m.hearsay.witness {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(members.Missing)) {
		// A peer without a speaker of its own is no problem.
		if _, speaks := m.world.Cluster.SpeakerStatuses.Get(snapshot.Key{Name: name}); speaks && m.now.Sub(m.lacks.absent[name]) >= absence {
			tell("MemberMissing", "the speaker of node "+name+" is not among the members: "+members.Missing[name])
		}
	}
	return out
}

// status is what this node's SpeakerStatus is to say.
func (m *Machine) status() *v1alpha1.SpeakerStatusStatus {
	s := m.plan.Status
	s.Leaving = m.departure.leaves()
	s.Node = &v1alpha1.SpeakerNode{} // there is none, as where it has just been deleted
	if n, exists := m.world.Cluster.Nodes.Get(snapshot.Key{Name: m.opts.Node}); exists {
		s.Node = announce.Told(n)
	}
	if !m.hearsay.witness {
		s.Members = v1alpha1.SpeakerMembers{Alive: 1}
		return &s
	}
	s.Members = v1alpha1.SpeakerMembers{Alive: int32(len(m.world.Members.Alive)), Expected: m.expected()}
	for _, name := range slices.Sorted(maps.Keys(m.world.Members.Missing)) {
		if len(s.Members.NotAlive) == maxNotAlive {
			break
		}
		s.Members.NotAlive = append(s.Members.NotAlive, name+": "+m.world.Members.Missing[name])
	}
	return &s
}

// witnesses is how many speakers publish who is alive. Each of them is watched by
// all: if all did, one absent node of a thousand would make a million watch events.
const witnesses = 10

// isWitness reports whether this node is one of the first that live, in order of
// their names. On either side of a split some are, and all are in a small cluster.
func (m *Machine) isWitness() bool {
	before := 0
	for name := range m.world.Members.Alive {
		if name < m.opts.Node {
			before++
		}
	}
	return before < witnesses
}

// expected is how many speakers there should be.
func (m *Machine) expected() int32 { return int32(max(1, m.world.Cluster.Nodes.Len())) }
