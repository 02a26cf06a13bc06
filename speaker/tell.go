package speaker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// maxNotAlive bounds what a SpeakerStatus says of others.
const maxNotAlive = 20

// What passes by itself is not told: starting takes a moment, and a member that
// is restarted or updated is back in a minute, while all the others miss it.
const (
	starting = 5 * time.Second
	absence  = time.Minute
)

// tell publishes the outcome of a turn: State, the SpeakerStatus, and Events where
// a problem of this node began.
func (m *mind) tell() {
	// The controller's leader reports the problems that every speaker sees. This
	// node's own, and what it alone has heard on the LAN, are reported here, when
	// they begin.
	own := m.ownProblems(time.Now())
	mine := slices.Concat(own, m.plan.Heard())
	now := make(map[snapshot.Problem]struct{}, len(mine))
	for _, p := range mine {
		now[p] = struct{}{}
		if _, old := m.told[p]; !old {
			m.opts.Writer.Event(p.Object, "Warning", p.Reason, p.Message)
		}
	}
	m.told = now
	m.metrics.problems.Store(&mine)
	problems := slices.Concat(m.plan.Problems, own)
	m.problems.Store(&problems)
	m.state.Store(m.describe(problems))
	switch {
	case m.waiting() == "":
		m.pub.set(m.status())
	case m.mute != "" && m.synced():
		// What the last process of this node announced is not announced any more.
		m.pub.set(v1alpha1.SpeakerStatusStatus{Members: v1alpha1.SpeakerMembers{
			Expected: m.expected(), NotAlive: []string{m.opts.NodeName + ": " + m.mute},
		}})
	}
}

// ownProblems are those that only this node can know.
func (m *mind) ownProblems(now time.Time) []snapshot.Problem {
	node := snapshot.Ref{Kind: "Node", Key: snapshot.Key{Name: m.opts.NodeName}}
	var out []snapshot.Problem
	why := m.mute
	if why == "" && now.Sub(m.waits) >= starting {
		why = m.members.Waiting
	}
	if why != "" {
		out = append(out, snapshot.Problem{Object: node, Reason: "SpeakerWaiting", Message: "this node announces nothing: " + why})
	}
	for _, text := range m.l2.Hazards() {
		out = append(out, snapshot.Problem{Object: node, Reason: "KernelAnswers", Message: text})
	}
	for _, text := range m.l2.Failures() {
		out = append(out, snapshot.Problem{Object: node, Reason: "InterfaceFails", Message: text})
	}
	if why := m.rules.Late(); why != "" {
		out = append(out, snapshot.Problem{Object: node, Reason: "KubeProxyBehind",
			Message: "this node takes no new address where another can, until its kube-proxy has written its rules: " + why})
	}
	if !m.members.Settled {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(m.members.Missing)) {
		// A peer without a speaker of its own is no problem.
		if _, speaks := m.cluster.SpeakerStatuses.Get(snapshot.Key{Name: name}); speaks && now.Sub(m.absent[name]) >= absence {
			out = append(out, snapshot.Problem{Object: node, Reason: "MemberMissing",
				Message: fmt.Sprintf("the speaker of node %s is not among the members: %s", name, m.members.Missing[name])})
		}
	}
	return out
}

// noteLacks notes since when members are missing, or none of them works.
func (m *mind) noteLacks(now time.Time) {
	switch {
	case m.members.Waiting == "":
		m.waits = time.Time{}
	case m.waits.IsZero():
		m.waits = now
	}
	absent := make(map[string]time.Time, len(m.members.Missing))
	for name := range m.members.Missing {
		absent[name] = now
		if since, known := m.absent[name]; known {
			absent[name] = since
		}
	}
	m.absent = absent
}

// nextLack is how long until something has been lacking for long enough.
func (m *mind) nextLack(now time.Time) time.Duration {
	next := time.Hour
	await := func(since time.Time, patience time.Duration) {
		if left := patience - now.Sub(since); left > 0 {
			next = min(next, left)
		}
	}
	await(m.waits, starting)
	for _, since := range m.absent {
		await(since, absence)
	}
	return next
}

func (m *mind) status() v1alpha1.SpeakerStatusStatus {
	s := m.plan.Status
	s.Leaving = m.leaves()
	s.Members = v1alpha1.SpeakerMembers{
		Alive:    int32(len(m.members.Alive)),
		Expected: m.expected(),
	}
	for _, name := range slices.Sorted(maps.Keys(m.members.Missing)) {
		if len(s.Members.NotAlive) == maxNotAlive {
			break
		}
		s.Members.NotAlive = append(s.Members.NotAlive, name+": "+m.members.Missing[name])
	}
	return s
}

// expected is how many speakers there should be.
func (m *mind) expected() int32 { return int32(max(1, m.cluster.Nodes.Len())) }

func (m *mind) describe(problems []snapshot.Problem) *State {
	s := &State{
		Kind: "speaker", Node: m.opts.NodeName, Waiting: m.waiting(), Leaving: m.leaves(),
		Announcing: []Announced{}, Owners: make(map[string]string, len(m.plan.L2.Owners)),
		Alive: slices.Sorted(maps.Keys(m.members.Alive)), Missing: m.members.Missing,
		Interfaces: m.l2.Interfaces(), Problems: snapshot.Distinct(problems),
	}
	for a, owner := range m.plan.L2.Owners {
		s.Owners[a.String()] = owner
	}
	if s.Waiting == "" {
		for a, answer := range m.plan.L2.Answers {
			v := Announced{Address: a.String(), Interfaces: answer.Interfaces, Epoch: answer.Epoch, HandOver: answer.HandOver}
			for _, svc := range answer.Services {
				v.Services = append(v.Services, svc.String())
			}
			s.Announcing = append(s.Announcing, v)
		}
	}
	slices.SortFunc(s.Announcing, func(a, b Announced) int { return cmp.Compare(a.Address, b.Address) })
	return s
}
