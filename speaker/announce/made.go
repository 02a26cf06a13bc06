package announce

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

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
	holdings   []*holding // sorted by address; none is changed once the inputs are read
	addresses  []*address // those of layer 2, sorted by address; see address.isDecided
	shares     *shares    // see markSuccessions
	watched    []string   // see L2.Watch
	served     []*holding // what routers may send here
	sessions   []Session  // with the routes to that
	resumed    bool       // from another plan
	reshared   bool       // claims have changed since, so shares are counted anew
	ownersLent bool       // Plan.L2.Owners is that of the other plan
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
	k.plan.Problems = slices.Clone(was.problems)
	k.plan.L2.Owners, k.ownersLent = before.Plan.L2.Owners, true
	k.before, k.addresses = was.addresses, slices.Clone(was.addresses)
	claimed := k.followClaims(before.Of, was.viewMaps.claims)
	for i, e := range k.addresses {
		if _, anew := claimed[e.addr]; anew {
			k.addresses[i] = &address{addr: e.addr, pool: e.pool, users: e.users, owner: -1}
		} else if !e.isDecided() {
			e := *e
			k.addresses[i] = &e
		}
	}
	k.reshared = len(claimed) > 0
	k.holdings = slices.Clone(k.holdings)
	for q, p := range moved {
		k.reading.places = k.reading.places.With(q.service, k.reading.placed(q, p))
		k.move(q, p)
	}
	return true
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

// move gives the users of addresses their new places.
func (k *compiler) move(q question, to places) {
	for i, h := range k.holdings {
		is := func(u user) bool {
			return u.local != nil && u.svc.Name == q.service.Name && u.svc.Namespace == q.service.Namespace && h.addr.Is6() == q.is6
		}
		if !slices.ContainsFunc(h.users, is) {
			continue
		}
		next := *h
		next.users = slices.Clone(h.users)
		for j := range next.users {
			if u := &next.users[j]; is(*u) {
				u.local, u.ending = to.local, to.ending
			}
		}
		k.holdings[i] = &next
		at, exists := slices.BinarySearchFunc(k.addresses, h.addr, func(e *address, a netip.Addr) int { return e.addr.Compare(a) })
		if exists {
			k.addresses[at] = addressOf(&next)
		}
	}
}
