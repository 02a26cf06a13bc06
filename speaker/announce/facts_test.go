package announce

import (
	"net/netip"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// What a node says about its interfaces reads back from its SpeakerStatus:
// own addresses, routes and gateways each as what they are.
func TestFactsSurviveTheStatus(t *testing.T) {
	want := []Interface{{
		Name: "eth0", MAC: "02:00:00:00:00:01", Up: true,
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("2001:db8::1/64")},
		Routes:   []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		Gateways: []netip.Addr{netip.MustParseAddr("10.0.0.254"), netip.MustParseAddr("fe80::1")},
	}, {
		Name:     "eth1",
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/31"), netip.MustParsePrefix("10.2.0.1/32")},
		Routes:   []netip.Prefix{netip.MustParsePrefix("10.3.0.1/32"), netip.MustParsePrefix("2001:db8::5/128")},
	}, {Name: "eth2", Routes: []netip.Prefix{netip.MustParsePrefix("10.4.0.1/32")}}, {Name: "eth3"}}
	got := factsFromStatus(v1alpha1.SpeakerStatusStatus{Interfaces: statusInterfaces(want), Leaving: true})
	if !got.Leaving || !reflect.DeepEqual(got.Interfaces, want) {
		t.Errorf("got %+v, wanted %+v", got, want)
	}
}

// A speaker of an older release tells routes from its own addresses by nothing: what has
// no host bits is a route, unless it is a single address.
func TestFactsOfAnOlderSpeaker(t *testing.T) {
	got := factsFromStatus(v1alpha1.SpeakerStatusStatus{Interfaces: []v1alpha1.SpeakerInterface{{
		Name: "eth0", Prefixes: []string{"10.0.0.1/24", "10.2.0.1/32", "10.1.0.0/16", "nonsense"},
	}}}).Interfaces
	want := []Interface{{
		Name:     "eth0",
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.2.0.1/32")},
		Routes:   []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, wanted %+v", got, want)
	}
}

// A node that has no interface that could carry an address, as one whose only link
// is a tunnel, is known to have none, by gossip or by its SpeakerStatus. One that
// has not told yet is not.
func TestNoInterfaceIsKnown(t *testing.T) {
	status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	none, nothing := Facts{Interfaces: []Interface{}}, Facts{Leaving: true}
	for _, c := range []struct {
		name  string
		said  *Facts
		alive int32 // says the status, which only who knows its interfaces writes
		known bool
	}{
		{name: "it said nothing"},
		{name: "it said that it leaves", said: &nothing},
		{name: "it said that it has none", said: &none, known: true},
		{name: "its status lists none", alive: 1, known: true},
		{name: "its status lists none, and it said that it leaves", said: &nothing, alive: 1, known: true},
	} {
		status.Status.Members.Alive = c.alive
		v := View{Alive: living("n1", "n2"), Facts: map[string]Facts{}}
		if c.said != nil {
			v.Facts["n1"] = *c.said
		}
		p := Compile(snapshot.Of(readyNode("n1", ""), lanPool("10.0.0.40-10.0.0.60"), sharer("a", 80), status), "n1", v, epoch0(), Options{})
		if owned := len(p.L2.Take) > 0; owned == c.known {
			t.Errorf("%s: takes %v, problems %v", c.name, p.L2.Take, p.Problems)
		}
	}
}

// A node was renamed, and what it said under its old name is not forgotten yet:
// its MAC is that of the node that exists. Of two that exist it is always the
// same one's.
func TestAMACBelongsToTheNodeThatExists(t *testing.T) {
	mac := []Interface{{Name: "eth0", MAC: "02:00:00:00:00:01"}}
	c := snapshot.Of(readyNode("new", ""), readyNode("twin", ""))
	for names, want := range map[[2]string]string{{"old", "new"}: "new", {"older", "old"}: "old", {"twin", "new"}: "new"} {
		for range 20 {
			view := View{Facts: map[string]Facts{names[0]: {Interfaces: mac}, names[1]: {Interfaces: mac}}}
			if got := MACs(c, view); len(got) != 1 || got[mac[0].MAC] != want {
				t.Fatalf("said by %v, it belongs to %v, want %s", names, got, want)
			}
		}
	}
}
