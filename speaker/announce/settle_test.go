package announce

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// localOn is a Service of policy Local on sharedAddress, with what its
// endpoints on the nodes say: ready, ending (and still serving) or ended.
func localOn(endpoints map[string]string) *snapshot.Cluster {
	svc := sharer("a", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "a"}}, AddressType: discoveryv1.AddressTypeIPv4, Ports: offered()}
	for node, says := range endpoints {
		ready, serving, terminating := says == "ready", says != "ended", says != "ready"
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}})
	}
	return snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), svc, slice)
}

// A rollout: the new pod on n2 gets ready, and the old one on n1 ends. n2 leaves
// the address to n1 until its own kube-proxy has had time to write its rules,
// but only as long as n1 serves it.
func TestARolloutWaitsForRules(t *testing.T) {
	a := netip.MustParseAddr(sharedAddress)
	start := epoch0()
	view := func(since map[netip.Addr]time.Time) View {
		return View{Alive: living("n1", "n2"), Claims: held("n1", 3), Facts: map[string]Facts{}, Since: since}
	}
	before := Compile(localOn(map[string]string{"n1": "ready"}), "n2", view(nil), start, Options{})
	rolling := localOn(map[string]string{"n1": "ending", "n2": "ready"})
	at := start.Add(time.Minute)

	young := Compile(rolling, "n2", view(before.L2.Since), at, Options{})
	if len(young.L2.Take) > 0 || !young.NextWake.Equal(at.Add(Settling)) {
		t.Errorf("an endpoint is new: n2 takes %+v and wakes at %v", young.L2.Take, young.NextWake)
	}
	if p := Compile(rolling, "n2", view(young.L2.Since), at.Add(Settling-1), Options{}); len(p.L2.Take) > 0 {
		t.Errorf("a moment too early n2 takes %+v", p.L2.Take)
	}
	if p := Compile(rolling, "n2", view(young.L2.Since), at.Add(Settling), Options{}); len(p.L2.Take) != 1 || p.L2.Take[0].Cause != Ineligible {
		t.Errorf("n2 is settled and takes %+v", p.L2.Take)
	}
	if p := Compile(rolling, "n1", view(before.L2.Since), at, Options{}); p.L2.Answers[a].HandOver != "n2" {
		t.Errorf("meanwhile n1 answers %+v", p.L2.Answers)
	}

	down := map[string]Facts{"n1": {Interfaces: []Interface{{Name: "eth0", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}}}
	stops := map[string]Facts{"n1": {Leaving: true}}
	both := localOn(map[string]string{"n1": "ready", "n2": "ready"})
	for name, c := range map[string]struct {
		cluster *snapshot.Cluster
		alter   func(*View)
		waits   bool
	}{
		"the old pod has ended":             {localOn(map[string]string{"n1": "ended", "n2": "ready"}), func(*View) {}, false},
		"the link of n1 is down":            {rolling, func(v *View) { v.Facts = down }, false},
		"n1 is dead":                        {rolling, func(v *View) { v.Alive = living("n2") }, false},
		"the speaker has just started":      {rolling, func(v *View) { v.Since = nil }, false},
		"the speaker of n1 stops":           {both, func(v *View) { v.Facts = stops }, true},
		"nobody has had the address so far": {rolling, func(v *View) { v.Claims = nil }, false},
	} {
		v := view(before.L2.Since)
		c.alter(&v)
		if p := Compile(c.cluster, "n2", v, at, Options{}); len(p.L2.Take) == 1 == c.waits {
			t.Errorf("%s: n2 takes %+v", name, p.L2.Take)
		}
	}
}

// The kube-proxy of n2 takes longer than most: it says that it has no endpoint, so n2 leaves
// the address to n1 for as long as that serves it, and tells somebody in the end.
func TestASlowKubeProxyIsWaitedFor(t *testing.T) {
	check := netip.MustParseAddrPort("10.9.0.2:30000")
	c := func(endpoints map[string]string) *snapshot.Cluster {
		svc := sharer("a", 80)
		svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 30000
		n2 := readyNode("n2", "")
		n2.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.9.0.2"}}
		return localOn(endpoints).With(svc).With(n2)
	}
	rolling, ended := c(map[string]string{"n1": "ending", "n2": "ready"}), c(map[string]string{"n1": "ended", "n2": "ready"})
	start := epoch0()
	view := View{Alive: living("n1", "n2"), Claims: held("n1", 3), Facts: map[string]Facts{}}
	view.Since = Compile(c(map[string]string{"n1": "ready"}), "n2", view, start, Options{}).L2.Since
	at := start.Add(time.Minute)
	young := Compile(rolling, "n2", view, at, Options{})
	if _, asked := young.Checks[check]; !asked {
		t.Errorf("the endpoint is new, and kube-proxy is asked at %v", young.Checks)
	}
	view.Since = young.L2.Since
	for _, s := range []struct {
		name    string
		cluster *snapshot.Cluster
		after   time.Duration
		none    bool
		take    int
		told    bool
	}{
		{"it says none", rolling, Settling, true, 0, false},
		{"it does not any more", rolling, Settling, false, 1, false},
		{"it says none for long", rolling, slow + time.Millisecond, true, 0, true},
		{"and n1 has ended", ended, Settling, true, 1, false},
	} {
		v := view
		if s.none {
			v.Unserved = map[netip.AddrPort]time.Time{check: at}
		}
		p := Compile(s.cluster, "n2", v, at.Add(s.after), Options{})
		if len(p.L2.Take) != s.take || len(p.LocalProblems()) > 0 != s.told {
			t.Errorf("%s: n2 takes %+v, and tells %v", s.name, p.L2.Take, p.LocalProblems())
		}
		if _, asked := p.Checks[check]; s.none && s.take == 0 && (!asked || p.NextWake.IsZero()) {
			t.Errorf("%s: asked at %v, looks again at %v", s.name, p.Checks, p.NextWake)
		}
	}
}

// TestRoutesFollowARollout: routers are told of a new endpoint when the kube-proxy of its node
// has had time for it, and of the old one's end when that of the other node has, both at the
// time at which the plan says to look again.
func TestRoutesFollowARollout(t *testing.T) {
	with := func(endpoints map[string]string) *snapshot.Cluster {
		return localOn(endpoints).With(&v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}).
			With(&v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "router"}, Spec: v1alpha1.BGPPeerSpec{MyASN: 64500, ASN: 65001, Address: "10.0.0.254"}})
	}
	for node, c := range map[string]struct {
		rolling   *snapshot.Cluster
		announces bool          // before the rollout, and from its beginning
		settles   time.Duration // until then, when it does the contrary
	}{
		"n1": {with(map[string]string{"n1": "ending", "n2": "ready"}), true, Settling + handOverTime},
		"n2": {with(map[string]string{"n1": "ready", "n2": "ready"}), false, Settling},
	} {
		view := View{Alive: living("n1", "n2"), Facts: map[string]Facts{}}
		now := epoch0()
		look := func(c *snapshot.Cluster) (announces bool, wake time.Time) {
			p := Compile(c, node, view, now, Options{})
			view.Since, view.Others = p.L2.Since, p.BGP.Others
			return len(p.BGP.Sessions) == 1 && len(p.BGP.Sessions[0].Routes) > 0, p.NextWake
		}
		if announces, wake := look(with(map[string]string{"n1": "ready"})); announces != c.announces || !wake.IsZero() {
			t.Errorf("%s before: announces %v, looks again at %v", node, announces, wake)
		}
		now = now.Add(time.Minute)
		announces, wake := look(c.rolling)
		if announces != c.announces || wake.Sub(now) != c.settles {
			t.Errorf("%s when it begins: announces %v, looks again in %v", node, announces, wake.Sub(now))
		}
		now = wake.Add(-1)
		if announces, again := look(c.rolling); announces != c.announces || !again.Equal(wake) {
			t.Errorf("%s a moment before: announces %v, looks again at %v", node, announces, again)
		}
		now = wake
		if announces, again := look(c.rolling); announces == c.announces || !again.IsZero() {
			t.Errorf("%s then: announces %v, looks again at %v", node, announces, again)
		}
	}
}

// TestWakesForTheFirst of all that a plan waits for.
func TestWakesForTheFirst(t *testing.T) {
	k := &compiler{plan: &Plan{}}
	for _, after := range []time.Duration{3, 1, 2} {
		k.wakeAt(epoch0().Add(after))
	}
	if got := k.plan.NextWake.Sub(epoch0()); got != 1 {
		t.Errorf("it looks again in %v", got)
	}
}
