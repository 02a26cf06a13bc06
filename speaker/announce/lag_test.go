package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// lagging is a few speakers of perfect gossip on a perfect LAN, each with a
// picture of the cluster of its own: their watches hang, each since another
// moment. There is one address, sharedAddress.
type lagging struct {
	sees    map[string]*snapshot.Cluster
	shown   bool // the watch of SpeakerStatuses does not lag
	status  map[string]*v1alpha1.SpeakerStatus
	claims  map[netip.Addr]Claim
	lost    map[string]map[netip.Addr]Loss
	handing map[string]map[netip.Addr]time.Time
	facts   map[string]Facts // whom each hands the address over to
	refused map[string]bool
	answers map[string]bool
	now     time.Time
	moves   int
}

func newLagging(shown bool, sees map[string]*snapshot.Cluster) *lagging {
	return &lagging{
		sees: sees, shown: shown, status: map[string]*v1alpha1.SpeakerStatus{}, claims: map[netip.Addr]Claim{}, lost: map[string]map[netip.Addr]Loss{},
		handing: map[string]map[netip.Addr]time.Time{}, facts: map[string]Facts{}, refused: map[string]bool{}, answers: map[string]bool{}, now: epoch0(),
	}
}

func (l *lagging) names() (out []string) {
	for i := range len(l.sees) {
		out = append(out, fmt.Sprintf("n%d", i+1))
	}
	return out
}

// turn lets one speaker decide and act, as the component does. A question that was
// refused is put again when retry says so.
func (l *lagging) turn(me string, retry bool) {
	a := netip.MustParseAddr(sharedAddress)
	c := l.sees[me]
	if l.shown {
		for _, s := range l.status {
			c = c.With(s)
		}
	}
	v := View{Alive: living(l.names()...), Claims: l.claims, Facts: maps.Clone(l.facts), Lost: l.lost[me], HandingOver: l.handing[me], Refused: map[netip.Addr]Refusal{}}
	if l.refused[me] {
		v.Refused[a] = Refusal{Node: l.claims[a].Node}
	}
	p := Compile(c, me, v, l.now, Options{})
	if p.L2.Concedes(a, me) {
		delete(l.lost, me)
	}
	l.facts[me] = Facts{HandsOver: p.L2.HandsOver}
	answer, answers := p.L2.Answers[a]
	l.answers[me] = answers
	if _, handing := l.handing[me][a]; answers && answer.HandOver == "" || l.claims[a].Node != me {
		delete(l.handing, me)
	} else if answers && !handing {
		l.handing[me] = map[netip.Addr]time.Time{a: l.now}
	}
	l.status[me] = &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: me}, Status: p.Status}
	takes := p.L2.Take
	if retry {
		takes = append(takes, p.L2.Barred...)
	}
	for _, t := range takes {
		asks := t.Doubtful || t.Cause == First
		if l.refused[me] = asks && slices.ContainsFunc(l.names(), func(n string) bool { return n != me && l.answers[n] }); !l.refused[me] {
			l.grant(t, me)
		}
	}
}

func (l *lagging) grant(t Take, me string) {
	l.moves++
	l.claims[t.Address] = Claim{t.Epoch, me}
	l.answers[t.From], l.answers[me] = false, true
	if t.From != "" {
		l.lost[t.From] = map[netip.Addr]Loss{t.Address: l.lost[t.From][t.Address].Again(l.now)}
	}
}

// live lets some seconds pass, in which all act in any order.
func (l *lagging) live(seconds int, order func([]string) []string) (moves int) {
	before := l.moves
	for s := range seconds {
		for _, me := range order(l.names()) {
			l.turn(me, s%5 == 0)
		}
		l.now = l.now.Add(time.Second)
	}
	return l.moves - before
}

// picture is one state of a cluster: who has an endpoint of the Service, whom a
// label excludes, and which tier is preferred.
type picture struct {
	endpoints, excluded []bool
	preferred           string
}

func (p picture) cluster() *snapshot.Cluster {
	local := sharer("a", 80)
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "a-1", Labels: map[string]string{discoveryv1.LabelServiceName: "a"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: offered(),
	}
	lan := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	lan.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 10, Preference: metav1.LabelSelector{MatchLabels: map[string]string{"tier": p.preferred}}}}
	objects := []snapshot.Object{lanPool("10.0.0.40-10.0.0.60"), local, lan}
	for i, has := range p.endpoints {
		name := fmt.Sprintf("n%d", i+1)
		n := readyNode(name, []string{"gold", "silver"}[i%2])
		if p.excluded[i] {
			n.Labels[corev1.LabelNodeExcludeBalancers] = ""
		}
		if objects = append(objects, n); has {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &name, Addresses: []string{"10.1.0.1"}})
		}
	}
	return snapshot.Of(append(objects, slice)...)
}

// only is a picture in which one of n nodes has the endpoint.
func only(has, n int) picture {
	p := picture{endpoints: make([]bool, n), excluded: make([]bool, n), preferred: "gold"}
	p.endpoints[has] = true
	return p
}

// The only endpoint has moved on from node to node, and each sees it where it is
// itself: the others' moves have not reached it. The address goes round once,
// and not for ever, whether or not the API server shows the claims.
func TestLaggingWatchesPlayNoPingPong(t *testing.T) {
	for _, shown := range []bool{false, true} {
		for n := 2; n <= 7; n++ {
			sees := map[string]*snapshot.Cluster{}
			for i := range n {
				sees[fmt.Sprintf("n%d", i+1)] = only(i, n).cluster()
			}
			l := newLagging(shown, sees)
			inOrder := func(names []string) []string { return names }
			l.live(60, inOrder)
			if more := l.live(60, inOrder); more > 0 {
				t.Errorf("%d nodes, claims shown: %v: %d moves in a minute, and another %d in the next", n, shown, l.moves-more, more)
			}
		}
	}
}

// Two speakers see different preferences, each its own tier's. The address goes to and fro
// until each has lost it twice, and not for ever: that a speaker leaves it to a claim until
// the preferences are published with that does not mean that it sees what the other sees.
func TestPreferencesThatDifferPlayNoPingPong(t *testing.T) {
	sees := map[string]*snapshot.Cluster{}
	for i, tier := range []string{"gold", "silver"} {
		p := picture{endpoints: []bool{true, true}, excluded: []bool{false, false}, preferred: tier}
		sees[fmt.Sprintf("n%d", i+1)] = p.cluster()
	}
	l := newLagging(true, sees)
	inOrder := func(names []string) []string { return names }
	l.live(60, inOrder)
	if more := l.live(60, inOrder); more > 0 {
		t.Errorf("%d moves in a minute, and another %d in the next", l.moves-more, more)
	}
}

// Whatever each of the speakers sees, the address comes to rest with one that
// answers; and once all see the truth, with one that may.
func TestSpeakersThatSeeDifferentClustersComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "nodes")
		draw := func(label string) picture {
			p := only(rapid.IntRange(0, n-1).Draw(t, label+" has"), n)
			p.preferred = rapid.SampledFrom([]string{"gold", "silver", "none"}).Draw(t, label+" prefers")
			for i := range n {
				p.endpoints[i] = p.endpoints[i] || rapid.IntRange(0, 3).Draw(t, label+" endpoint") == 0
				p.excluded[i] = rapid.IntRange(0, 5).Draw(t, label+" excluded") == 0
			}
			return p
		}
		sees := map[string]*snapshot.Cluster{}
		for i := range n {
			name := fmt.Sprintf("n%d", i+1)
			sees[name] = draw(name).cluster()
		}
		l := newLagging(rapid.Bool().Draw(t, "shown"), sees)
		shuffled := func(names []string) []string { return rapid.Permutation(names).Draw(t, "order") }
		l.live(60, shuffled)
		if more := l.live(30, shuffled); more > 0 {
			t.Fatalf("%d moves in a minute, and %d in the half after that", l.moves-more, more)
		}
		truth := draw("truth")
		for name := range sees {
			sees[name] = truth.cluster()
		}
		l.shown = true
		l.live(30, shuffled)
		more := l.live(10, shuffled)
		may := false
		for i := range n {
			may = may || truth.endpoints[i] && !truth.excluded[i]
		}
		holder := l.claims[netip.MustParseAddr(sharedAddress)].Node
		if more > 0 || may && (holder == "" || !l.answers[holder]) {
			t.Fatalf("with one truth: %d moves, held by %q, answered by %v", more, holder, l.answers)
		}
	})
}

// Flapping ends: the preferred node takes an address that it lost again and
// again, once it has been left alone for long enough.
func TestFlappingEnds(t *testing.T) {
	a, lost := netip.MustParseAddr(sharedAddress), Loss{}
	for range flapLimit {
		lost = lost.Again(epoch0())
	}
	c := only(0, 2).cluster().With(said("n2", 5))
	for after, doubtful := range map[time.Duration]bool{0: true, FlapReset - time.Second: true, FlapReset: false} {
		v := View{Alive: living("n1", "n2"), Claims: held("n2", 5), Facts: map[string]Facts{}, Lost: map[netip.Addr]Loss{a: lost}}
		if p := Compile(c, "n1", v, epoch0().Add(after), Options{}); len(p.L2.Take) != 1 || p.L2.Take[0].Doubtful != doubtful {
			t.Errorf("%v after the last loss: %+v, want doubtful %v", after, p.L2.Take, doubtful)
		}
	}
	if again := lost.Again(epoch0().Add(flapWindow + time.Second)); again.Times != 1 {
		t.Errorf("a loss much later counts as number %d", again.Times)
	}
}
