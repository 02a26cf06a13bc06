package speaker

import (
	"slices"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// What is wrong with this node, and the sessions that it lacks, is told again as long as
// it lasts, and what is as it should be is not.
func TestTroublesThatLastAreToldAgain(t *testing.T) {
	s, n := lone(t)
	deaf := snapshot.Problem{Object: snapshot.Ref{Kind: "Node", Key: snapshot.Key{Name: "n1"}}, Reason: "InterfaceDeaf", Message: "eth0"}
	s.metrics.problems.Store(&[]snapshot.Problem{deaf})
	s.lastStep.Store(&stepState{sessions: []v1alpha1.BGPSession{
		{Peer: "tor", State: "Active", LastError: "connection refused", BFDState: "Down"},
		{Peer: "spine", State: established, BFDState: "Up"},
	}})
	again := cluster.Repeats{Most: reminders}
	begin := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	during := func(from, to time.Duration) []string {
		n.heard = nil
		for at := from; at < to; at += cluster.RemindEvery {
			s.remindOf(&again, begin.Add(at))
		}
		slices.Sort(n.heard)
		return n.heard
	}
	all := []string{"BGPPeer tor SessionDown: node n1: there is no BGP session: connection refused", "Node n1 InterfaceDeaf: eth0"}
	for _, hour := range []struct {
		from, to time.Duration
		want     []string
	}{
		{0, 10 * time.Minute, nil}, // who saw it begin has just told it
		{10 * time.Minute, 50 * time.Minute, all},
		{50 * time.Minute, 95 * time.Minute, all},
	} {
		if got := during(hour.from, hour.to); !slices.Equal(got, hour.want) {
			t.Errorf("from %v to %v: told %q, want %q", hour.from, hour.to, got, hour.want)
		}
	}
	s.metrics.problems.Store(&[]snapshot.Problem{})
	s.lastStep.Store(&stepState{})
	if got := during(95*time.Minute, 200*time.Minute); len(got) > 0 {
		t.Errorf("told %q, which is over", got)
	}
}
