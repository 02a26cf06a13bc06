package announce

import (
	"fmt"
	"net/netip"
	"testing"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// After a total restart the SpeakerStatuses are all that is remembered, and some
// are older than others. Three nodes have published any claims on two addresses,
// and any of them start again: who made the newest claim holds the address if he
// is there, and else one of those who are takes it with a newer claim.
func TestTotalRestartExhaustively(t *testing.T) {
	const nodes, epochs = 3, 3 // epoch 0: none was published
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	for i := range nodes {
		w.addNode(twinNode{name: fmt.Sprintf("n%d", i+1), alive: true, ready: true, subnet: true}, false)
	}
	w.objects = append(w.objects, lanPool("10.0.0.100-10.0.0.199"))
	addrs := []netip.Addr{addrAt(100), addrAt(101)}
	for i, a := range addrs {
		w.addService(fmt.Sprintf("s%d", i), twinAddr{addr: a}, i)
	}
	for code := range 729 { // epochs to the power of nodes times addresses
		statuses := make([]*v1alpha1.SpeakerStatus, nodes)
		newest := map[netip.Addr]Claim{}
		for i, rest := 0, code; i < nodes; i++ {
			statuses[i] = &v1alpha1.SpeakerStatus{}
			statuses[i].Name = w.nodes[i].name
			for _, a := range addrs {
				if said := (Claim{int64(rest % epochs), w.nodes[i].name}); said.Epoch > 0 {
					statuses[i].Status.Announcing = append(statuses[i].Status.Announcing, v1alpha1.Announcing{Address: a.String(), Protocol: "l2", Epoch: said.Epoch})
					if said.Epoch >= newest[a].Epoch { // later names win ties
						newest[a] = said
					}
				}
				rest /= epochs
			}
		}
		c := snapshot.Of(append(w.objects, statuses[0], statuses[1], statuses[2])...)
		for started := 1; started < 1<<nodes; started++ {
			checkRestart(t, w, c, newest, started)
		}
	}
}

// checkRestart lets the nodes start whose bits are set.
func checkRestart(t *testing.T, w *world, c *snapshot.Cluster, newest map[netip.Addr]Claim, started int) {
	t.Helper()
	v := View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}
	for i, n := range w.nodes {
		if started&(1<<i) != 0 {
			v.Alive[n.name], v.Facts[n.name] = struct{}{}, w.view.Facts[n.name]
		}
	}
	answers, takes := map[netip.Addr][]string{}, map[netip.Addr][]string{}
	for me := range v.Alive {
		p := Compile(c, me, v, epoch0(), Options{})
		for a, answer := range p.L2.Answers {
			if answers[a] = append(answers[a], me); answer.Epoch != newest[a].Epoch {
				t.Fatalf("%s answers for %s with epoch %d, last was %v", me, a, answer.Epoch, newest[a])
			}
		}
		for _, take := range p.L2.Take {
			if takes[take.Address] = append(takes[take.Address], me); !(Claim{take.Epoch, me}).Beats(newest[take.Address]) {
				t.Fatalf("%s takes %s with epoch %d, which does not beat %v", me, take.Address, take.Epoch, newest[take.Address])
			}
		}
	}
	for _, twin := range w.addrs {
		a, last := twin.addr, newest[twin.addr]
		if _, back := v.Alive[last.Node]; back {
			if len(answers[a]) != 1 || answers[a][0] != last.Node || len(takes[a]) > 0 {
				t.Fatalf("%s of %v: answered by %v, taken by %v, of those alive %v", a, last, answers[a], takes[a], v.Alive)
			}
		} else if len(answers[a]) > 0 || len(takes[a]) != 1 {
			t.Fatalf("%s of %v, who is not there: answered by %v, taken by %v", a, last, answers[a], takes[a])
		}
	}
}

func addrAt(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
