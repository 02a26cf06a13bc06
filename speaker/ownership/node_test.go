package ownership

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/test/objects"
)

// began is when the tests begin.
func began() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// alone is the machine of node n1 among the objects of a fleet, in the midst of a
// step. It hears of nobody, and has not read its interfaces.
func alone(t *testing.T, more ...snapshot.Object) *Machine {
	t.Helper()
	m := New(Options{Node: "n1"})
	m.now, m.out = began(), &Output{}
	m.world = World{
		Cluster: snapshot.Of(append(objects.Fleet(2), more...)...), Synced: true,
		Members: &Members{Alive: map[string]struct{}{"n1": {}}, Settled: true},
	}
	return m
}

// asksFor reports whether the LAN is to be asked about an address.
func asksFor(out *Output, a netip.Addr) bool {
	return slices.ContainsFunc(out.Ask, func(q *Inquiry) bool { _, asked := q.Takes[a]; return asked })
}

// told are the Events of the step so far.
func told(m *Machine) (out []string) {
	m.tellTaken()
	for _, e := range m.out.Report.Events {
		out = append(out, e.About.String()+" "+e.Reason+": "+e.Message)
	}
	return out
}
