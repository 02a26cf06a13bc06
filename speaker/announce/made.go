package announce

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// In a large cluster the usual change to a plan is that the endpoints of one Service have
// moved, or that another node has claimed an address. So Compile accepts the last plan and
// reads only what has changed: those endpoints and claims, not thousands of Nodes and
// Services.

// Made is a plan and a cluster for which it is valid: the one that it was compiled from,
// or a later one, see Plan.StillValid. The zero value is no plan.
type Made struct {
	Plan *Plan
	Of   *snapshot.Cluster
}

// StillValid reports whether the plan is valid for c, too; if so, Of becomes c.
func (m *Made) StillValid(c *snapshot.Cluster) bool {
	if m.Plan == nil || !m.Plan.StillValid(m.Of, c) {
		return false
	}
	m.Of = c
	return true
}

// OnlyEndpoints reports whether, of what a plan reads, c differs from Of in nothing but
// endpoints.
func (m *Made) OnlyEndpoints(c *snapshot.Cluster) bool {
	return m.Plan != nil && m.Plan.reading.onlyEndpoints(m.Of, c)
}

// made is what a plan keeps of its compilation, so that the next can resume it.
type made struct {
	*inputs
	lists
	holdings  []*holding // sorted by address; none is changed once the inputs are read
	addresses []*address // those of layer 2, sorted by address; see address.isDecided
	kept      []int      // how many of them each node keeps
	shares    *shares    // see markSuccessions
	watched   []string   // see L2.Watch
	local     []*holding // what routers may send here for its endpoints
	sessions  []Session  // with the routes to that, and to what they may send anywhere
	resumed   bool       // from another plan
	reshared  bool       // claims have changed since, so shares are counted anew
}

// viewMaps are maps of a View. They are never changed, so two that are the same map in
// memory have the same content.
type viewMaps struct {
	alive  map[string]struct{}
	claims map[netip.Addr]Claim
	facts  map[string]Facts
}

func mapsOf(v *View) viewMaps { return viewMaps{v.Alive, v.Claims, v.Facts} }

// exceptClaims reports whether two have the same content but for the claims.
func (h viewMaps) exceptClaims(o viewMaps) bool {
	return SameMap(h.facts, o.facts) && (SameMap(h.alive, o.alive) || maps.Equal(h.alive, o.alive))
}

// SameMap reports whether two maps are the same map in memory, without reading them. While
// neither is changed, results computed from one are valid for the other.
func SameMap[M ~map[K]V, K comparable, V any](a, b M) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// resume continues from the last plan, and reports whether that is possible: nothing that
// it read has changed but endpoints and claims.
func (k *compiler) resume() bool {
	before := k.view.Before
	k.view.Before = Made{} // else each plan would keep all earlier ones in memory
	if before.Plan == nil || before.Plan.made == nil {
		return false
	}
	was, reading := before.Plan.made, before.Plan.reading
	if was.opts != k.opts || reading.me != k.me || !was.viewMaps.exceptClaims(k.viewMaps) || !reading.onlyClaims(before.Of, k.c) {
		return false
	}
	moved := reading.moved(before.Of, k.c)
	if len(moved) > manyMoved {
		return false
	}
	k.made, k.reading, k.resumed = *was, reading, true
	k.reshared = false
	k.plan.Problems = slices.Clone(was.problems)
	k.before = was.addresses
	for a := range k.followClaims(before.Of, was.viewMaps.claims) {
		if i, exists := find(k.addresses, a); exists {
			e := k.addresses[i]
			k.replace(i, &address{addr: a, pool: e.pool, users: e.users, owner: -1})
			k.changed, k.reshared = append(k.changed, i), true
		}
	}
	for q, p := range moved {
		k.reading.places = k.reading.places.With(q.service, k.reading.placed(q, p))
		k.move(q, p)
	}
	for _, indices := range []*[]int{&k.changed, &k.moved} {
		slices.Sort(*indices)
		*indices = slices.Compact(*indices)
	}
	for _, i := range k.free {
		if e := k.addresses[i]; e == k.before[i] && !e.isDecided() {
			e := *e
			k.replace(i, &e)
		}
	}
	return true
}

// replace replaces one of the addresses, in a list of this plan's own.
func (k *compiler) replace(i int, e *address) {
	if len(k.before) > 0 && &k.addresses[0] == &k.before[0] {
		k.addresses = slices.Clone(k.addresses)
	}
	k.addresses[i] = e
}

// manyMoved is the number of changed Services above which a full compilation is faster.
const manyMoved = 32

// onlyEndpoints reports whether, of what a plan reads, two clusters differ in nothing but
// endpoints.
func (r *reading) onlyEndpoints(was, is *snapshot.Cluster) bool {
	return r.onlyClaims(was, is) && r.ignores(snapshot.SpeakerStatus, was, is)
}

// onlyClaims reports whether, of what a plan reads, two clusters differ in nothing but
// endpoints and what nodes claim.
func (r *reading) onlyClaims(was, is *snapshot.Cluster) bool {
	before, after := was.Stores, is.Stores
	before.EndpointSlices, before.Services, before.Nodes, before.SpeakerStatuses =
		after.EndpointSlices, after.Services, after.Nodes, after.SpeakerStatuses
	before.Ingresses, before.IngressClasses, before.ConfigMaps, before.Namespaces = // no plan reads them
		after.Ingresses, after.IngressClasses, after.ConfigMaps, after.Namespaces
	if r.me == "" {
		before.Secrets = after.Secrets
	}
	return before == after && r.ignores(snapshot.Service, was, is) && r.ignores(snapshot.Node, was, is) &&
		alike(was.SpeakerStatuses, is.SpeakerStatuses, sameFacts)
}

// moved returns the places of the questions that were asked whose answers have changed.
func (r *reading) moved(was, is *snapshot.Cluster) map[question]places {
	moved := map[question]places{}
	note := func(s *discoveryv1.EndpointSlice, exists bool) {
		if !exists {
			return
		}
		for _, is6 := range []bool{false, true} {
			q := question{serviceOf(s), is6}
			if before, asked := r.answer(q); asked {
				if now := placesOf(is, q, r.nodeIndex); !before.equal(now) {
					moved[q] = now
				}
			}
		}
	}
	for key := range snapshot.Diff(was.EndpointSlices, is.EndpointSlices) {
		note(was.EndpointSlices.Get(key)) // it may have moved to another Service
		note(is.EndpointSlices.Get(key))
	}
	return moved
}

// move gives the users of a Service's addresses their new places.
func (k *compiler) move(q question, to places) {
	svc, exists := k.c.Services.Get(q.service)
	if !exists { // what it had, nobody has any more
		return
	}
	for _, a := range slices.Concat(loadbalancer.Addresses(svc), loadbalancer.Listed(svc)) {
		i, held := k.holdingOf(a)
		is := func(u user) bool { return u.asks() && snapshot.KeyOf(u.svc) == q.service }
		if !held || a.Is6() != q.is6 || !slices.ContainsFunc(k.holdings[i].users, is) {
			continue
		}
		next := *k.holdings[i]
		next.users = slices.Clone(next.users)
		for j := range next.users {
			if u := &next.users[j]; is(*u) {
				u.moveTo(to)
			}
		}
		if len(k.moved) == 0 {
			k.holdings = slices.Clone(k.holdings) // those of the last plan
		}
		k.holdings[i], k.moved = &next, append(k.moved, i)
		if at, exists := find(k.addresses, a); exists {
			k.replace(at, k.addressOf(&next))
			k.changed = append(k.changed, at)
		}
	}
}
