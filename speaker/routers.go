package speaker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bfd/session"
	"quayside.io/speaker/bgp"
	"quayside.io/speaker/ownership"
)

// established is the state of a session that carries routes (RFC 4271 8.2.2).
const established = "Established"

// bfdUp is the state of a BFD session that guards a path.
const bfdUp = "Up"

// describeSessions returns sessions, the results of BFD and the doubts about which router
// is meant, as they are in a SpeakerStatus.
func describeSessions(states []bgp.SessionState, found map[string]bfd.Status, doubts map[string]string) []v1alpha1.BGPSession {
	var out []v1alpha1.BGPSession
	for _, state := range states {
		one := v1alpha1.BGPSession{
			Peer: state.Name, State: state.State, Advertised: int64(state.Announced),
			LastError: state.LastError, Withheld: withheld(state.Withheld),
		}
		if state.Peer.IsValid() {
			one.Address = state.Peer.String()
		}
		if doubt := doubts[state.Name]; doubt != "" && state.State != established && doubt != state.LastError {
			one.LastError = strings.TrimPrefix(state.LastError+"; "+doubt, "; ")
		}
		if !state.Since.IsZero() {
			since := metav1.NewTime(state.Since.UTC().Truncate(time.Second))
			one.Since = &since
		}
		if state.Announced > 0 {
			one.Hash = fmt.Sprintf("%016x", state.Hash)
		}
		if path, guarded := found[state.Name]; guarded {
			if one.BFDState = path.State.String(); path.State != session.Up {
				one.BFDReason = cmp.Or(path.Problem, path.Diag)
			}
		}
		out = append(out, one)
	}
	return out
}

func withheld(reasons map[string]int) string {
	var out []string
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		out = append(out, fmt.Sprintf("%d: %s", reasons[why], why))
	}
	return strings.Join(out, "; ")
}

// sessionProblems are what the sessions of a node lack, told of their BGPPeers. One that
// has just begun lacks nothing yet.
func sessionProblems(node string, now []v1alpha1.BGPSession) (problems []snapshot.Problem) {
	for i := range now {
		s := &now[i]
		tell := func(reason, message string) {
			problems = append(problems, snapshot.Problem{Object: aboutPeer(s), Reason: reason, Message: "node " + node + ": " + message})
		}
		if s.State != established && s.LastError != "" {
			tell("SessionDown", "there is no BGP session: "+s.LastError)
		}
		if s.Withheld != "" {
			tell("RoutesWithheld", "routes that the peer cannot be told, "+s.Withheld)
		}
		if s.BFDState != "" && s.BFDState != bfdUp && s.BFDReason != "" {
			tell("BFDDown", "BFD does not guard the path: "+s.BFDReason)
		}
	}
	return problems
}

// sessionEvents returns Events about sessions that have come up; see sessionProblems for
// those that have not. One that is not wanted any more has none.
func sessionEvents(node string, was, now []v1alpha1.BGPSession) (events []ownership.Notice) {
	before := map[string]v1alpha1.BGPSession{}
	for _, s := range was {
		before[s.Peer] = s
	}
	for i := range now {
		s := &now[i]
		tell := func(reason, message string) {
			events = append(events, ownership.Notice{About: aboutPeer(s), Type: corev1.EventTypeNormal, Reason: reason, Message: "node " + node + ": " + message})
		}
		old := before[s.Peer]
		if s.State == established && old.State != established {
			tell("SessionUp", "the BGP session is "+established)
		}
		if s.BFDState == bfdUp && old.BFDState != bfdUp {
			tell("BFDUp", "BFD guards the path")
		}
	}
	return events
}

func aboutPeer(s *v1alpha1.BGPSession) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.BGPPeer.String(), Key: snapshot.Key{Name: s.Peer}}
}
