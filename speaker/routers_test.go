package speaker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bfd/session"
	"quayside.io/speaker/bgp"
)

func TestSessionsInTheWordsOfAStatus(t *testing.T) {
	got := describeSessions([]bgp.SessionState{
		{Name: "guarded", State: established, Since: time.Unix(5, 999), Announced: 2, Hash: 0xab, Withheld: map[string]int{"b": 1, "a": 2}},
		{Name: "silent", State: "Active", LastError: "hold timer expired"},
		{Name: "deaf", State: established},
		{Name: "plain", State: "Idle"},
	}, map[string]bfd.Status{
		"guarded": {State: session.Up, Diag: "of the last time"},
		"silent":  {State: session.Down, Diag: "nothing was heard for the detection time"},
		"deaf":    {State: session.Down, Diag: "less to the point", Problem: "no socket"},
	}, nil)
	since := got[0].Since
	got[0].Since = nil
	for i, want := range []v1alpha1.BGPSession{
		{Peer: "guarded", State: established, Advertised: 2, Hash: "00000000000000ab", Withheld: "2: a; 1: b", BFDState: "Up"},
		{Peer: "silent", State: "Active", LastError: "hold timer expired", BFDState: "Down", BFDReason: "nothing was heard for the detection time"},
		{Peer: "deaf", State: established, BFDState: "Down", BFDReason: "no socket"},
		{Peer: "plain", State: "Idle"},
	} {
		if got[i] != want {
			t.Errorf("%+v\nwant %+v", got[i], want)
		}
	}
	if since.Unix() != 5 || since.Nanosecond() != 0 {
		t.Errorf("since %v: etcd keeps seconds", since)
	}
}

// TestEventsOfSessions plays what one session goes through. The reports of what it lacks
// are compared with those before, as the speaker does.
func TestEventsOfSessions(t *testing.T) {
	up := v1alpha1.BGPSession{Peer: "tor", State: established, BFDState: "Up"}
	down := v1alpha1.BGPSession{Peer: "tor", State: "Idle", LastError: "BFD Down", BFDState: "Down", BFDReason: "silence"}
	with := func(s v1alpha1.BGPSession, change func(*v1alpha1.BGPSession)) v1alpha1.BGPSession {
		change(&s)
		return s
	}
	var was []v1alpha1.BGPSession
	var reports cluster.Reports
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		now  []v1alpha1.BGPSession
		want string
	}{
		{[]v1alpha1.BGPSession{{Peer: "tor", State: "Idle", BFDState: "Down"}}, ""}, // it begins
		{[]v1alpha1.BGPSession{{Peer: "tor", State: "Active", LastError: "connection refused"}}, "SessionDown node n1: there is no BGP session: connection refused"},
		{[]v1alpha1.BGPSession{{Peer: "tor", State: "Connect", LastError: "connection refused"}}, ""},
		{[]v1alpha1.BGPSession{{Peer: "tor", State: established, LastError: "connection refused", BFDState: "Down"}}, "SessionUp node n1: the BGP session is Established"},
		{[]v1alpha1.BGPSession{up}, "BFDUp node n1: BFD guards the path"},
		{[]v1alpha1.BGPSession{with(up, func(s *v1alpha1.BGPSession) { s.Advertised = 9 })}, ""},
		{[]v1alpha1.BGPSession{with(up, func(s *v1alpha1.BGPSession) { s.Withheld = "1: why" })}, "RoutesWithheld node n1: routes that the peer cannot be told, 1: why"},
		{[]v1alpha1.BGPSession{up}, ""},
		{[]v1alpha1.BGPSession{down}, "SessionDown node n1: there is no BGP session: BFD Down|BFDDown node n1: BFD does not guard the path: silence"},
		{[]v1alpha1.BGPSession{with(down, func(s *v1alpha1.BGPSession) { s.BFDState = "Init" })}, ""},
		{[]v1alpha1.BGPSession{up}, "SessionUp node n1: the BGP session is Established|BFDUp node n1: BFD guards the path"},
		{nil, ""}, // it is not wanted any more
	} {
		var said []string
		for _, e := range sessionEvents("n1", was, step.now) {
			said = append(said, e.Reason+" "+e.Message)
			if e.About.String() != "BGPPeer tor" || e.Type != "Normal" {
				t.Errorf("about %s, %s", e.About, e.Type)
			}
		}
		now = now.Add(time.Hour)
		for _, p := range reports.Fresh(cluster.Joined(sessionProblems("n1", step.now)), now, func(snapshot.Ref) bool { return true }) {
			said = append(said, p.Reason+" "+p.Message)
			if p.Object.String() != "BGPPeer tor" {
				t.Errorf("about %s", p.Object)
			}
		}
		if got := strings.Join(said, "|"); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		was = step.now
	}
}

// A router chooses the words with which it ends a session, and a host on the LAN its MACs:
// neither makes Events without end, and of each the last word is told at last.
func TestOthersWordsMakeNoEventsWithoutEnd(t *testing.T) {
	s, n := lone(t)
	s.lastStep.Store(&stepState{})
	n.heard = nil
	service := snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: "default", Name: "s0"}}
	for i := range 100 {
		s.metrics.problems.Store(&[]snapshot.Problem{{Object: service, Reason: "AddressInUse", Message: fmt.Sprint("a stranger, ", i)}})
		s.lastStep.Store(&stepState{sessions: []v1alpha1.BGPSession{{Peer: "tor", State: "Idle", LastError: fmt.Sprint("it said ", i)}}})
		s.report()
	}
	if len(n.heard) != 2*cluster.ReportTimes {
		t.Errorf("%d Events, want %d: %q", len(n.heard), 2*cluster.ReportTimes, n.heard)
	}
	if due := s.reports.Due(); due.IsZero() {
		t.Error("the last words are never told")
	}
}
