package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// readPrefixes finds the prefix to announce for each address and advertisement: the
// address itself, or an aggregate that covers it.
func (k *compiler) readPrefixes() {
	judged := map[aggregate]bool{}
	for _, h := range k.holdings {
		for _, u := range h.users {
			h.bgp = union(h.bgp, u.bgp)
		}
		for _, a := range h.bgp {
			h.prefixes = append(h.prefixes, k.prefixOf(a, h, judged))
		}
	}
}

// union is the union of two sorted sets. The common case copies nothing.
func union(a, b []int) []int {
	switch {
	case len(a) == 0 || slices.Equal(a, b):
		return b
	case len(b) == 0:
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// aggregate is a prefix that an advertisement announces for addresses of a pool.
type aggregate struct {
	advert, pool int
	prefix       netip.Prefix
}

// prefixOf is what advertisement i announces for h. An aggregate that is not safe
// is reported, and its addresses are announced one by one.
func (k *compiler) prefixOf(i int, h *holding, judged map[aggregate]bool) netip.Prefix {
	a, host := &k.bgp[i], netip.PrefixFrom(h.addr, h.addr.BitLen())
	if a.lengths[lbpool.FamilyOf(h.addr)] == host.Bits() {
		return host
	}
	prefix, _ := h.addr.Prefix(a.lengths[lbpool.FamilyOf(h.addr)])
	at := aggregate{i, h.pool, prefix}
	safe, known := judged[at]
	if !known {
		why := k.whyUnsafe(a, h.pool, prefix)
		if safe = why == ""; !safe {
			k.problem(snapshot.RefOf(a.BGPAdvertisement), "UnsafeAggregate", fmt.Sprintf("%s is not announced as one: %s; its addresses are announced one by one", prefix, why))
		}
		judged[at] = safe
	}
	if !safe {
		return host
	}
	return prefix
}

// whyUnsafe is why a must not announce prefix for a pool; "": it may. It must lie
// within the pool, contain no address of a node or gateway, and be for all Services: the
// CRD says so, too, but objects may come from files.
func (k *compiler) whyUnsafe(a *bgpAdvert, pool int, prefix netip.Prefix) string {
	if len(a.services) > 0 {
		return "serviceSelectors leave out Services whose addresses it covers"
	}
	if !k.homes.Covers(pool, prefix) {
		return fmt.Sprintf("pool %q does not contain all of it", k.pools[pool].Name)
	}
	if k.ownedOrder == nil {
		k.ownedOrder = slices.AppendSeq(slices.Collect(maps.Keys(k.owned)), maps.Keys(k.allNodes.Addresses))
		slices.SortFunc(k.ownedOrder, netip.Addr.Compare)
	}
	i, _ := slices.BinarySearchFunc(k.ownedOrder, prefix.Addr(), netip.Addr.Compare)
	if i < len(k.ownedOrder) && prefix.Contains(k.ownedOrder[i]) {
		return fmt.Sprintf("it covers %s, which belongs to %s", k.ownedOrder[i], k.ownerOf(k.ownedOrder[i]))
	}
	return ""
}

// servedHere are the addresses that node me may announce to routers because it has an
// endpoint. The Services on an address have the same policy and endpoints.
func (k *compiler) servedHere(me int) (served []*holding) {
	for _, i := range k.here {
		if h := k.holdings[i]; len(h.bgp) > 0 && k.isServed(h, me) {
			served = append(served, h)
		}
	}
	return served
}

// isFor reports whether advertisement a, one of h's, is for a Service that is not idle: routers
// are not told to send here what would be rejected, so another cluster with the address has it.
func (h *holding) isFor(a int) bool {
	return slices.ContainsFunc(h.users, func(u user) bool { return !u.idle && slices.Contains(u.bgp, a) })
}

// served are local with those that every node may announce, in order of address.
func (k *compiler) served(local []*holding) (served []*holding) {
	for _, h := range k.holdings {
		if len(local) > 0 && h.addr == local[0].addr {
			served, local = append(served, h), local[1:]
		} else if len(h.bgp) > 0 && h.users[0].local == nil {
			served = append(served, h)
		}
	}
	return served
}

// isServed reports whether node me, which has an endpoint of h, announces it to routers: with
// externalTrafficPolicy Local it starts once its kube-proxy has had time to write its
// rules, and stops once those of other nodes have, as long as its own endpoints last; see
// Settling.
func (k *compiler) isServed(h *holding, me int) bool {
	u := &h.users[0]
	_, ends := slices.BinarySearch(u.ending, me)
	since, others := k.noteOther(h, me)
	switch {
	case u.isAt(me) && !ends && k.isDropped(h, me):
		return false
	case u.isAt(me):
		at := k.plan.L2.Since[h.addr].Add(Settling)
		alone := !others && len(u.ending) == 0
		if alone {
			k.plan.L2.Since[h.addr] = time.Time{} // so that later plans announce it at once
		}
		if alone || ends || !at.After(k.now) {
			return true
		}
		k.wakeAt(at)
		return false
	case !others:
		return false
	}
	at := since.Add(Settling + handOverTime)
	if !at.After(k.now) {
		return false
	}
	k.wakeAt(at)
	return true
}

// noteOther records another node with an endpoint for h, the same as in the last plan if
// it still has one, and returns since when. Unless that is recent, routers have its route.
func (k *compiler) noteOther(h *holding, me int) (since time.Time, exists bool) {
	was, known := k.view.Others[h.addr]
	var other *Other
	for _, i := range h.users[0].local {
		switch {
		case i == me:
		case known && k.nodes[i].name == was.Node:
			other = &was
		case other == nil:
			other = &Other{Node: k.nodes[i].name}
			if k.view.Others != nil {
				other.Since = k.now
			}
		}
	}
	if other == nil {
		return time.Time{}, false
	}
	k.plan.BGP.Others[h.addr] = *other
	return other.Since, true
}

// handOverTime is how much longer than Settling a node whose endpoints terminate goes on
// announcing after another node has got an endpoint: that node's route is on its way.
const handOverTime = 500 * time.Millisecond

// routes are the routes that adverts announce for the addresses served.
func (k *compiler) routes(served []*holding, adverts []int) []Route {
	counts := make([]bool, len(k.bgp))
	for _, a := range adverts {
		counts[a] = true
	}
	list := make([]Route, 0, len(served))
	makers := newSets()
	made := make([]int, 0, len(served)) // by route: the set of adverts that make it
	index := make(map[netip.Prefix]int, len(served))
	for _, h := range served {
		for j, a := range h.bgp {
			if !counts[a] || !h.isFor(a) {
				continue
			}
			at, known := index[h.prefixes[j]]
			if !known {
				at = len(list)
				index[h.prefixes[j]] = at
				list, made = append(list, Route{Prefix: h.prefixes[j]}), append(made, noAdverts)
			}
			made[at] = makers.with(made[at], a)
		}
	}
	attributes := make([]*Attributes, len(makers.all))
	for i := range list {
		if attributes[made[i]] == nil {
			attributes[made[i]] = k.merged(makers.all[made[i]])
		}
		list[i].Attributes = attributes[made[i]]
	}
	slices.SortFunc(list, compareRoutes)
	return list
}

// merged are the attributes of a route that several advertisements announce: the union of
// their communities, and otherwise the values of the oldest.
func (k *compiler) merged(adverts []int) *Attributes {
	if len(adverts) == 1 {
		return k.bgp[adverts[0]].attributes
	}
	out := &Attributes{}
	for _, i := range adverts {
		a := k.bgp[i].attributes
		if out.LocalPref == 0 {
			out.LocalPref = a.LocalPref
		}
		if out.Prepend == 0 {
			out.Prepend = a.Prepend
		}
		out.Communities = append(out.Communities, a.Communities...)
		out.LargeCommunities = append(out.LargeCommunities, a.LargeCommunities...)
	}
	out.sort()
	return out
}

// sets numbers sets of advertisements. There are few, and each route has one.
type sets struct {
	all    [][]int // in order of age
	number map[string]int
	more   map[[2]int]int // set and advertisement: the set with it
}

// noAdverts is the empty set.
const noAdverts = 0

func newSets() *sets {
	return &sets{all: [][]int{nil}, number: map[string]int{"[]": noAdverts}, more: map[[2]int]int{}}
}

// with returns the number of the union of a set and a.
func (s *sets) with(set, a int) int {
	if n, known := s.more[[2]int{set, a}]; known {
		return n
	}
	next := union(s.all[set], []int{a})
	text := fmt.Sprint(next)
	n, known := s.number[text]
	if !known {
		n = len(s.all)
		s.all, s.number[text] = append(s.all, next), n
	}
	s.more[[2]int{set, a}] = n
	return n
}
