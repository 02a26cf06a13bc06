package ownership

import (
	"maps"
	"slices"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// maxNotAlive is how many missing members a SpeakerStatus lists.
const maxNotAlive = 20

func (m *Machine) change(c Change) { m.out.Changes = append(m.out.Changes, c) }

// report fills Output.Report. The controller's leader writes Events about the problems
// that every speaker sees; about those in Own only this node can.
func (m *Machine) report() {
	own := m.ownProblems()
	r := &m.out.Report
	r.Own = slices.Concat(own, m.plan.LocalProblems())
	r.Problems = slices.Concat(m.plan.Problems, own)
	m.out.Plan, m.out.Waiting, m.out.Leaving = m.plan, m.whySilent(), m.departure.leaves()
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

// whySilent is why this node announces nothing at all; "": it does. Where layer 2 cannot
// work, routes are still announced.
func (m *Machine) whySilent() string {
	if m.world.Synced && m.world.Link.Mute != "" && len(m.plan.BGP.Sessions) > 0 {
		return ""
	}
	return m.waiting()
}

// ownProblems are the problems that only this node can know.
func (m *Machine) ownProblems() []snapshot.Problem {
	node := snapshot.Ref{Kind: "Node", Key: snapshot.Key{Name: m.opts.Node}}
	members, link := m.world.Members, m.world.Link
	var out []snapshot.Problem
	tell := func(reason, message string) {
		out = append(out, snapshot.Problem{Object: node, Reason: reason, Message: message})
	}
	why := link.Mute
	if why == "" && m.now.Sub(m.absences.waits) >= startGrace {
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
	for _, u := range link.Unheard {
		tell(announce.ReasonUnheard, "node "+u.Node+" announces "+u.Address+", and this node, on the same LAN by "+u.Interface+", does not hear it answer, though its own address does: "+
			"something in the network drops it; "+announce.AllowAddresses)
	}
	if why := m.world.Proxy.Late; why != "" {
		tell("KubeProxyBehind", "this node takes no new address where another can, until its kube-proxy has written its rules: "+why)
	}
	if !members.Settled || !m.memberView.reporter {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(members.Missing)) {
		// A node without a speaker is no problem.
		if _, speaks := m.world.Cluster.SpeakerStatuses.Get(snapshot.Key{Name: name}); speaks && m.now.Sub(m.absences.absent[name]) >= absenceGrace {
			tell("MemberMissing", "the speaker of node "+name+" is not among the members: "+members.Missing[name])
		}
	}
	return out
}

// status is the wanted status of this node's SpeakerStatus.
func (m *Machine) status() *v1alpha1.SpeakerStatusStatus {
	s := m.plan.Status
	s.Leaving, s.Unheard = m.departure.leaves(), m.world.Link.Unheard
	s.Node = &v1alpha1.SpeakerNode{} // without UID: the Node does not exist
	if n, exists := m.world.Cluster.Nodes.Get(snapshot.Key{Name: m.opts.Node}); exists {
		s.Node = announce.NodeSummary(n)
	}
	if !m.memberView.reporter {
		s.Members = v1alpha1.SpeakerMembers{Alive: 1}
		return &s
	}
	s.Members = v1alpha1.SpeakerMembers{Alive: int32(m.numLiving()), Expected: m.expected()}
	for _, name := range slices.Sorted(maps.Keys(m.world.Members.Missing)) {
		if len(s.Members.NotAlive) == maxNotAlive {
			break
		}
		s.Members.NotAlive = append(s.Members.NotAlive, name+": "+m.world.Members.Missing[name])
	}
	return &s
}

// reporters is how many speakers publish which members are alive. All speakers watch their
// SpeakerStatuses: if all published it, one missing node of a thousand would cause a million
// watch events. In a fleet of no more than smallFleet all do.
const (
	reporters  = 3
	smallFleet = 10
)

// isReporter reports whether this node is one of the first live ones by name. In every part
// of a split cluster some nodes are.
func (m *Machine) isReporter() bool {
	members, before := m.world.Members, 0
	for name := range members.Alive {
		if _, missing := members.Missing[name]; name < m.opts.Node && !missing {
			before++
		}
	}
	return before < reporters || m.numLiving() <= smallFleet
}

// numLiving is how many members are alive and not missing.
func (m *Machine) numLiving() int {
	members := m.world.Members
	n := len(members.Alive)
	for name := range members.Missing {
		if _, doubted := members.Alive[name]; doubted {
			n--
		}
	}
	return n
}

// expected is how many speakers there should be.
func (m *Machine) expected() int32 { return int32(max(1, m.world.Cluster.Nodes.Len())) }
