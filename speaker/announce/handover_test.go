package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// endpointsOf is the slice of a Service with one ready endpoint, on this node.
func endpointsOf(service string, family discoveryv1.AddressType, node string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%s-%s", service, strings.ToLower(string(family)), node),
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: family, Ports: offered(), Endpoints: []discoveryv1.Endpoint{{NodeName: &node}},
	}
}

// linked are the facts of a node with one interface.
func linked(prefix string, up bool) Facts {
	return Facts{Interfaces: []Interface{{Name: "eth0", MAC: "02:00:00:00:00:01", Prefixes: []netip.Prefix{netip.MustParsePrefix(prefix)}, Up: up}}}
}

// The endpoint of a Service of policy Local has gone from n1, which holds the
// address, to n2. Until n2 has taken it, n1 goes on answering, though not for
// longer than the grace, since its clients are not served.
func TestAHandOverEnds(t *testing.T) {
	a := netip.MustParseAddr(sharedAddress)
	local := sharer("a", 80)
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	c := snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), local, endpointsOf("a", discoveryv1.AddressTypeIPv4, "n2"))
	view := func(up, leaves bool, handing time.Duration) View {
		v := View{Alive: living("n1", "n2"), Claims: held("n1", 7), Facts: map[string]Facts{"n1": linked("10.0.0.1/24", up), "n2": linked("10.0.0.2/24", true)}}
		facts := v.Facts["n1"]
		facts.Leaving = leaves
		v.Facts["n1"] = facts
		if handing >= 0 {
			v.HandingOver = map[netip.Addr]time.Time{a: epoch0().Add(-handing)}
		}
		return v
	}
	for _, step := range []struct {
		name    string
		view    View
		answers bool
		wake    time.Duration
	}{
		{"at once", view(true, false, -1), true, handOverGrace},
		{"after a while", view(true, false, handOverGrace-time.Second), true, time.Second},
		{"at the end", view(true, false, handOverGrace), false, 0},
		{"without a link", view(false, false, -1), false, 0},
		{"while its speaker stops, too", view(true, true, handOverGrace), false, 0},
	} {
		p := Compile(c, "n1", step.view, epoch0(), Options{})
		answer, answers := p.L2.Answers[a]
		if answers != step.answers || answers && (answer.HandOver != "n2" || answer.Epoch != 7 || !slices.Equal(answer.Interfaces, []string{"eth0"})) {
			t.Errorf("%s: answers %v: %+v", step.name, answers, answer)
		}
		if wake := p.Wake(epoch0()); wake != step.wake {
			t.Errorf("%s: to be looked at again in %v, want %v", step.name, wake, step.wake)
		}
		if to := p.L2.HandsOver[a]; to != (Claim{8, "n2"}) {
			t.Errorf("%s: hands over to %+v", step.name, to)
		}
		if owner := p.L2.Owners.Of(a); owner != "n2" || len(p.L2.Take) > 0 {
			t.Errorf("%s: owned by %s, taken: %v", step.name, owner, p.L2.Take)
		}
	}
	// Who merely leaves serves as well as ever, and answers for as long as it takes.
	both := c.With(endpointsOf("a", discoveryv1.AddressTypeIPv4, "n1"))
	p := Compile(both, "n1", view(true, true, time.Hour), epoch0(), Options{})
	if p.L2.Answers[a].HandOver != "n2" || len(p.L2.HandsOver) > 0 || p.Wake(epoch0()) != 0 {
		t.Errorf("leaving for an hour: %+v, to be looked at again in %v", p.L2.Answers[a], p.Wake(epoch0()))
	}
	if p := (&Plan{NextWake: epoch0()}); p.Wake(epoch0().Add(time.Second)) <= 0 {
		t.Error("what is overdue is never looked at")
	}
}

// Who has an address for which another is preferred by now answers for it without a limit, and
// names the claim that is to follow.
func TestWhoIsOutpreferredNamesTheNext(t *testing.T) {
	a := netip.MustParseAddr(sharedAddress)
	n1, n2 := readyNode("n1", ""), readyNode("n2", "")
	n2.Labels = map[string]string{"tier": "gold"}
	ad := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	ad.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 10, Preference: metav1.LabelSelector{MatchLabels: n2.Labels}}}
	c := snapshot.Of(n1, n2, lanPool("10.0.0.40-10.0.0.60"), ad, sharer("a", 80), said("n1", 7))
	p := Compile(c, "n1", View{Alive: living("n1", "n2"), Claims: held("n1", 7), HandingOver: map[netip.Addr]time.Time{a: epoch0().Add(-time.Hour)}}, epoch0(), Options{})
	if answer, answers := p.L2.Answers[a]; !answers || answer.HandOver != "" || p.L2.Owners.Of(a) != "n2" || p.L2.HandsOver[a] != (Claim{8, "n2"}) {
		t.Errorf("owned by %s, answers %v: %+v, hands over to %+v", p.L2.Owners.Of(a), answers, answer, p.L2.HandsOver[a])
	}
}

// Each family of a Service of policy Local is served where its endpoints are.
func TestEachFamilyFollowsItsEndpoints(t *testing.T) {
	six := netip.MustParseAddr("2001:db8::50")
	local := sharer("a", 80)
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	local.Status.LoadBalancer.Ingress = append(local.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: six.String()})
	pool := lanPool("10.0.0.40-10.0.0.60")
	pool.Spec.Addresses = append(pool.Spec.Addresses, "2001:db8::40-2001:db8::60")
	c := snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), pool, local,
		endpointsOf("a", discoveryv1.AddressTypeIPv4, "n1"), endpointsOf("a", discoveryv1.AddressTypeIPv6, "n2"))
	p := Compile(c, "n1", View{Alive: living("n1", "n2"), Facts: map[string]Facts{}}, epoch0(), Options{})
	if four := p.L2.Owners.Of(netip.MustParseAddr(sharedAddress)); four != "n1" || p.L2.Owners.Of(six) != "n2" {
		t.Errorf("IPv4 belongs to %q, IPv6 to %q; want n1 and n2", four, p.L2.Owners.Of(six))
	}
}

// A SpeakerStatus lists a thousand addresses, in order, and counts all.
func TestAStatusIsBounded(t *testing.T) {
	const many = maxAnnouncing + 1
	c, view := crowd(many)
	view.Claims, view.Facts = map[netip.Addr]Claim{}, map[string]Facts{"n0": linked("10.1.255.1/16", true)}
	for i := range many {
		view.Claims[addrOf(i)] = Claim{5, "n0"}
	}
	s := Compile(c, "n0", view, epoch0(), Options{}).Status
	if len(s.Announcing) != maxAnnouncing || s.AnnouncingCount != many || s.Leaving {
		t.Errorf("%d of %d are listed, leaving: %v", len(s.Announcing), s.AnnouncingCount, s.Leaving)
	}
	want := v1alpha1.Announcing{Service: "default/web", Address: "10.1.0.0", Protocol: "l2", Epoch: 5, Interfaces: []string{"eth0"}}
	if got := s.Announcing[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the first is %+v, want %+v", got, want)
	}
	if !slices.IsSortedFunc(s.Announcing, func(a, b v1alpha1.Announcing) int { return strings.Compare(a.Address, b.Address) }) {
		t.Error("they are in no order: each plan would be written anew")
	}
	if len(s.Interfaces) != 1 || s.Interfaces[0].Name != "eth0" || !s.Interfaces[0].Up {
		t.Errorf("interfaces %+v", s.Interfaces)
	}
	for _, leaves := range []Facts{{Leaving: true}, {Drained: true}} {
		leaves.Interfaces = view.Facts["n0"].Interfaces
		view.Facts["n0"] = leaves
		if !Compile(c, "n0", view, epoch0(), Options{}).Status.Leaving {
			t.Errorf("%+v, and its status does not say so", leaves)
		}
	}
}

// What the LAN has told this node it tells the Service, and nobody else does.
func TestStrangersAreHeardOf(t *testing.T) {
	a := netip.MustParseAddr(sharedAddress)
	c := snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), sharer("a", 80), sharer("b", 80))
	for _, step := range []struct {
		name    string
		holder  string
		refused Refusal
		owner   string
		heard   string // what the Service is told; "": nothing
		answers bool
	}{
		{"one was there first", "", Refusal{MAC: "02:00:00:00:00:99"}, "n1", "and a stranger (02:00:00:00:00:99) answers for it", false},
		{"one came later", "n1", Refusal{MAC: "02:00:00:00:00:99"}, "n1", "but a stranger (02:00:00:00:00:99) answers for it too", true},
		{"a member whom gossip calls dead", "n2", Refusal{Node: "n2", MAC: "02:00:00:00:00:02"}, "n2", "", false},
	} {
		v := View{Alive: living("n1"), Facts: map[string]Facts{}, Refused: map[netip.Addr]Refusal{a: step.refused}}
		if step.holder != "" {
			v.Claims = held(step.holder, 1)
		}
		p := Compile(c, "n1", v, epoch0(), Options{})
		if _, answers := p.L2.Answers[a]; answers != step.answers || len(p.L2.Take) > 0 || (len(p.L2.Barred) == 0) != answers || p.L2.Owners.Of(a) != step.owner {
			t.Errorf("%s: answers %v, takes %v, is barred %v; owned by %q", step.name, answers, p.L2.Take, p.L2.Barred, p.L2.Owners.Of(a))
		}
		heard := p.LocalProblems()
		if (len(heard) > 0) != (step.heard != "") || len(heard) > 0 && (heard[0].Object.Key.Name != "a" || !strings.Contains(heard[0].Message, step.heard)) {
			t.Errorf("%s: heard %v, want %q", step.name, heard, step.heard)
		}
		if len(p.Problems) <= len(heard) { // the Service that may not share is no news from the LAN
			t.Errorf("%s: problems %v", step.name, p.Problems)
		}
	}
}

// A node's gossip may say why it leaves without its interfaces, which then stand
// in its SpeakerStatus; what that says of leaving is of yesterday.
func TestGossipAndStatusMakeOneFact(t *testing.T) {
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	s.Status.Leaving = true
	s.Status.Interfaces = statusInterfaces(linked("10.0.0.1/24", true).Interfaces)
	k := newCompiler(snapshot.Of(s), "", View{Facts: map[string]Facts{}}, epoch0(), Options{})
	if f, known := k.factsOf("n1"); !known || !f.Leaving || len(f.Interfaces) != 1 {
		t.Errorf("before it is heard: %+v", f)
	}
	k.view.Facts["n1"] = Facts{Drained: true, Behind: true}
	if f, known := k.factsOf("n1"); !known || f.Leaving || !f.Drained || !f.Behind || len(f.Interfaces) != 1 {
		t.Errorf("heard of without interfaces: %+v", f)
	}
	k.view.Facts["n1"] = linked("10.0.0.9/24", false)
	if f, _ := k.factsOf("n1"); f.Leaving || f.Interfaces[0].Up {
		t.Errorf("heard of: %+v", f)
	}
	if f, known := k.factsOf("n2"); known || len(f.Interfaces) > 0 {
		t.Errorf("a node that nobody has heard of: %+v", f)
	}
}

// Nobody announces the address of a node, whatever a status says, nor knows a
// node by no MAC.
func TestAddressesOfNodesAreLeftAlone(t *testing.T) {
	owner := readyNode("n2", "")
	owner.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n2"}, {Type: corev1.NodeInternalIP, Address: sharedAddress}}
	c := snapshot.Of(readyNode("n1", ""), owner, lanPool("10.0.0.40-10.0.0.60"), sharer("a", 80))
	p := Compile(c, "n1", View{Alive: living("n1", "n2"), Facts: map[string]Facts{}}, epoch0(), Options{})
	if p.L2.Owners.Len() > 0 || len(p.Problems) != 1 || !strings.Contains(p.Problems[0].Message, "which belongs to node n2") {
		t.Errorf("owners %v, problems %v", p.L2.Owners, p.Problems)
	}
	v := View{Facts: map[string]Facts{"n1": linked("10.0.0.1/24", true), "n3": {Interfaces: []Interface{{Name: "tun0"}}}}}
	if macs := MACs(c, v); len(macs) != 1 || macs["02:00:00:00:00:01"] != "n1" {
		t.Errorf("MACs %v", macs)
	}
}
