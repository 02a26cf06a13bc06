package assign

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// keep decides which addresses in status stay, the older Service first but those
// that have changed how they share theirs last, and puts everybody who has an
// address on it, also those who will lose it: until the snapshot shows them gone,
// nobody new may come.
func (w *work) keep() {
	var changed []*consumer
	for _, c := range w.sorted {
		if c.changed {
			changed = append(changed, c)
		} else {
			w.keepConsumer(c)
		}
	}
	for _, c := range changed {
		w.keepConsumer(c)
	}
	allocations := w.pools.allocations
	for _, c := range w.sorted {
		for _, l := range c.trouble.losses() {
			allocations.Occupy(l.addr, &c.holder)
		}
		for _, a := range w.inflight[c.key()] {
			allocations.Occupy(a, &c.holder)
		}
	}
	for _, key := range w.strayWrites() {
		gone := &lbpool.Holder{Realm: key.Namespace, Name: key.Name + " (a write whose outcome is not known yet)"}
		for _, a := range w.inflight[key] {
			allocations.Occupy(a, gone)
		}
	}
}

// strayWrites are the writes in flight for Services that are gone, or that no
// longer concern us.
func (w *work) strayWrites() (keys []snapshot.Key) {
	for key := range w.inflight {
		if svc, ok := w.c.Services.Get(key); !ok || !concerns(svc) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, snapshot.Key.Compare)
	return keys
}

// keepConsumer decides about one Service.
func (w *work) keepConsumer(c *consumer) {
	switch {
	case !c.managed:
		w.release(c)
		return
	case !c.given && (c.alien != "" || c.isOutside()):
		w.leaveAlone(c)
		return
	case w.mustTell(c):
		w.tellFirst(c)
		return
	}
	for i, a := range c.have {
		if why := w.illegal(c, a, c.homes[i]); why != "" {
			c.lose(a, why)
			continue
		}
		c.holds = append(c.holds, a)
		w.pools.allocations.Occupy(a, &c.holder)
	}
	w.orderHolds(c)
}

// release handles a Service that is not for us: what we gave goes, what it has
// from others stays, and either way the address is in use now.
func (w *work) release(c *consumer) {
	for _, a := range c.have {
		if !c.given {
			c.holds = append(c.holds, a)
			w.pools.allocations.Occupy(a, &c.holder)
		} else {
			c.lose(a, "the Service does not ask Quayside for an address any more")
		}
	}
}

// leaveAlone handles a Service whose addresses another controller gave, and
// which are not ours.
func (w *work) leaveAlone(c *consumer) {
	c.foreign = true
	c.holds = append(c.holds, c.have...)
	for _, a := range c.have {
		w.pools.allocations.Occupy(a, &c.holder)
		if node, ok := w.nodes[a]; ok {
			c.refuse(denial{ReasonNodeAddress, fmt.Sprintf(
				"another controller gave it %v, which is the own address of node %s; it is left alone and not announced; stop that controller (ServiceLB of k3s gives nodes' addresses) and clear status.loadBalancer to get an address from here", a, node)})
			return
		}
	}
	what := c.alien
	if i := slices.Index(c.homes, nil); i >= 0 {
		what = c.have[i].String()
	}
	c.refuse(denial{ReasonForeignAddress, fmt.Sprintf(
		"another controller gave it %s, which is in no pool of Quayside's, and it is left alone; clear status.loadBalancer to get an address from here", what)})
}

// mustTell reports whether a Service is about to lose an address because no
// pool contains it any more, and has not been warned: a pool that shrinks says
// what will happen before it does.
func (w *work) mustTell(c *consumer) bool {
	for i, a := range c.have {
		if _, unsafe := w.nodes[a]; c.homes[i] == nil && !unsafe {
			return !slices.ContainsFunc(c.svc.Status.Conditions, func(told metav1.Condition) bool {
				return told.Type == ConditionAddress && told.Reason == ReasonAddressLeaving
			})
		}
	}
	return false
}

// tellFirst keeps everything as it is for one plan, which warns the Service of
// what the next one will do.
func (w *work) tellFirst(c *consumer) {
	c.foreign, c.leaving = true, true
	c.holds = append(c.holds, c.have...)
	var going []netip.Addr
	for i, a := range c.have {
		w.pools.allocations.Occupy(a, &c.holder)
		if c.homes[i] == nil {
			going = append(going, a)
		}
	}
	c.refuse(denial{ReasonAddressLeaving, fmt.Sprintf(
		"no pool contains %s any more: it will be taken away, and another given if there is one", join(going))})
}

// illegal says why a Service may not keep an address, or "".
func (w *work) illegal(c *consumer, a netip.Addr, home *pool) string {
	if node, ok := w.nodes[a]; ok {
		return "it is the own address of node " + node
	}
	if home == nil {
		return "no pool contains it any more"
	}
	if !slices.Contains(c.families(), lbpool.FamilyOf(a)) {
		return fmt.Sprintf("the Service has no %v any more", lbpool.FamilyOf(a))
	}
	if o, why := w.pools.allocations.Clash(a, &c.holder); o != nil {
		if c.changed {
			return fmt.Sprintf("the Service has changed, and it is also held by %s, %s", o, why)
		}
		return fmt.Sprintf("it is also held by the older %s, %s", o, why)
	}
	if o := w.pools.allocations.Unadmitted(a, &c.holder); o != nil {
		w.problem(c.ref(), ReasonSharedAcrossNamespaces, fmt.Sprintf(
			"it shares %v with %s without both permitting that; it stays so, but add the annotation %s to both",
			a, o, loadbalancer.AnnotationSharingNamespaces))
	}
	return ""
}

// orderHolds puts the primary family first and else leaves the order alone.
func (w *work) orderHolds(c *consumer) {
	if len(c.families()) < 2 {
		return
	}
	slices.SortStableFunc(c.holds, func(a, b netip.Addr) int {
		return slices.Index(c.families(), lbpool.FamilyOf(a)) - slices.Index(c.families(), lbpool.FamilyOf(b))
	})
}

// missing returns the wanted families in which a Service has no address.
func (c *consumer) missing(addrs []netip.Addr) (families []lbpool.Family) {
	for _, f := range c.families() {
		if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return lbpool.FamilyOf(a) == f }) {
			families = append(families, f)
		}
	}
	return families
}
