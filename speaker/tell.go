package speaker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/ownership"
)

// State is what a speaker is doing, for the page /state.
type State struct {
	Kind string `json:"kind"` // "speaker"
	Node string `json:"node"`
	// Waiting is why nothing is announced yet, neither on the LAN nor to routers; "": it is.
	Waiting    string               `json:"waiting,omitempty"`
	Leaving    bool                 `json:"leaving,omitempty"`
	Announcing []Announced          `json:"announcing"`
	Owners     map[string]string    `json:"owners"`
	Alive      []string             `json:"alive"`
	Missing    map[string]string    `json:"missing,omitempty"`
	Interfaces []announce.Interface `json:"interfaces"`
	Problems   []snapshot.Problem   `json:"problems"`
	// BGPSessions are those of this node, as in its SpeakerStatus.
	BGPSessions []v1alpha1.BGPSession `json:"bgpSessions,omitempty"`
}

// Announced is one address this node answers for.
type Announced struct {
	Address    string   `json:"address"`
	Services   []string `json:"services"`
	Interfaces []string `json:"interfaces"`
	Epoch      int64    `json:"epoch"`
	HandOver   string   `json:"handOver,omitempty"`
}

// tell publishes the outcome of a step: Events, State, and the SpeakerStatus.
func (s *Speaker) tell(w ownership.World, out *ownership.Output, p *publisher) {
	s.hearing.know(&w, &out.Plan.L2)
	for _, e := range out.Report.Events {
		s.opts.Writer.Event(e.About, e.Type, e.Reason, e.Message)
	}
	forged := s.forgeries()
	s.logForgeries(forged)
	own, all := slices.Concat(out.Report.Own, forged), slices.Concat(out.Report.Problems, forged)
	s.metrics.problems.Store(&own)
	s.problems.Store(&all)
	w.Cluster = nil // it is large, and the next step may be far
	s.lastStep.Store(&stepState{node: s.opts.NodeName, waiting: out.Waiting, unread: s.unread, world: w, out: out, problems: all})
	if out.Report.Status != nil {
		s.status = out.Report.Status
	}
	s.tellSessions(p)
}

// tellSessions publishes the last status of the machine with the current BGP sessions, and
// Events about what has changed.
func (s *Speaker) tellSessions(p *publisher) {
	sessions := describeSessions(s.bgp.State(), s.bfd.State(), s.doubts)
	stands := *s.lastStep.Load()
	for _, e := range sessionEvents(s.opts.NodeName, s.told, sessions) {
		s.opts.Writer.Event(e.About, e.Type, e.Reason, e.Message)
	}
	s.told = sessions
	stands.sessions = sessions
	s.lastStep.Store(&stands)
	s.report()
	if s.status != nil {
		status := *s.status
		status.BGPSessions = sessions
		status.GossipSecrets = s.members.KeyPrints()
		status.GossipKey = s.gossipKey(s.opts.Source.Snapshot())
		p.set(status)
	}
}

// report writes Events about what is wrong with this node, where that is news. The words
// may be those of a router, or of any host on the LAN.
func (s *Speaker) report() {
	now := time.Now()
	joined := cluster.Joined(s.lasting())
	for _, p := range s.reports.Fresh(joined, now, func(snapshot.Ref) bool { return true }) {
		s.opts.Writer.Event(p.Object, corev1.EventTypeWarning, p.Reason, p.Message)
	}
	if due := s.reports.Due(); !due.IsZero() {
		s.again.Reset(due.Sub(now))
	}
}

// stepState is the outcome of the last step. A State is made from it only on request, since
// that lists all nodes and addresses.
type stepState struct {
	node, waiting, unread string // the last: a password that is not read yet
	world                 ownership.World
	out                   *ownership.Output // nil: no step has been taken
	problems              []snapshot.Problem
	sessions              []v1alpha1.BGPSession
}

func (s *stepState) describe() *State {
	if s.out == nil {
		return &State{Kind: "speaker", Node: s.node, Waiting: s.waiting}
	}
	w, out := &s.world, s.out
	state := &State{
		Kind: "speaker", Node: s.node, Waiting: s.waiting, Leaving: out.Leaving,
		Announcing: []Announced{}, Owners: make(map[string]string, out.Plan.L2.Owners.Len()),
		Alive: slices.DeleteFunc(slices.Sorted(maps.Keys(w.Members.Alive)), func(name string) bool { return w.Members.Missing[name] != "" }), Missing: w.Members.Missing,
		Interfaces: w.Link.Interfaces, Problems: snapshot.Distinct(s.problems), BGPSessions: s.sessions,
	}
	for a, owner := range out.Plan.L2.Owners.All() {
		state.Owners[a.String()] = owner
	}
	for a := range out.LAN.Addresses {
		answer := out.Plan.L2.Answers[a]
		v := Announced{Address: a.String(), Interfaces: answer.Interfaces, Epoch: answer.Epoch, HandOver: answer.HandOver}
		for _, svc := range answer.Services {
			v.Services = append(v.Services, svc.String())
		}
		state.Announcing = append(state.Announcing, v)
	}
	slices.SortFunc(state.Announcing, func(a, b Announced) int { return cmp.Compare(a.Address, b.Address) })
	return state
}

// log logs a change to an address.
func (s *Speaker) log(c ownership.Change) {
	log := s.opts.Log
	switch c.Kind {
	case ownership.Taken:
		log.Info("address taken", "address", c.Address, "from", c.From, "cause", c.Cause, "epoch", c.Epoch, "interfaces", c.Interfaces)
	case ownership.Lost:
		log.Info("address given up", "address", c.Address, "to", c.To.Node, "epoch", c.To.Epoch)
	case ownership.NotTaken:
		log.Info("address is not taken", "reason", c.Why, "address", c.Address, "from", c.From, "node", c.By.Node, "mac", c.By.MAC)
	case ownership.Unasked:
		log.Warn("the LAN could not be asked", "address", c.Address, "error", c.Err)
	case ownership.Contested:
		log.Warn("a stranger answers for our address", "address", c.Address, "mac", c.By.MAC, "interface", c.Interface)
	}
}
