package assign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// serve gives addresses to those who lack one, the oldest first.
func (w *work) serve() {
	for _, c := range w.sorted {
		if c.managed && !c.foreign {
			w.serveConsumer(c)
		}
	}
}

// serveConsumer completes what a Service holds, or moves it to what it asks for.
// It is moved only once the new address is certain, and keeps the old one
// until then. One family is nothing to who requires both; but where the pool would
// give it the other one, did it not drain or serve others now, it keeps what it has.
func (w *work) serveConsumer(c *consumer) {
	if fault := c.request().fault; !fault.isZero() {
		c.refuse(fault)
		return
	}
	switch {
	case c.dying && len(c.holds) == 0:
		c.refuse(denial{ReasonBeingDeleted, "the Service is being deleted and gets no new address"})
		return
	case c.dying:
		return
	case len(c.holds) == 0:
		w.take(c, w.choose, "")
	case !w.isAsAsked(c):
		w.take(c, w.choose, "the Service asks for another address or pool")
	case len(c.missing(c.holds)) == 0:
	case w.take(c, w.complete, ""):
	case (len(c.trouble.losses()) > 0 || c.requires) && w.take(c, w.chooseBoth, "its addresses come from one pool, and this one has not both families"):
	case !c.requires:
		c.refuse(denial{}) // one family is what PreferDualStack settles for
	}
	if c.requires && len(c.holds) > 0 && len(c.missing(c.holds)) > 0 && w.barred(c, w.home(c, c.holds[0])).isZero() {
		for _, a := range c.holds {
			c.lose(a, "the Service requires both families, and there is only this one")
		}
		c.holds = c.holds[:0]
	}
}

// take gives a Service what choice finds, and says why it loses what it had;
// or it records the denial.
func (w *work) take(c *consumer, choice func(*consumer) ([]netip.Addr, denial), why string) bool {
	addrs, refused := choice(c)
	c.refuse(refused)
	if !refused.isZero() {
		return false
	}
	for _, a := range c.holds {
		if !slices.Contains(addrs, a) {
			c.lose(a, why)
		}
	}
	c.holds = append(c.holds[:0], addrs...)
	w.orderHolds(c)
	for _, a := range c.holds {
		w.pools.allocations.Occupy(a, &c.holder)
	}
	return true
}

// isAsAsked reports whether what a Service holds is what it asks for by name.
func (w *work) isAsAsked(c *consumer) bool {
	asks := c.request()
	for _, a := range asks.wants {
		if !slices.Contains(c.holds, a) {
			return false
		}
	}
	for _, a := range c.holds {
		if asks.pool != "" && w.home(c, a).obj.Name != asks.pool {
			return false
		}
		if len(asks.wants) > 0 && !slices.Contains(asks.wants, a) && !slices.Contains(c.missing(asks.wants), lbpool.FamilyOf(a)) {
			return false
		}
	}
	return true
}

// choose finds addresses for a Service as if it had none, in a list that the next
// choice reuses.
func (w *work) choose(c *consumer) ([]netip.Addr, denial) {
	if wants := c.request().wants; len(wants) > 0 {
		return w.chooseAsked(c, wants)
	}
	candidates, refused := w.candidates(c)
	if !refused.isZero() {
		return nil, refused
	}
	for rest := candidates; len(rest) > 0; {
		alike := w.alike(c, rest)
		if addrs := w.pickFrom(c, rest[:alike]); len(addrs) > 0 {
			return addrs, denial{}
		}
		rest = rest[alike:]
	}
	return nil, w.exhausted(c, candidates, c.families())
}

// alike is how many of the first candidates are to be asked for both families before any of
// them, or of those behind them, is asked for one: who is allocated a pool of one family gets
// nothing of another pool because that has both.
func (w *work) alike(c *consumer, candidates []*pool) int {
	first := func(p *pool) bool { return p.isAllocated() || w.pending(c, p) > 0 }
	want := first(candidates[0])
	if n := slices.IndexFunc(candidates, func(p *pool) bool { return first(p) != want }); n >= 0 {
		return n
	}
	return len(candidates)
}

// pickFrom finds addresses of both families in one pool, or, for who is content with one, the
// first that some pool has.
func (w *work) pickFrom(c *consumer, candidates []*pool) []netip.Addr {
	if len(c.families()) == 2 {
		for _, p := range candidates {
			first, ok1 := w.pick(c, p, c.families()[0])
			second, ok2 := w.pick(c, p, c.families()[1])
			if ok1 && ok2 {
				return w.found(first, second)
			}
		}
		if c.requires {
			return nil
		}
	}
	for _, f := range c.families() {
		for _, p := range candidates {
			if a, ok := w.pick(c, p, f); ok {
				return w.found(a)
			}
		}
	}
	return nil
}

// found returns addresses in a list that is reused.
func (w *work) found(addrs ...netip.Addr) []netip.Addr {
	w.foundList = append(w.foundList[:0], addrs...)
	return w.foundList
}

// chooseBoth is choose for a Service that would rather keep what it has than
// move for one family.
func (w *work) chooseBoth(c *consumer) ([]netip.Addr, denial) {
	addrs, refused := w.choose(c)
	if missing := c.missing(addrs); refused.isZero() && len(missing) > 0 {
		return nil, denial{ReasonPoolExhausted, "no pool has an address of both families"}
	}
	return addrs, refused
}

// chooseAsked checks the addresses that a Service asks for, all or nothing,
// and adds the families that it did not ask about from the first one's pool: of such
// a family it keeps what it has there.
func (w *work) chooseAsked(c *consumer, wants []netip.Addr) ([]netip.Addr, denial) {
	for _, a := range wants {
		if refused := w.refuse(c, a); !refused.isZero() {
			return nil, refused
		}
	}
	addrs, home := w.found(wants...), w.pools.poolOf(wants[0])
	for _, f := range c.missing(addrs) {
		if a, ok := w.heldIn(c, home, f); ok {
			addrs = append(addrs, a)
		} else if a, refused := w.another(c, home, f); refused.isZero() {
			addrs = append(addrs, a)
		} else if c.requires {
			return nil, refused
		}
	}
	return addrs, denial{}
}

// another finds an address of one more family for a Service in the pool that it
// lives in, if that still gives it new ones: who sits in a pool that drains, or
// that serves others now, stays as it is.
func (w *work) another(c *consumer, home *pool, f lbpool.Family) (netip.Addr, denial) {
	if refused := w.barred(c, home); !refused.isZero() {
		return netip.Addr{}, refused
	}
	if a, ok := w.pick(c, home, f); ok {
		return a, denial{}
	}
	return netip.Addr{}, w.exhausted(c, []*pool{home}, []lbpool.Family{f})
}

// heldIn returns the address of a family that a Service holds in a pool.
func (w *work) heldIn(c *consumer, home *pool, f lbpool.Family) (netip.Addr, bool) {
	i := slices.IndexFunc(c.holds, func(a netip.Addr) bool { return lbpool.FamilyOf(a) == f && w.home(c, a) == home })
	if i < 0 {
		return netip.Addr{}, false
	}
	return c.holds[i], true
}

// complete adds the families that a Service lacks, from the pool it lives in:
// the other family of another pool might not be announced from the same nodes.
func (w *work) complete(c *consumer) ([]netip.Addr, denial) {
	addrs, home := w.found(c.holds...), w.home(c, c.holds[0])
	for _, f := range c.missing(c.holds) {
		a, refused := w.another(c, home, f)
		if !refused.isZero() {
			return nil, refused
		}
		addrs = append(addrs, a)
	}
	return addrs, denial{}
}

// refuse says why a Service may not have an address that it asks for.
func (w *work) refuse(c *consumer, a netip.Addr) denial {
	if node, ok := w.nodes[a]; ok {
		return denial{ReasonNodeAddress, fmt.Sprintf("%v is the own address of node %s; ask for another", a, node)}
	}
	p, asked := w.pools.poolOf(a), c.request().pool
	switch {
	case p == nil && len(w.pools.list) == 0:
		return noPool()
	case p == nil:
		return denial{ReasonAddressOutsidePools, fmt.Sprintf("%v is in no pool; ask for another or add it to an IPAddressPool", a)}
	case asked != "" && asked != p.obj.Name:
		return denial{ReasonConflictingRequest, fmt.Sprintf("it asks for pool %.253q and for %v, which is in pool %s", asked, a, p.obj.Name)}
	}
	if c.find(a) >= 0 && slices.Contains(c.holds, a) {
		return denial{} // it sits there: rules for newcomers do not apply
	}
	if refused := w.barred(c, p); !refused.isZero() {
		return refused
	}
	if w.pools.poolIndex.Avoids(p.index, a) {
		return denial{ReasonAddressOutsidePools, fmt.Sprintf("pool %s leaves out %v (avoidBuggyIPs)", p.obj.Name, a)}
	}
	if link, ok := w.links[a]; ok {
		return denial{ReasonNodeAddress, fmt.Sprintf("%v is %s; ask for another", a, link)}
	}
	if o, why := w.obstacle(c, a); o != nil {
		return denial{ReasonAddressInUse, fmt.Sprintf("%v is held by %s, %s; ask for another, or give both one %s and different ports", a, o, why, loadbalancer.AnnotationSharingKey)}
	}
	return denial{}
}

func noPool() denial {
	return denial{ReasonNoPool, "there is no IPAddressPool yet; create one whose spec.addresses are free on your network"}
}

// barred says why a pool gives a Service nothing new although it asks by name.
func (w *work) barred(c *consumer, p *pool) denial {
	switch {
	case !w.serves(p, c.svc):
		return denial{ReasonPoolNotAllowed, fmt.Sprintf("pool %s does not serve this Service; see its spec.serviceAllocation", p.obj.Name)}
	case p.drain:
		return denial{ReasonPoolDraining, fmt.Sprintf("pool %s gives no new addresses; see its spec.drain and conditions", p.obj.Name)}
	}
	return denial{}
}

// serves reports whether a pool serves a Service.
func (w *work) serves(p *pool, svc *corev1.Service) bool {
	if !p.isPinned() {
		return true
	}
	var of labels.Set
	if ns, ok := w.c.Namespaces.Get(snapshot.Key{Name: svc.Namespace}); ok {
		of = ns.Labels
	}
	return p.admits(svc, of)
}

// candidates returns the pools from which a Service may be given an address,
// in a list that the next call reuses.
func (w *work) candidates(c *consumer) ([]*pool, denial) {
	if len(w.pools.list) == 0 {
		return nil, noPool()
	}
	if asked := c.request().pool; asked != "" {
		p := w.pools.byName[asked]
		if p == nil {
			return nil, denial{ReasonPoolNotFound, fmt.Sprintf("it asks for pool %.253q, which does not exist; ask for one that does, or create it", asked)}
		}
		return []*pool{p}, w.barred(c, p)
	}
	list, draining := w.candidateList[:0], false
	for _, p := range w.pools.order {
		if p.auto && w.serves(p, c.svc) {
			draining = draining || p.drain
			if !p.drain {
				list = append(list, p)
			}
		}
	}
	w.candidateList = list
	switch {
	case len(list) == 0 && draining:
		return nil, denial{ReasonPoolDraining, "every pool that serves it gives no new addresses; see their spec.drain and conditions"}
	case len(list) == 0:
		return nil, denial{ReasonPoolNotAllowed, "no pool serves this Service; see autoAssign and serviceAllocation of the pools, or ask for one by the annotation " + loadbalancer.AnnotationPool}
	}
	// A write of unknown outcome is repeated, not replaced by another choice.
	if len(w.inflight[c.key()]) > 0 {
		slices.SortStableFunc(list, func(a, b *pool) int { return w.pending(c, b) - w.pending(c, a) })
	}
	return list, denial{}
}

// pending counts the addresses of a pool that are in flight to a Service.
func (w *work) pending(c *consumer, p *pool) (n int) {
	for _, a := range w.inflight[c.key()] {
		if w.pools.poolOf(a) == p {
			n++
		}
	}
	return n
}

// pick finds one address of a pool and family for a Service: one in flight to
// it, one that it may share, or a free one. One that is reserved, or left out,
// it is not given either because others who asked for it would share it.
func (w *work) pick(c *consumer, p *pool, f lbpool.Family) (netip.Addr, bool) {
	unasked := func(a netip.Addr) bool { // nobody gets it who does not ask for it
		return w.nodes[a] != "" || w.pools.poolIndex.IsReserved(a) || w.pools.poolIndex.Avoids(p.index, a)
	}
	fits := func(a netip.Addr) bool {
		if lbpool.FamilyOf(a) != f || w.pools.poolOf(a) != p || unasked(a) {
			return false
		}
		o, _ := w.pools.allocations.Obstacle(a, &c.holder)
		return o == nil
	}
	for _, a := range w.inflight[c.key()] {
		if fits(a) {
			return a, true
		}
	}
	if a, ok := w.pools.allocations.Join(p.index, f, &c.holder, unasked); ok {
		return a, true
	}
	return w.pools.allocations.Next(p.index, f, w.now)
}

// byListing says which addresses of pools are in use because Services list them in
// spec.externalIPs, or "".
func (w *work) byListing(pools []*pool) string {
	var list []string
	for _, p := range pools {
		list = append(list, w.keeping[p]...)
	}
	if len(list) == 0 {
		return ""
	}
	return ", some because spec.externalIPs lists them (" + several(list, ", ") + ")"
}

// exhausted says why none of pools has an address of these families.
func (w *work) exhausted(c *consumer, candidates []*pool, families []lbpool.Family) denial {
	var names, wanted []string
	for _, f := range families {
		wanted = append(wanted, f.String())
	}
	both := strings.Join(wanted, " and ")
	has, resting := false, false
	for _, p := range candidates {
		names = append(names, p.obj.Name)
		all := true
		for _, f := range families {
			all = all && w.pools.poolIndex.Has(p.index, f)
			if t := w.pools.allocations.Wake(p.index, f, w.now); !t.IsZero() {
				resting = true
				w.wakeRested(t)
			}
		}
		has = has || all
	}
	which := "pool " + several(names, ", ")
	switch {
	case !has && c.requires && len(families) == 2:
		return denial{ReasonNoAddressOfFamily, fmt.Sprintf("it requires both families from one pool, and %s has not both; add addresses of the other family, or set ipFamilyPolicy: PreferDualStack", which)}
	case !has && len(families) == 1:
		return denial{ReasonNoAddressOfFamily, fmt.Sprintf("%s has no %s addresses; add some to spec.addresses", which, both)}
	case resting:
		return denial{ReasonPoolResting, fmt.Sprintf("every free address of %s rests before its next use (reuseAfter)", which)}
	}
	message := fmt.Sprintf("every %s address of %s is in use%s", both, which, w.byListing(candidates))
	for _, p := range candidates {
		for _, f := range families {
			if a, ok := w.pools.allocations.FirstShared(p.index, f, &c.holder); ok {
				if o, why := w.pools.allocations.Obstacle(a, &c.holder); o != nil {
					return denial{ReasonPoolExhausted, fmt.Sprintf("%s; it cannot share %v with %s, %s", message, a, o, why)}
				} else if w.pools.poolIndex.IsReserved(a) {
					return denial{ReasonPoolExhausted, fmt.Sprintf("%s; it could share %v, which pool %s reserves: ask for it by the annotation %s",
						message, a, p.obj.Name, loadbalancer.AnnotationAddresses)}
				}
			}
		}
	}
	return denial{ReasonPoolExhausted, message + "; add addresses to a pool, or delete a Service that needs none"}
}
