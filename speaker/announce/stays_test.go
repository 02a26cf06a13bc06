package announce

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

const sharedAddress = "10.0.0.50"

// readyNode is a node of a tier, without interfaces that would count against it.
func readyNode(name, tier string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// sharer is a Service on sharedAddress that lets others sit there, too.
func sharer(name string, port int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{"app": name}, Annotations: map[string]string{"quayside.io/allow-shared-ip": "x"}}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.Ports = []corev1.ServicePort{{Port: port}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: sharedAddress}}
	return s
}

// said is what the speaker of a node has published.
func said(node string, epoch int64) *v1alpha1.SpeakerStatus {
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Status.Announcing = []v1alpha1.Announcing{{Service: "default/a", Address: sharedAddress, Protocol: "l2", Epoch: epoch}}
	return s
}

func held(by string, epoch int64) map[netip.Addr]Claim {
	return map[netip.Addr]Claim{netip.MustParseAddr(sharedAddress): {epoch, by}}
}

func living(names ...string) map[string]struct{} {
	alive := map[string]struct{}{}
	for _, n := range names {
		alive[n] = struct{}{}
	}
	return alive
}

// A second Service on an address is no change of the preferences it was placed
// by, though the preferred node has returned meanwhile.
func TestWhoSharesAnAddressDoesNotMoveIt(t *testing.T) {
	preferred := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	preferred.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 10, Preference: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}}
	v := View{Alive: living("n1", "n2"), Claims: held("n2", 3), Facts: map[string]Facts{}}
	objects := []snapshot.Object{readyNode("n1", "gold"), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), preferred, sharer("a", 80)}
	objects = append(objects, &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n2"},
		Status: Compile(snapshot.Of(objects...), "n2", v, epoch0(), Options{}).Status})
	for _, more := range [][]snapshot.Object{nil, {sharer("b", 443)}} {
		if p := Compile(snapshot.Of(append(objects, more...)...), "n1", v, epoch0(), Options{}); len(p.L2.Take) > 0 {
			t.Errorf("with %d more Services n1 takes %+v", len(more), p.L2.Take)
		}
	}
}

// No node serves both Services of an address, and its holder is NotReady: that
// bars new claims only.
func TestNotReadyMovesNoSharedAddress(t *testing.T) {
	only := func(app, tier string) *v1alpha1.L2Advertisement {
		a := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: app}}
		a.Spec.ServiceSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"app": app}}}
		a.Spec.NodeSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": tier}}}
		return a
	}
	holder := readyNode("n1", "gold")
	holder.Status.Conditions[0].Status = corev1.ConditionUnknown
	c := snapshot.Of(holder, readyNode("n2", "gold"), readyNode("n3", "silver"), lanPool("10.0.0.40-10.0.0.60"),
		sharer("a", 80), sharer("b", 443), only("a", "gold"), only("b", "silver"))
	for _, me := range []string{"n2", "n3"} {
		v := View{Alive: living("n1", "n2", "n3"), Claims: held("n1", 1), Facts: map[string]Facts{}}
		if p := Compile(c, me, v, epoch0(), Options{}); len(p.L2.Take) > 0 {
			t.Errorf("%s takes %+v", me, p.L2.Take)
		}
	}
}

// An epoch that nothing can follow is not believed, or the address would be
// lost when its node is; nor is one that no claim can have. What is taken after
// the highest that is believed, others believe a moment later.
func TestOddEpochsAreNotBelieved(t *testing.T) {
	now := epoch0()
	for epoch, want := range map[int64]int64{
		-1 << 63: 1, -1: 1, 0: 1, 1: 2, MaxCount(now): MaxCount(now) + 1, MaxCount(now) + 1: 1, 1<<63 - 1: 1,
	} {
		c := snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), sharer("a", 80), said("n2", epoch))
		p := Compile(c, "n1", View{Alive: living("n1"), Facts: map[string]Facts{}}, now, Options{})
		if len(p.L2.Take) != 1 || p.L2.Take[0].Epoch != want || want > MaxCount(now.Add(time.Microsecond)) {
			t.Errorf("after epoch %d: %+v, want epoch %d", epoch, p.L2.Take, want)
		}
	}
}
