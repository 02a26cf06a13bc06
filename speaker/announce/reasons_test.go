package announce

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"quayside.io/cluster/snapshot"
)

// TestReasonsNameFewNodes, and say so, also where there is none.
func TestReasonsNameFewNodes(t *testing.T) {
	for nodes, want := range map[int]string{
		0:              "the cluster has no Node; what helps: a Node",
		1:              "n0: ",
		maxReasons:     fmt.Sprintf("n%d: ", maxReasons-1),
		maxReasons + 1: "; and 1 more nodes; what helps: ",
		maxReasons + 5: "; and 5 more nodes; what helps: ",
	} {
		objects := []snapshot.Object{lanPool("10.0.0.0/24"), balancer("web", netip.MustParseAddr("10.0.0.5"))}
		for i := range nodes {
			objects = append(objects, readyNode(fmt.Sprintf("n%d", i), ""))
		}
		p := Compile(snapshot.Of(objects...), "n0", View{Alive: map[string]struct{}{}}, epoch0(), Options{})
		if len(p.Problems) != 1 || p.Problems[0].Reason != "NoEligibleNode" || !strings.Contains(p.Problems[0].Message, want) {
			t.Errorf("with %d nodes: %v", nodes, p.Problems)
		} else if named := strings.Count(p.Problems[0].Message, "; n") + strings.Count(p.Problems[0].Message, ": n0: "); named != min(nodes, maxReasons) {
			t.Errorf("with %d nodes %d are named: %v", nodes, named, p.Problems)
		}
	}
}

// TestStatusOfInterfaces: addresses and routes apart, and both for versions before.
func TestStatusOfInterfaces(t *testing.T) {
	got := statusInterfaces([]Interface{{
		Name: "eth0", MAC: "02:00:00:00:00:01", Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
		Routes: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}, Gateways: []netip.Addr{netip.MustParseAddr("10.0.0.254")},
	}})
	if want := "[{eth0 02:00:00:00:00:01 [10.0.0.1/24 10.0.1.0/24] [10.0.0.1/24] [10.0.1.0/24] [10.0.0.254] true}]"; fmt.Sprint(got) != want {
		t.Errorf("%v, wanted %s", got, want)
	}
}
