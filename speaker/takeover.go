package speaker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
)

// How soon an address that somebody answers for is asked about again: a member
// that gossip calls dead may die any moment, a stranger seldom leaves.
const (
	retryMember   = 250 * time.Millisecond
	retryStranger = 10 * time.Second
	retryFailed   = time.Second
	retryDoubt    = 2 * time.Second // a watch that lags may do so for hours
	// A node that lives but says nothing about an address, neither yes nor no,
	// may be starved or behind a firewall. After this long its addresses move.
	patience = 2 * time.Second
)

// maxWitnesses bounds how many other nodes are asked for a sign of life.
const maxWitnesses = 32

// refusal is what the LAN said about an address.
type refusal struct {
	announce.Refusal
	retry time.Time
	doubt bool // the question was a doubtful one
}

// verdict is the LAN's answer to one batch of questions.
type verdict struct {
	asked  map[netip.Addr]announce.Take
	found  map[netip.Addr]l2.Found
	nodes  map[string]netip.Addr // where the nodes themselves were asked for
	deaf   bool                  // nobody said anything, not even those who should
	pulses map[string]members.Pulse
	err    error
}

// act carries out the plan's takes: at once where the owner is alive and lets
// go, after asking the LAN otherwise. It reports whether something was granted,
// which makes another plan.
func (m *mind) act(ctx context.Context) (granted bool) {
	if m.waiting() != "" || !m.stops.said.IsZero() {
		return false
	}
	// Two batches: a first claim asks ten times as long as a takeover may take.
	died, first := map[netip.Addr]announce.Take{}, map[netip.Addr]announce.Take{}
	ask := func(t announce.Take) {
		if _, asking := m.asking[t.Address]; asking {
			return
		}
		if t.Cause == announce.First {
			first[t.Address] = t
		} else {
			died[t.Address] = t
		}
	}
	for _, t := range m.plan.L2.Take {
		switch t.Cause {
		case announce.Leaving, announce.Ineligible, announce.Preferred: // a planned hand-over needs no question
			if !t.Doubtful {
				m.grant(t)
				granted = true
				continue
			}
		}
		ask(t)
	}
	now := time.Now()
	barred := map[netip.Addr]struct{}{}
	for _, t := range m.plan.L2.Barred {
		barred[t.Address] = struct{}{}
		if r := m.refused[t.Address]; !r.retry.After(now) || r.doubt && !t.Doubtful {
			ask(t)
		}
	}
	// What nobody wants any more need not be refused; what this node owns is
	// forgotten when the stranger has been silent for long enough.
	maps.DeleteFunc(m.refused, func(a netip.Addr, r refusal) bool {
		_, wanted := barred[a]
		return !wanted && (!m.claims(a) || now.After(r.retry))
	})
	maps.DeleteFunc(m.silent, func(a netip.Addr, _ time.Time) bool { _, refused := m.refused[a]; return !refused })
	timing := l2.Takeover()
	if m.deaf {
		timing = lastingly() // so that not a moment passes unheard
	}
	m.ask(ctx, died, timing)
	m.ask(ctx, first, l2.FirstClaim())
	return granted
}

// lastingly is the timing of a node that heard nobody: its next question goes
// on until about the time of the one after.
func lastingly() l2.Timing { return l2.Timing{Times: 3, Every: retryMember / 3} }

// ask puts questions to the LAN; hear gets the answer. Beside the addresses it
// asks for hosts that should answer if the LAN works at all: a speaker that is
// itself cut off must take nothing: it would return with newer claims than those
// who kept working.
func (m *mind) ask(ctx context.Context, takes map[netip.Addr]announce.Take, timing l2.Timing) {
	if len(takes) == 0 {
		return
	}
	questions := make([]l2.Question, 0, len(takes))
	first := true
	for a, t := range takes {
		m.asking[a] = struct{}{}
		questions = append(questions, l2.Question{Address: a, Interfaces: t.Interfaces, Held: t.Cause != announce.First})
		first = first && t.Cause == announce.First
	}
	nodes := map[string]netip.Addr{}
	if !first && m.met {
		nodes = m.nodes(takes)
	}
	m.tasks.Add(1)
	go func() {
		defer m.tasks.Add(-1)
		window := timing.Every * time.Duration(timing.Times)
		losers := map[string]netip.Addr{}
		for _, t := range takes {
			if at, known := nodes[t.From]; known {
				losers[t.From] = at
			}
		}
		first := make(chan map[string]members.Pulse, 1)
		go func() { first <- m.feelPulses(ctx, losers, window) }() // while the LAN is asked
		if len(nodes) > 0 {
			questions = append(questions, m.witnesses(nodes)...)
		}
		found, heard, err := m.l2.Listen(ctx, questions, timing)
		v := verdict{takes, found, nodes, len(nodes) > 0 && !heard, <-first, err}
		v, _ = m.lookAgain(ctx, v, window)
		m.answers <- v
		m.watchTheDying(ctx, v, window)
	}()
}

// feelPulses asks nodes whether their speakers run.
func (m *mind) feelPulses(ctx context.Context, nodes map[string]netip.Addr, timeout time.Duration) map[string]members.Pulse {
	out := map[string]members.Pulse{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, at := range nodes {
		asking.Go(func() {
			pulse := m.Speaker.members.Pulse(ctx, at, timeout)
			mu.Lock()
			defer mu.Unlock()
			out[name] = pulse
		})
	}
	asking.Wait()
	return out
}

// lookAgain asks once more for the pulses of those who listened, and reports
// whether one does not any more. A speaker that was killed listens until its
// kernel has closed what it had open, which takes it some 13 ms for each packet
// socket, and there are several for each interface.
func (m *mind) lookAgain(ctx context.Context, v verdict, timeout time.Duration) (later verdict, died bool) {
	listened := map[string]netip.Addr{}
	for name, pulse := range v.pulses {
		if pulse == members.Listening {
			listened[name] = v.nodes[name]
		}
	}
	v.pulses = maps.Clone(v.pulses) // the loop may be reading the earlier one
	for name, pulse := range m.feelPulses(ctx, listened, timeout) {
		v.pulses[name] = pulse
		died = died || pulse == members.Refused
	}
	return v, died
}

// watchTheDying says so when a speaker stops to listen between a question and
// the next: the address need not wait for that one.
func (m *mind) watchTheDying(ctx context.Context, v verdict, timeout time.Duration) {
	for range 10 {
		if ctx.Err() != nil || !v.slow() {
			return
		}
		time.Sleep(retryMember / 10)
		later, died := m.lookAgain(ctx, v, timeout)
		if v = later; died {
			m.answers <- v
			return
		}
	}
}

// slow reports whether an address is left alone only because a speaker listens.
func (v *verdict) slow() bool {
	for a, t := range v.asked {
		if _, answered := v.found[a]; !answered && v.pulses[t.From] == members.Listening {
			return true
		}
	}
	return false
}

// nodes are where the other nodes can be asked for: those that lose an address
// first. Their kernels answer even when their speakers are dead.
func (m *mind) nodes(takes map[netip.Addr]announce.Take) map[string]netip.Addr {
	losers := map[string]struct{}{}
	for _, t := range takes {
		losers[t.From] = struct{}{}
	}
	out := map[string]netip.Addr{}
	_, peers := m.peers()
	for _, p := range peers {
		if _, loses := losers[p.Name]; loses || len(out) < maxWitnesses {
			out[p.Name] = p.Addr
		}
	}
	return out
}

// witnesses are nodes, and whoever else this machine has talked to.
func (m *mind) witnesses(nodes map[string]netip.Addr) []l2.Question {
	out, err := m.l2.Neighbours()
	if err != nil {
		m.opts.Log.Warn("neighbours are not known", "error", err)
	}
	for _, a := range nodes {
		out = append(out, l2.Question{Address: a, Host: true})
	}
	return out
}

// awaitQuestions lets the goroutines of ask end.
func (m *mind) awaitQuestions() {
	for m.tasks.Load() > 0 || len(m.answers) > 0 {
		select {
		case <-m.answers:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// hear grants what nobody answered for, if it is still to be taken.
func (m *mind) hear(v verdict) {
	for a := range v.asked {
		delete(m.asking, a)
	}
	if len(v.nodes) > 0 {
		m.deaf = v.deaf
	}
	m.compile() // the world may have moved while the LAN was asked
	now := time.Now()
	for _, t := range append(m.plan.L2.Take, m.plan.L2.Barred...) {
		if _, asked := v.asked[t.Address]; !asked {
			continue
		}
		found, taken := v.found[t.Address]
		switch {
		case taken && m.macs[found.MAC] == m.opts.NodeName:
			m.grant(t) // an interface of ours hears another: both are on one LAN
		case taken:
			delete(m.silent, t.Address)
			m.refuse(t, announce.Refusal{Node: m.macs[found.MAC], MAC: found.MAC}, "somebody answers for it", now)
		case v.err != nil:
			m.opts.Log.Warn("the LAN could not be asked", "address", t.Address, "error", v.err)
			m.refused[t.Address] = refusal{Refusal: announce.Refusal{Node: cmp.Or(t.From, m.opts.NodeName)}, retry: now.Add(retryFailed)}
		case v.deaf:
			m.refuse(t, announce.Refusal{Node: t.From}, "this node hears nobody", now)
		case v.livesOn(t.From) && now.Sub(m.silentSince(t.Address, now)) < patience:
			m.refuse(t, announce.Refusal{Node: t.From}, "its node lives and may only be slow", now)
		default:
			m.grant(t)
		}
	}
}

// silentSince is when an address of a living node was first not answered for.
func (m *mind) silentSince(a netip.Addr, now time.Time) time.Time {
	if _, known := m.silent[a]; !known {
		m.silent[a] = now
	}
	return m.silent[a]
}

// livesOn reports whether the speaker of a node may only be slow: it listens,
// or its node answers and does not say that nothing listens.
func (v *verdict) livesOn(node string) bool {
	a, asked := v.nodes[node]
	_, answered := v.found[a]
	return v.pulses[node] == members.Listening || asked && answered && v.pulses[node] != members.Refused
}

// recognise finds out that a stranger is a member that had not been met.
func (m *mind) recognise() {
	for a, r := range m.refused {
		if node := m.macs[r.MAC]; r.Node == "" && node != "" && node != m.opts.NodeName {
			m.refused[a] = refusal{Refusal: announce.Refusal{Node: node, MAC: r.MAC}, retry: time.Now().Add(retryMember)}
		}
	}
}

// refuse leaves an address alone for a while.
func (m *mind) refuse(t announce.Take, by announce.Refusal, why string, now time.Time) {
	_, again := m.refused[t.Address]
	pause := retryMember
	switch {
	case by.Node == "":
		pause = retryStranger
	case t.Doubtful && by.MAC != "": // the owner answers, and so knows why
		pause = retryDoubt
	}
	m.refused[t.Address] = refusal{Refusal: by, retry: now.Add(pause), doubt: t.Doubtful}
	if again {
		return
	}
	m.metrics.vetoes.Inc()
	m.opts.Log.Info("address is not taken", "reason", why, "address", t.Address, "from", t.From, "node", by.Node, "mac", by.MAC)
}

// grant makes an address this node's.
func (m *mind) grant(t announce.Take) {
	delete(m.refused, t.Address)
	delete(m.silent, t.Address)
	delete(m.remembered, t.Address)
	delete(m.cut, t.Address)
	m.mine[t.Address] = t.Epoch
	m.metrics.changes.WithLabelValues(string(t.Cause)).Inc()
	if seen, ok := m.members.LastSeen[t.From]; ok && t.Cause == announce.Died {
		m.metrics.failover.Observe(time.Since(seen).Seconds())
	}
	m.opts.Log.Info("address taken", "address", t.Address, "from", t.From, "cause", t.Cause, "epoch", t.Epoch, "interfaces", t.Interfaces)
	text := fmt.Sprintf("node %s announces %s on %s", m.opts.NodeName, t.Address, orEvery(t.Interfaces))
	switch {
	case t.Cause == announce.Returned:
		text += " again"
	case t.From != "":
		text += fmt.Sprintf(" (before: node %s, %s)", t.From, t.Cause)
	}
	m.event(t.Answer, "Normal", "Announcing", text)
}

func orEvery(interfaces []string) string {
	if len(interfaces) == 0 {
		return "every interface"
	}
	return strings.Join(interfaces, ", ")
}

// lost notes that a better claim silences ours: a hand-over is complete, or two
// sides of a split have met again.
func (m *mind) lost(a netip.Addr, to announce.Claim, before *announce.Plan) {
	m.opts.Log.Info("address given up", "address", a, "to", to.Node, "epoch", to.Epoch)
	m.metrics.changes.WithLabelValues("outranked").Inc()
	if before == nil {
		return
	}
	if answer, ok := before.L2.Answers[a]; ok {
		m.event(answer, "Normal", "Moved", fmt.Sprintf("node %s stops announcing %s: node %s does now", m.opts.NodeName, a, to.Node))
	}
}

// stranger hears of somebody who claims an address of ours. We keep it, since
// our clients know us, and say so.
func (m *mind) stranger(c l2.Conflict) {
	m.metrics.conflicts.Inc()
	m.opts.Log.Warn("a stranger answers for our address", "address", c.Address, "mac", c.MAC, "interface", c.Interface)
	m.refused[c.Address] = refusal{Refusal: announce.Refusal{MAC: c.MAC}, retry: time.Now().Add(6 * retryStranger)}
}

// nextRetry is how long until a refused address is to be looked at again. One that
// is being asked about waits for the answer, and who ends asks nothing any more.
func (m *mind) nextRetry() time.Duration {
	next := time.Hour
	if !m.stops.said.IsZero() {
		return next
	}
	for a, r := range m.refused {
		if _, asking := m.asking[a]; !asking {
			next = min(next, max(10*time.Millisecond, time.Until(r.retry)))
		}
	}
	return next
}

func (m *mind) event(answer announce.Answer, eventType, reason, message string) {
	for _, svc := range answer.Services {
		m.opts.Writer.Event(snapshot.Ref{Kind: "Service", Key: svc}, eventType, reason, message)
	}
}
