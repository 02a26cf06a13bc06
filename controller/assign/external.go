package assign

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// occupyListed puts Services on the addresses of our pools that they list in
// spec.externalIPs, after everybody who has one by status: whoever has it keeps
// it, and among those who only list it the oldest comes first.
//
// They sit there whether or not Options.ExternalIPs has them announced, and share
// with nobody new: kube-proxy takes the traffic to such an address on every node,
// so a Service that was given it would never see its own.
//
// Whoever may write a Service may list any address, so that alone keeps nothing from
// others for which its owner could not have asked: no address of a pool that does not
// serve the Service, none that somebody has, and no more than maxRequested in all. The
// others are given last, see yieldListed, and operators are told of them.
func (w *work) occupyListed() {
	if len(w.listers) == 0 {
		return
	}
	slices.SortFunc(w.listers, func(a, b *corev1.Service) int { return seniorityOf(a).compare(seniorityOf(b)) })
	first := lbpool.NewAllocations(lbpool.Divide(nil)) // those who have an address by listing it
	var occupy []func()                                // when all are judged, for those who list hold nothing
	for _, svc := range w.listers {
		key := snapshot.KeyOf(svc)
		lister := loadbalancer.HolderOf(svc)
		listed := &lbpool.Holder{Realm: key.Namespace, Name: key.Name + " (in spec.externalIPs)"}
		var self *lbpool.Holder
		own := w.consumerOf(svc)
		if own != nil {
			own.listed, self = listed, &own.holder
		}
		kept := 0
		for _, a := range w.readListed(svc) {
			if own != nil && own.find(a) >= 0 && slices.Contains(own.holds, a) {
				continue // it has it anyway
			}
			if p := w.pools.poolOf(a); p != nil && w.nodes[a] == "" && w.links[a] == "" {
				w.listing = told(w.listing, p, key, a)
			}
			if refused := w.refuseListed(&lister, self, a, first); !refused.isZero() {
				w.problemListed(svc, refused)
				continue
			}
			w.tellUnadmitted(svc, &lister, a, first)
			first.Occupy(a, &lister)
			if refused := w.yields(svc, a, kept); !refused.isZero() {
				w.problemListed(svc, refused)
				w.yielding = append(w.yielding, a)
				continue
			}
			kept++
			p := w.pools.poolOf(a)
			w.keeping = told(w.keeping, p, key, a)
			w.listed = append(w.listed, Holding{Address: a, Service: key, Pool: p.obj.Name})
			occupy = append(occupy, func() { w.pools.allocations.Occupy(a, listed) })
		}
	}
	for _, do := range occupy {
		do()
	}
}

// told adds to what is told of a pool that a Service lists an address of it.
func told(of map[*pool][]string, p *pool, lister snapshot.Key, a netip.Addr) map[*pool][]string {
	if of == nil {
		of = map[*pool][]string{}
	}
	of[p] = append(of[p], fmt.Sprintf("%v by %v", a, lister))
	return of
}

// yields says why an address that a Service has by listing it, beside kept others, may be
// given to another all the same, or nothing.
func (w *work) yields(svc *corev1.Service, a netip.Addr, kept int) denial {
	const until = "it is announced only until the pool gives it to another"
	switch p := w.pools.poolOf(a); {
	case !w.serves(p, svc):
		return denial{ReasonPoolNotAllowed, fmt.Sprintf(
			"spec.externalIPs lists %v, and pool %s does not serve this Service: %s; see its spec.serviceAllocation", a, p.obj.Name, until)}
	case kept >= maxRequested:
		return denial{ReasonBadRequest, fmt.Sprintf(
			"spec.externalIPs lists %v, and more than %d addresses of pools: %s; divide them among several Services", a, maxRequested, until)}
	}
	return denial{}
}

// yieldListed lets pools give last what Services list without keeping it from others.
// What rests is left to that.
func (w *work) yieldListed() {
	for _, a := range w.yielding {
		w.pools.allocations.Defer(a)
	}
}

// readListed returns the addresses in spec.externalIPs, each once, and tells of what is
// none.
func (w *work) readListed(svc *corev1.Service) []netip.Addr {
	for _, text := range svc.Spec.ExternalIPs {
		if _, ok := loadbalancer.ParseAddress(text); !ok {
			w.problemListed(svc, denial{ReasonBadRequest, fmt.Sprintf("spec.externalIPs: %q is no IP address; write one, or take it out", text)})
		}
	}
	return loadbalancer.ParseAddresses(svc.Spec.ExternalIPs)
}

// refuseListed says why an address is not a Service's although it lists it.
// Of first are those who list it too, and come first; self is the
// lister where it has addresses by status.
func (w *work) refuseListed(lister, self *lbpool.Holder, a netip.Addr, first *lbpool.Allocations) denial {
	const unheard = "it is not announced; take it out of the Service"
	owner, isNode := w.nodes[a]
	link, isLink := w.links[a]
	switch {
	case isNode:
		return denial{ReasonNodeAddress, fmt.Sprintf("spec.externalIPs lists %v, the own address of node %s: %s", a, owner, unheard)}
	case w.pools.poolOf(a) == nil:
		return denial{ReasonAddressOutsidePools, fmt.Sprintf("spec.externalIPs lists %v, which is in no pool: %s or add it to an IPAddressPool", a, unheard)}
	case isLink:
		return denial{ReasonNodeAddress, fmt.Sprintf("spec.externalIPs lists %v, %s: %s", a, link, unheard)}
	}
	inUse := func(o *lbpool.Holder, how, why string) denial {
		return denial{ReasonAddressInUse, fmt.Sprintf(
			"spec.externalIPs of %s lists %v, %s %s, %s: it is not announced for %s", lister, a, how, o, why, lister)}
	}
	if o, why := w.pools.allocations.Clash(a, lister, self); o != nil {
		return inUse(o, "held by", why)
	}
	if o, why := first.Clash(a, lister); o != nil {
		return inUse(o, "listed too by the older", why)
	}
	return denial{}
}

// tellUnadmitted reports on a Service that it shares an address with one of another
// namespace, although not both permit that. Somebody wrote it there, so it stays,
// as adopted shares do.
func (w *work) tellUnadmitted(svc *corev1.Service, lister *lbpool.Holder, a netip.Addr, first *lbpool.Allocations) {
	o := first.Unadmitted(a, lister)
	if o == nil {
		o = w.pools.allocations.Unadmitted(a, lister)
	}
	if o != nil {
		w.problemListed(svc, denial{ReasonSharedAcrossNamespaces, fmt.Sprintf(
			"spec.externalIPs lists %v, which it shares with %s without both permitting that; add the annotation %s to both",
			a, o, loadbalancer.AnnotationSharingNamespaces)})
	}
}

// problemListed reports what is wrong with spec.externalIPs, where speakers
// announce it. The condition and events of the Service are about what we gave.
func (w *work) problemListed(svc *corev1.Service, refused denial) {
	if w.opts.ExternalIPs {
		w.problem(snapshot.RefOf(svc), refused.reason, refused.message)
	}
}

// obstacle returns who keeps a Service from an address that it asks for, and
// why, or nil. What it lists itself may become its own by status, too.
func (w *work) obstacle(c *consumer, a netip.Addr) (*lbpool.Holder, string) {
	return w.pools.allocations.Obstacle(a, &c.holder, c.listed)
}
