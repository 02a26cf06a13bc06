package cluster

import (
	"cmp"
	"maps"
	"slices"

	"quayside.io/cluster/snapshot"
)

const (
	// fewGroups is how many watches of EndpointSlices are each of one namespace, however few
	// Services it has there. With more, namespaces share a watch: a speaker in a cluster of
	// a thousand namespaces must not have a thousand.
	fewGroups = 4
	// mostNames is how many Services' EndpointSlices are one watch at most. Their names are
	// in its URL: a hundred of 63 characters are 7 kB, and what stands before an API server
	// often takes 8 kB.
	mostNames = 100
)

// group is what one list and watch covers: one scope or, of EndpointSlices, those of many
// Services. It never changes.
type group struct {
	kind      snapshot.Kind
	namespace string  // of all scopes; "": they are of several, or of none
	scopes    []scope // sorted
	has       map[scope]bool
}

func newGroup(kind snapshot.Kind, namespace string, scopes []scope) *group {
	g := &group{kind: kind, namespace: namespace, scopes: scopes, has: make(map[scope]bool, len(scopes))}
	for _, s := range scopes {
		g.has[s] = true
	}
	return g
}

// groupOf is the group of one scope alone.
func groupOf(s scope) *group { return newGroup(s.kind, s.namespace, []scope{s}) }

// covers reports whether a place is in one of the scopes. Where namespaces share a watch,
// it tells of others too: of Services of the same names.
func (g *group) covers(k snapshot.Key) bool {
	return slices.ContainsFunc(scopesOf(g.kind, k), func(s scope) bool { return g.has[s] })
}

// names are those that the scopes are narrowed to, each once.
func (g *group) names() (names []string) {
	for _, s := range g.scopes {
		if s.name != "" {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isShared reports whether s may share a watch with others.
func (s scope) isShared() bool { return s.kind == snapshot.EndpointSlice && s.name != "" }

func (s scope) compare(o scope) int {
	return cmp.Or(cmp.Compare(s.kind, o.kind), cmp.Compare(s.namespace, o.namespace), cmp.Compare(s.name, o.name))
}

// draft is a group to be. was is what it was before, if anything.
type draft struct {
	group
	was *group
}

// regroup divides the scopes that are wanted now among watches. What was together stays
// together, so that a scope which comes or goes changes one group; a group that does not
// change is the one in old. If there are more than fewGroups of EndpointSlices, no two of
// them would fill half of one. What is new in the namespaces with most of them comes first:
// these have watches of their own.
func regroup(old []*group, wanted map[scope]bool) []*group {
	var drafts []*draft
	placed := map[scope]bool{}
	for _, g := range old {
		kept := slices.DeleteFunc(slices.Clone(g.scopes), func(s scope) bool { return !wanted[s] })
		for _, s := range kept {
			placed[s] = true
		}
		if len(kept) > 0 {
			drafts = append(drafts, &draft{group{kind: g.kind, namespace: g.namespace, scopes: kept}, g})
		}
	}
	for _, s := range largestFirst(wanted) {
		if placed[s] {
			continue
		}
		d := placeFor(drafts, s)
		if d == nil {
			d = &draft{group: group{kind: s.kind, namespace: namespaceFor(drafts, s)}}
			drafts = append(drafts, d)
		}
		d.scopes = append(d.scopes, s)
	}
	drafts = unite(drafts)
	groups := make([]*group, 0, len(drafts))
	for _, d := range drafts {
		slices.SortFunc(d.scopes, scope.compare)
		if d.was == nil || d.namespace != d.was.namespace || !slices.Equal(d.scopes, d.was.scopes) {
			d.was = newGroup(d.kind, d.namespace, d.scopes)
		}
		groups = append(groups, d.was)
	}
	return groups
}

// largestFirst sorts scopes by how many there are of the kind and namespace.
func largestFirst(scopes map[scope]bool) []scope {
	count := map[scope]int{}
	for s := range scopes {
		count[scope{s.kind, s.namespace, ""}]++
	}
	return slices.SortedFunc(maps.Keys(scopes), func(a, b scope) int {
		return cmp.Or(count[scope{b.kind, b.namespace, ""}]-count[scope{a.kind, a.namespace, ""}], a.compare(b))
	})
}

// isShared reports whether more scopes may come to d.
func (d *draft) isShared() bool { return d.scopes[0].isShared() }

// placeFor returns the draft that takes s: the fullest with room, of its own namespace
// if there is one; nil: none does.
func placeFor(drafts []*draft, s scope) (best *draft) {
	if !s.isShared() {
		return nil
	}
	better := func(a, b *draft) bool {
		return b == nil || cmp.Or(cmp.Compare(len(a.namespace), len(b.namespace)), cmp.Compare(len(a.scopes), len(b.scopes))) > 0
	}
	for _, d := range drafts {
		if d.isShared() && len(d.scopes) < mostNames && (d.namespace == s.namespace || d.namespace == "" && namespaceFor(drafts, s) == "") && better(d, best) {
			best = d
		}
	}
	return best
}

// namespaceFor is the namespace of a new draft that s begins: its own, or "" where there
// are so many that it is to be shared.
func namespaceFor(drafts []*draft, s scope) string {
	if !s.isShared() {
		return s.namespace
	}
	shared := 0
	for _, d := range drafts {
		if !d.isShared() {
			continue
		}
		if d.namespace == s.namespace {
			return s.namespace
		}
		shared++
	}
	if shared < fewGroups {
		return s.namespace
	}
	return ""
}

// unite makes one of two drafts while that leaves much room: of the same namespace or, where
// there are too many, of any.
func unite(drafts []*draft) []*draft {
	for {
		shared := 0
		for _, d := range drafts {
			if d.isShared() {
				shared++
			}
		}
		var a, b *draft
		for i, d := range drafts {
			for _, o := range drafts[i+1:] {
				together := len(d.scopes) + len(o.scopes)
				if d.isShared() && o.isShared() && (d.namespace == o.namespace || shared > fewGroups) &&
					together <= mostNames/2 && (a == nil || together < len(a.scopes)+len(b.scopes)) {
					a, b = d, o
				}
			}
		}
		if a == nil {
			return drafts
		}
		if a.namespace != b.namespace {
			a.namespace = ""
		}
		a.scopes = append(a.scopes, b.scopes...)
		drafts = slices.DeleteFunc(drafts, func(d *draft) bool { return d == b })
	}
}
