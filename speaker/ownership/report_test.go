package ownership

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// Whichever brings the better claim first, gossip or the API server, the
// Service hears that this node has stopped.
func TestWhoIsOutrankedByAStatusSaysSo(t *testing.T) {
	other := &v1alpha1.SpeakerStatus{}
	other.Name = "n2"
	other.Status.Announcing = []v1alpha1.Announcing{{Service: "default/s0", Address: "10.0.0.50", Protocol: "l2", Epoch: 3}}
	m := alone(t, other)
	a := netip.MustParseAddr("10.0.0.50")
	m.holdings.claims[a] = 2
	m.plan = &announce.Plan{L2: announce.L2{Answers: map[netip.Addr]announce.Answer{a: {Epoch: 2, Services: []snapshot.Key{{Namespace: "default", Name: "s0"}}}}}}
	m.compile()
	if m.holdings.has(a) {
		t.Error("the claim stands although a better one is known")
	}
	if m.holdings.losses[a].Times != 1 {
		t.Errorf("counted as %d losses", m.holdings.losses[a].Times)
	}
	want := "Service default/s0 Moved: node n1 stops announcing 10.0.0.50: node n2 does now"
	if !slices.Contains(told(m), want) {
		t.Errorf("told %q, want %q", told(m), want)
	}
}

// A Service hears who announces its address although nobody has to claim that: it
// shares it, or another that had it went in the same moment.
func TestWhoInheritsAnAddressHearsOfIt(t *testing.T) {
	m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
	now := began()
	step := func() (out []string) {
		now = now.Add(time.Second)
		m.Step(now, w)
		for _, line := range told(m) {
			if strings.Contains(line, " Announcing: ") {
				out = append(out, line)
			}
		}
		return out
	}
	if got := step(); len(got) > 0 {
		t.Errorf("told %q, of what was announced before this process began", got)
	}
	next := objects.Service("next", objects.VIP(0))
	slice := objects.Endpoints("n1", "n2")
	slice.Name, slice.Labels = "next", map[string]string{discoveryv1.LabelServiceName: "next"}
	w.Cluster = snapshot.Of(append(objects.Fleet(2), holder("n1", ownMAC, objects.VIP(0), 2), next, slice)...)
	if got, want := step(), []string{"Service default/next Announcing: node n1 announces 10.0.0.50 on eth0"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := step(); len(got) > 0 {
		t.Errorf("told again: %q", got)
	}
}

// A Service that comes to an address a while after the last one has gone hears of it,
// too: gossip remembers the claim on an address that is gone, and the SpeakerStatus
// of this node is written later than it stops.
func TestWhoComesToARememberedAddressHearsOfIt(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for name, tt := range map[string]struct {
		status []snapshot.Object
		claims map[netip.Addr]announce.Claim
	}{
		"by gossip":        {nil, map[netip.Addr]announce.Claim{a: {Epoch: 2, Node: "n1"}}},
		"by SpeakerStatus": {[]snapshot.Object{holder("n1", ownMAC, objects.VIP(0), 2)}, nil},
	} {
		m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
		all := w.Cluster
		now := began()
		m.Step(now, w)
		var gone []snapshot.Object
		for _, o := range objects.Fleet(2) {
			switch o.(type) {
			case *corev1.Service, *discoveryv1.EndpointSlice:
			default:
				gone = append(gone, o)
			}
		}
		w.Cluster = snapshot.Of(append(gone, tt.status...)...)
		if out := m.Step(now.Add(time.Second), w); len(out.LAN.Addresses) != 0 {
			t.Fatalf("%s: without a Service %v are announced", name, out.LAN.Addresses)
		}
		w.Cluster, w.Members.Claims = all, tt.claims
		if tt.claims != nil {
			w.Cluster = snapshot.Of(objects.Fleet(2)...)
		}
		m.Step(now.Add(2*time.Second), w)
		if got, want := told(m), "Service default/s0 Announcing: node n1 announces 10.0.0.50 on eth0"; !slices.Contains(got, want) {
			t.Errorf("%s: told %q, want %q", name, got, want)
		}
	}
}

// A stranger on an address of a Service is a problem of the node that heard it: nobody
// else knows.
func TestAStrangerIsToldToTheService(t *testing.T) {
	m := alone(t)
	a := netip.MustParseAddr("10.0.0.50")
	m.lan.postpone(a, announce.Refusal{MAC: "02:00:00:00:00:99"}, m.now.Add(time.Minute), false)
	m.compile()
	m.report()
	own := m.out.Report.Own
	if len(own) != 1 || !strings.HasPrefix(own[0].String(), "Service default/s0: AddressInUse: 10.0.0.50 belongs to this Service and a stranger (02:00:00:00:00:99)") {
		t.Errorf("found %q, want the stranger", own)
	}
}

// A question that fails says nothing about anybody: no stranger is accused.
func TestAFailedQuestionAccusesNobody(t *testing.T) {
	m := alone(t)
	m.compile()
	asked := map[netip.Addr]announce.Take{}
	for _, take := range m.plan.L2.Take {
		asked[take.Address] = take
	}
	if len(asked) == 0 {
		t.Fatal("nothing is to be asked")
	}
	(&Finding{Inquiry: &Inquiry{Takes: asked}, Err: errors.New("list routes of eth0: results may be incomplete or inconsistent")}).apply(m)
	m.compile()
	m.report()
	if own := m.out.Report.Own; len(told(m)) > 0 || len(own) > 0 {
		t.Error(told(m), own)
	}
	if len(m.lan.deferred) != len(asked) {
		t.Errorf("%d of %d are left alone for now", len(m.lan.deferred), len(asked))
	}
}

// A speaker that is restarted is missed by all others: none of them tells, or a
// rollout over a thousand nodes would bring a million Events.
func TestAShortAbsenceIsNotTold(t *testing.T) {
	other := &v1alpha1.SpeakerStatus{}
	other.Name = "n2"
	m := alone(t, other)
	began := m.now
	miss := func(at time.Time, names ...string) (told []snapshot.Problem) {
		m.world.Members = &Members{Settled: true, Missing: map[string]string{}}
		for _, name := range names {
			m.world.Members.Missing[name] = "it has left"
		}
		m.now = at
		m.absences.note(m.world.Members, at)
		m.refreshView()
		return m.ownProblems()
	}
	if told := miss(began, "n2"); len(told) > 0 || m.absences.wake(began) != absenceGrace {
		t.Errorf("told at once: %v; looks again in %v", told, m.absences.wake(began))
	}
	if told := miss(began.Add(absenceGrace-time.Second), "n2"); len(told) > 0 || m.absences.wake(began.Add(absenceGrace-time.Second)) != time.Second {
		t.Errorf("told early: %v", told)
	}
	if told := miss(began.Add(absenceGrace), "n2"); len(told) != 1 || told[0].Reason != "MemberMissing" {
		t.Errorf("told %v", told)
	}
	if told := miss(began.Add(2 * absenceGrace)); len(told) > 0 {
		t.Errorf("it is back, and yet: %v", told)
	}
	if told := miss(began.Add(2*absenceGrace), "n2"); len(told) > 0 {
		t.Errorf("told at once when it went again: %v", told)
	}
}

// A start is no problem, a key that is still missing is.
func TestAStartIsNotTold(t *testing.T) {
	m := alone(t)
	began := m.now
	wait := func(at time.Time, why string) []snapshot.Problem {
		m.world.Members = &Members{Waiting: why}
		m.now = at
		m.absences.note(m.world.Members, at)
		m.refreshView()
		return m.ownProblems()
	}
	if told := wait(began, "speaker is starting"); len(told) > 0 || m.absences.wake(began) != startGrace {
		t.Errorf("told at once: %v; looks again in %v", told, m.absences.wake(began))
	}
	if told := wait(began.Add(startGrace), "waiting for the members key"); len(told) != 1 || !strings.Contains(told[0].Message, "waiting for the members key") {
		t.Errorf("told %v", told)
	}
	if told := wait(began.Add(2*startGrace), ""); len(told) > 0 || m.absences.wake(began.Add(2*startGrace)) != time.Hour {
		t.Errorf("it works, and yet: %v", told)
	}
	if told := wait(began.Add(3*startGrace), "the members key is gone"); len(told) > 0 || m.absences.wake(began.Add(3*startGrace)) != startGrace {
		t.Errorf("told at once when it fails later: %v", told)
	}
}

// Of a large cluster a few speakers publish and tell who is missing: all others say
// the same after it as before, so that one death is not a write of every node.
func TestFewTellWhoIsMissing(t *testing.T) {
	const nodes, gone = 40, "n07"
	name := func(i int) string { return fmt.Sprintf("n%02d", i) }
	lost := &v1alpha1.SpeakerStatus{}
	lost.Name = gone
	known := true // to gossip, and not only doubted
	say := func(me string, missing map[string]string) (*v1alpha1.SpeakerStatusStatus, []snapshot.Problem) {
		m := alone(t, lost)
		m.opts.Node = me
		m.world.Members = &Members{Alive: map[string]struct{}{}, Settled: true, Missing: missing}
		for i := range nodes {
			if _, dead := missing[name(i)]; !dead || !known {
				m.world.Members.Alive[name(i)] = struct{}{}
			}
		}
		m.absences.note(m.world.Members, m.now.Add(-time.Hour))
		m.compile()
		return m.status(), m.ownProblems()
	}
	changed, told := 0, 0
	for i := range 2 * nodes {
		i, known = i%nodes, i < nodes
		if name(i) == gone {
			continue
		}
		before, _ := say(name(i), map[string]string{})
		after, problems := say(name(i), map[string]string{gone: "it does not answer"})
		if before.Members.Alive < 1 || after.Members.Alive < 1 {
			t.Errorf("%s seems not to know its own interfaces: %+v", name(i), after.Members)
		}
		if !reflect.DeepEqual(before, after) {
			changed++
			if len(after.Members.NotAlive) != 1 || after.Members.Alive != nodes-1 {
				t.Errorf("%s says %+v", name(i), after.Members)
			}
		}
		told += len(problems)
	}
	if changed != 2*reporters || told != 2*reporters {
		t.Errorf("%d statuses change and %d nodes tell, want %d of each, twice", changed, told, reporters)
	}
	// One of those that tell has died: the next one does, also as long as it is only doubted.
	for _, known = range []bool{true, false} {
		if says, _ := say(name(reporters), map[string]string{name(0): "it does not answer"}); says.Members.Alive != nodes-1 || len(says.Members.NotAlive) != 1 {
			t.Errorf("nobody stands in for who is missing: %+v", says.Members)
		}
	}
}

// A few addresses are told to their Services; of many that one node had, one Event about
// the taker tells.
func TestManyAddressesAreToldAtOnce(t *testing.T) {
	for _, row := range []struct {
		from  string
		fleet int
		count int
		about string
		want  int
	}{
		{"n9", smallFleet + 1, fewAtOnce, "Service", fewAtOnce}, {"n9", smallFleet + 1, fewAtOnce + 1, "Node", 1},
		{"n9", smallFleet, fewAtOnce + 1, "Service", fewAtOnce + 1}, {"", smallFleet + 1, fewAtOnce + 1, "Service", fewAtOnce + 1},
	} {
		m := alone(t)
		for i := range row.fleet {
			m.world.Members.Alive[fmt.Sprint("n", i)] = struct{}{}
		}
		for i := range row.count {
			take := announce.Take{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), From: row.from, Cause: announce.Died}
			take.Epoch, take.Services = 2, []snapshot.Key{{Namespace: "default", Name: fmt.Sprint("s", i)}}
			m.grant(take)
		}
		m.tellTaken()
		events := m.out.Report.Events
		if len(events) != row.want || events[0].About.Kind != row.about || !strings.Contains(events[len(events)-1].Message, fmt.Sprintf("10.0.0.%d", row.count-1)) {
			t.Errorf("%d addresses of node %q: %v", row.count, row.from, events)
		}
		if m.taken != nil {
			t.Error("they are told again")
		}
	}
}

// TestWhatOnlyThisNodeKnows: each fault of a node and its LANs is told by itself, once,
// with who is to mend what.
func TestWhatOnlyThisNodeKnows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*World)
		want   string // the beginning of the only problem; "": there is none
	}{
		"nothing":      {func(*World) {}, ""},
		"a mute one":   {func(w *World) { w.Link.Mute = "it may not open packet sockets" }, "SpeakerWaiting: this node announces nothing on its LANs: it may not open packet sockets"},
		"a hazard":     {func(w *World) { w.Link.Hazards = []string{"arp_ignore is 0"} }, "KernelAnswers: arp_ignore is 0"},
		"a failure":    {func(w *World) { w.Link.Failures = []string{"eth0: no buffer space"} }, "InterfaceFails: eth0: no buffer space"},
		"a deaf one":   {func(w *World) { w.Link.Interfaces[0].Deaf = true }, "InterfaceDeaf: interface eth0 is up, and no speaker, gateway or neighbour"},
		"and it is up": {func(w *World) { w.Link.Interfaces[0].Deaf, w.Link.Interfaces[0].Up = true, false }, ""},
		"an unheard address": {func(w *World) {
			w.Link.Unheard = []v1alpha1.UnheardAddress{{Address: "10.0.0.51", Node: "n2", Interface: "eth0"}}
		}, announce.ReasonUnheard + ": node n2 announces 10.0.0.51, and this node, on the same LAN by eth0, does not hear it answer"},
		"a late kube-proxy": {func(w *World) { w.Proxy.Late = "it answers 503" }, "KubeProxyBehind: this node takes no new address where another can, until its kube-proxy has written its rules: it answers 503"},
	} {
		t.Run(name, func(t *testing.T) {
			m, w := together()
			c.change(&w)
			r := m.Step(began(), w).Report
			switch {
			case c.want == "" && len(r.Own) > 0:
				t.Errorf("told %q", r.Own)
			case c.want != "" && (len(r.Own) != 1 || !strings.HasPrefix(r.Own[0].String(), "Node n1: "+c.want)):
				t.Errorf("told %q, wanted %q", r.Own, c.want)
			case !slices.Equal(r.Own, r.Problems[len(r.Problems)-len(r.Own):]):
				t.Errorf("the node tells %q, and all see %q", r.Own, r.Problems)
			}
		})
	}
}

// TestMuteNodesSayWhy: what the process before announced is in the status until it is
// replaced by this; before the objects are known nothing is written over it.
func TestMuteNodesSayWhy(t *testing.T) {
	for _, synced := range []bool{false, true} {
		m, w := together()
		w.Synced, w.Link.Mute = synced, "it may not open packet sockets"
		out := m.Step(began(), w)
		if status := out.Report.Status; (status != nil) != synced {
			t.Errorf("synced %v: %+v", synced, status)
		} else if synced && (len(status.Announcing) > 0 || status.Members.Expected != 2 || !slices.Equal(status.Members.NotAlive, []string{"n1: it may not open packet sockets"})) {
			t.Errorf("%+v", status)
		}
		if out.Waiting != w.Link.Mute {
			t.Errorf("it waits for %q", out.Waiting)
		}
	}
}

// TestWhoSharesAnAddressIsNotToldAgain: only who comes to it hears of it.
func TestWhoSharesAnAddressIsNotToldAgain(t *testing.T) {
	sharer := func(name string, port int32) *corev1.Service {
		svc := objects.Service(name, objects.VIP(0))
		svc.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: "k"}
		svc.Spec.Ports[0].Port = port
		return svc
	}
	m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
	w.Cluster = w.Cluster.With(sharer("s0", 80))
	m.Step(began(), w)
	w.Cluster = w.Cluster.With(sharer("next", 81))
	m.Step(began().Add(time.Second), w)
	if answers := m.plan.L2.Answers[netip.MustParseAddr(objects.VIP(0))]; len(answers.Services) != 2 {
		t.Fatalf("it is announced for %v", answers.Services)
	}
	if got, want := told(m), []string{"Service default/next Announcing: node n1 announces 10.0.0.50 on eth0"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
