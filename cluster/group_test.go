package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
)

// endpointsOf is the scope of a Service's EndpointSlices.
func endpointsOf(namespace, name string) scope { return scope{snapshot.EndpointSlice, namespace, name} }

// However Services come and go, each scope is in one group, which is no larger than a URL
// may be, there are few groups, and one that comes or goes changes few of them.
func TestGroupsAreADivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []*group
		wanted := map[scope]bool{}
		any := rapid.Custom(func(t *rapid.T) scope {
			// Some namespaces have many Services, most have few; and not all are
			// EndpointSlices.
			if rapid.IntRange(0, 20).Draw(t, "kind") == 0 {
				return scope{snapshot.Secret, "ns", fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "secret"))}
			}
			namespace := min(rapid.IntRange(0, 9).Draw(t, "namespace"), rapid.IntRange(0, 9).Draw(t, "or"))
			return endpointsOf(fmt.Sprint("team-", namespace), fmt.Sprint("web-", rapid.IntRange(0, 300).Draw(t, "name")))
		})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			comes, goes := rapid.SliceOfN(any, 0, rapid.SampledFrom([]int{1, 1, 400}).Draw(t, "most")).Draw(t, "come"), 0
			before := maps.Clone(wanted)
			for _, s := range comes {
				wanted[s] = true
			}
			for _, s := range slices.SortedFunc(maps.Keys(before), scope.compare) {
				if rapid.IntRange(0, 9).Draw(t, "goes") == 0 && goes < len(comes) {
					delete(wanted, s)
					goes++
				}
			}
			last := groups
			groups = regroup(last, wanted)
			checkDivision(t, groups, wanted)
			kept := 0
			for _, g := range last {
				if slices.Contains(groups, g) {
					kept++
				}
			}
			// Each that goes leaves one group; what comes fills one after the other; and
			// what has become small is united.
			if most := 3*(goes+len(comes)) + 2; len(last)-kept > most {
				t.Fatalf("%d scopes come and %d go: %d of %d groups change", len(comes), goes, len(last)-kept, len(last))
			}
			if again := regroup(groups, wanted); !slices.Equal(again, groups) {
				t.Fatal("nothing has changed, but the groups have")
			}
		}
	})
}

func checkDivision(t *rapid.T, groups []*group, wanted map[scope]bool) {
	found, shared, members := map[scope]bool{}, 0, 0
	for _, g := range groups {
		if len(g.scopes) == 0 || len(g.scopes) != len(g.has) || !slices.IsSortedFunc(g.scopes, scope.compare) {
			t.Fatalf("group %+v", g)
		}
		for _, s := range g.scopes {
			if found[s] || s.kind != g.kind || g.namespace != "" && s.namespace != g.namespace {
				t.Fatalf("%v is in a group of %q, and before that: %v", s, g.namespace, found[s])
			}
			if at := (snapshot.Key{Namespace: s.namespace, Name: s.name}); !g.covers(at) || g.covers(snapshot.Key{Namespace: s.namespace, Name: "other"}) {
				t.Fatalf("the group of %v does not know it, or others", s)
			}
			found[s] = true
		}
		if !g.scopes[0].isShared() {
			if len(g.scopes) > 1 {
				t.Fatalf("%v share a watch", g.scopes)
			}
			continue
		}
		shared, members = shared+1, members+len(g.scopes)
		if len(g.scopes) > mostNames {
			t.Fatalf("a group of %d", len(g.scopes))
		}
	}
	if !maps.Equal(found, wanted) {
		t.Fatalf("%d scopes are in groups, %d are wanted", len(found), len(wanted))
	}
	if most := max(fewGroups, members/(mostNames/4)+1); shared > most {
		t.Fatalf("%d groups of %d scopes", shared, members)
	}
}

// One Service more is one change of one group, and the names of a full one fit in a URL.
func TestOneServiceMoreChangesOneGroup(t *testing.T) {
	wanted := map[scope]bool{}
	name := func(i int) string { return fmt.Sprintf("%063d", i) }
	for i := range 250 {
		wanted[endpointsOf(fmt.Sprint("team-", i%7), name(i))] = true
	}
	groups := regroup(nil, wanted)
	for i := range 250 {
		wanted[endpointsOf(fmt.Sprint("team-", i%9), name(250+i))] = true
		next := regroup(groups, wanted)
		gone := slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return slices.Contains(next, g) })
		if len(gone) > 1 {
			t.Fatalf("the %dth changes %d groups", i, len(gone))
		}
		groups = next
	}
	for _, g := range groups {
		if n := len(ofServices(g.names())); n > 7000 {
			t.Errorf("a selector of %d bytes", n)
		}
	}
}
