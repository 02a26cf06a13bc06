package ownership

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// heard are the Services that have been told who announces their addresses, by
// address: those that this node claims.
type heard map[netip.Addr][]snapshot.Key

// herald tells Services that this node announces their addresses, each once. Most
// have been told when the address was taken. The others come to one that is this
// node's already: it is shared, or the Service that had it has gone, in this moment
// or a short while ago, and members or a SpeakerStatus still know the claim.
func (m *Machine) herald() {
	if m.waiting() != "" {
		return
	}
	m.recall()
	fresh := map[netip.Addr]announce.Answer{}
	for a, answer := range m.plan.L2.Answers {
		if told := m.heard[a]; answer.HandOver == "" && !slices.Equal(answer.Services, told) {
			m.heard[a] = answer.Services
			answer.Services = slices.DeleteFunc(slices.Clone(answer.Services), func(s snapshot.Key) bool { return slices.Contains(told, s) })
			fresh[a] = answer
		}
	}
	for _, a := range sorted(fresh) {
		m.notify(fresh[a], "Announcing", m.announces(a, fresh[a].Interfaces))
	}
}

// recall begins with what the last process of this node has told: what its
// SpeakerStatus names.
func (m *Machine) recall() {
	if m.heard != nil {
		return
	}
	m.heard = heard{}
	s, ok := m.world.Cluster.SpeakerStatuses.Get(snapshot.Key{Name: m.opts.Node})
	if !ok {
		return
	}
	for _, announcing := range s.Status.Announcing {
		a, err := netip.ParseAddr(announcing.Address)
		if namespace, name, ok := strings.Cut(announcing.Service, "/"); ok && err == nil {
			m.heard[a] = append(m.heard[a], snapshot.Key{Namespace: namespace, Name: name})
		}
	}
}

// announces says who announces an address, and where.
func (m *Machine) announces(a netip.Addr, interfaces []string) string {
	return "node " + m.opts.Node + " announces " + a.String() + " on " + orEvery(interfaces)
}

// forget drops those of addresses that are not this node's any more.
func (h heard) forget(has func(netip.Addr) bool) {
	maps.DeleteFunc(h, func(a netip.Addr, _ []snapshot.Key) bool { return !has(a) })
}

// notify tells the Services of an address what became of it.
func (m *Machine) notify(answer announce.Answer, reason, message string) {
	for _, svc := range answer.Services {
		m.out.Report.Events = append(m.out.Report.Events, Notice{snapshot.Ref{Kind: "Service", Key: svc}, "Normal", reason, message})
	}
}
