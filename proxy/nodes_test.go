package proxy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/names"
)

// A proxy watches its own Node, and all of them only while a name leads outside; until
// it knows them, nobody outside is asked.
func TestOnlyWhoLeavesTheClusterWatchesAllNodes(t *testing.T) {
	var asked []snapshot.Key
	calls := 0
	n := &nodes{own: "n1", watch: func(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
		if kind != snapshot.Node {
			t.Errorf("%v is asked for", kind)
		}
		asked = keys
		calls++
		return make(chan struct{})
	}}
	o := outside{nodes: n, wanted: map[snapshot.Key]string{}, names: names.New(names.Options{})}
	own, all := []snapshot.Key{{Name: "n1"}}, []snapshot.Key{{}}
	step := func(what string, do func(), want []snapshot.Key) {
		t.Helper()
		if do(); !slices.Equal(asked, want) {
			t.Errorf("%s: asks for %v, want %v", what, asked, want)
		}
	}
	step("at the start", func() { n.refer(false) }, own)
	step("a name", func() { o.want(snapshot.Key{Name: "a"}, "a.test") }, all)
	step("another", func() { o.want(snapshot.Key{Name: "b"}, "b.test") }, all)
	step("one goes", func() { o.want(snapshot.Key{Name: "a"}, "") }, all)
	step("the last goes", func() { o.want(snapshot.Key{Name: "b"}, "") }, own)
	step("a responder", func() { o.stapling = true; o.referNodes() }, all)
	if calls != 4 {
		t.Errorf("asked %d times, though it changed 4 times", calls)
	}

	c := snapshot.Unread().WithReach(snapshot.Node, snapshot.Key{Name: "n1"})
	at, other := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8")
	o.bar(c)
	if why := o.barred.why(other); !strings.Contains(why, "not known yet") {
		t.Errorf("before the nodes are known it may be asked: %q", why)
	}
	c = c.WithReach(snapshot.Node, snapshot.Key{}).With(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.String()}}},
	})
	if !o.bar(c) {
		t.Error("nothing has changed")
	}
	if why := o.barred.why(at); why == "" {
		t.Error("the address of a node may be asked")
	}
	if why := o.barred.why(other); why != "" {
		t.Errorf("nobody has it, and it is refused: %s", why)
	}
	// A translator of RFC 6052 would send that to the node.
	if why := o.barred.why(netip.MustParseAddr("64:ff9b::192.0.2.7")); why == "" {
		t.Error("the address of a node may be asked through NAT64")
	}
	if why := o.barred.why(netip.MustParseAddr("64:ff9b::192.0.2.8")); why != "" {
		t.Errorf("nobody has it behind NAT64, and it is refused: %s", why)
	}
}
