package ownership

import (
	"maps"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// changed is a copy of m in which a key has a value, or is missing.
func changed[K comparable, V any](t *rapid.T, m map[K]V, key K, value V) map[K]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[K]V{}
	}
	if out[key] = value; rapid.Bool().Draw(t, "without") {
		delete(out, key)
	}
	return out
}

// TestViewOfMembersIsThatOfAFreshMachine: a view is kept as long as it holds, and no longer.
func TestViewOfMembersIsThatOfAFreshMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := together()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			members := *w.Members
			name := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3"}).Draw(t, "node")
			a := netip.MustParseAddr(objects.VIP(rapid.IntRange(0, 1).Draw(t, "address")))
			epoch := rapid.Int64Range(1, 3).Draw(t, "epoch")
			facts := announce.Facts{Interfaces: []announce.Interface{{Name: "eth0", Up: true, MAC: rapid.SampledFrom([]string{ownMAC, ownerMAC, otherMAC}).Draw(t, "mac")}}}
			switch rapid.IntRange(0, 8).Draw(t, "changes") {
			case 0:
				members.Alive = changed(t, members.Alive, name, struct{}{})
			case 1:
				members.Doubted = changed(t, members.Doubted, name, struct{}{})
			case 2:
				members.Missing = changed(t, members.Missing, name, "it does not answer")
			case 3:
				members.Claims = changed(t, members.Claims, a, announce.Claim{Epoch: epoch, Node: name})
			case 4:
				members.Facts = changed(t, members.Facts, name, facts)
			case 5:
				m.holdings.claims = changed(t, m.holdings.claims, a, epoch)
			case 6:
				m.self = facts
			case 7:
				w.Cluster = w.Cluster.Without(snapshot.SpeakerStatus, snapshot.Key{Name: "n2"}).With(speaks("n2", facts.Interfaces[0].MAC, "10.0.0.2/24"))
			case 8:
				w.Cluster = w.Cluster.With(objects.Endpoints(name))
			}
			w.Members = &members
			m.world = w
			m.refreshView()
			m.made.Plan, m.made.Of = &announce.Plan{}, w.Cluster // as after a plan
			fresh := New(m.opts)
			fresh.world, fresh.self, fresh.holdings.claims = w, m.self, m.holdings.claims
			fresh.refreshView()
			got, want := m.memberView, fresh.memberView
			got.heard, want.heard = Members{}, Members{}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("kept %+v, and made anew it is %+v", got, want)
			}
			if _, lives := got.alive["n1"]; !lives || !reflect.DeepEqual(got.facts["n1"], m.self) || len(got.speakers) != len(got.macs) {
				t.Fatalf("not all of this node is in %+v", got)
			}
		}
	})
}
