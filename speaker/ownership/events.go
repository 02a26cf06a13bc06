package ownership

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// toldServices are, by address of this node, the Services that have an Event which says
// that this node announces it.
type toldServices map[netip.Addr][]snapshot.Key

// announceEvents writes an Event to each Service whose address this node announces, once.
// Most were written when the address was taken. The others are for Services that come to
// an address which this node has already: they share it, or the Service that had it has
// gone and the claim on it is still known.
func (m *Machine) announceEvents() {
	if m.waiting() != "" {
		return
	}
	m.loadTold()
	fresh := map[netip.Addr]announce.Answer{}
	for a, answer := range m.plan.L2.Answers {
		if told := m.toldServices[a]; answer.HandOver == "" && !slices.Equal(answer.Services, told) {
			m.toldServices[a] = answer.Services
			answer.Services = slices.DeleteFunc(slices.Clone(answer.Services), func(s snapshot.Key) bool { return slices.Contains(told, s) })
			fresh[a] = answer
		}
	}
	for _, a := range sorted(fresh) {
		m.notify(fresh[a], "Announcing", m.announces(a, fresh[a].Interfaces))
	}
}

// fewAtOnce is how many addresses of one node another takes at a time of which, in a large
// fleet, each is told to its Services. Of more one Event about the taker tells.
const fewAtOnce = 4

// tellTaken writes Events about the addresses that this step has taken.
func (m *Machine) tellTaken() {
	type origin struct {
		node  string
		cause announce.Cause
	}
	from := map[origin][]announce.Take{}
	var order []origin
	for _, t := range m.taken {
		at := origin{t.From, t.Cause}
		if from[at] == nil {
			order = append(order, at)
		}
		from[at] = append(from[at], t)
	}
	m.taken = nil
	for _, at := range order {
		taken := from[at]
		if len(taken) > fewAtOnce && at.node != "" && at.node != m.opts.Node && len(m.world.Members.Alive) > smallFleet {
			m.tellMany(at.node, at.cause, taken)
			continue
		}
		for _, t := range taken {
			text := m.announces(t.Address, t.Interfaces)
			switch {
			case t.Cause == announce.Returned:
				text += " again"
			case t.From != "":
				text += " (before: node " + t.From + ", " + string(t.Cause) + ")"
			}
			m.notify(t.Answer, "Announcing", text)
		}
	}
}

// tellMany writes one Event about this node for many addresses that another had.
func (m *Machine) tellMany(before string, cause announce.Cause, taken []announce.Take) {
	names := make([]string, len(taken))
	for i, t := range taken {
		names[i] = t.Address.String()
	}
	me := snapshot.Ref{Kind: "Node", Key: snapshot.Key{Name: m.opts.Node}}
	m.out.Report.Events = append(m.out.Report.Events, Notice{me, "Normal", "Announcing", fmt.Sprintf(
		"node %s announces %d addresses (before: node %s, %s): %s", m.opts.Node, len(taken), before, cause, strings.Join(names, ", "))})
}

// loadTold reads from this node's SpeakerStatus which Services an earlier process has
// told.
func (m *Machine) loadTold() {
	if m.toldServices != nil {
		return
	}
	m.toldServices = toldServices{}
	s, ok := m.world.Cluster.SpeakerStatuses.Get(snapshot.Key{Name: m.opts.Node})
	if !ok {
		return
	}
	for _, announcing := range s.Status.Announcing {
		a, err := netip.ParseAddr(announcing.Address)
		if namespace, name, ok := strings.Cut(announcing.Service, "/"); ok && err == nil {
			m.toldServices[a] = append(m.toldServices[a], snapshot.Key{Namespace: namespace, Name: name})
		}
	}
}

// announces is the text of an Event: this node announces an address, and where.
func (m *Machine) announces(a netip.Addr, interfaces []string) string {
	return "node " + m.opts.Node + " announces " + a.String() + " on " + orEvery(interfaces)
}

// forget drops the addresses that this node does not have any more.
func (t toldServices) forget(has func(netip.Addr) bool) {
	maps.DeleteFunc(t, func(a netip.Addr, _ []snapshot.Key) bool { return !has(a) })
}

// notify writes an Event to each Service of an address.
func (m *Machine) notify(answer announce.Answer, reason, message string) {
	for _, svc := range answer.Services {
		m.out.Report.Events = append(m.out.Report.Events, Notice{snapshot.Ref{Kind: "Service", Key: svc}, "Normal", reason, message})
	}
}
