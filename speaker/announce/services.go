package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// holding is one address with the Services that share it, whatever protocol announces it.
type holding struct {
	addr  netip.Addr
	pool  int // into compiler.pools
	users []user
	ports map[lbpool.Port]int // the user of each port; nil: not computed yet

	// bgp are the BGP advertisements of its users, and prefixes, by the same index, what
	// each announces.
	bgp      []int // into compiler.bgp
	prefixes []netip.Prefix
}

// user is one Service on an address.
type user struct {
	svc     *corev1.Service
	adverts []int // of layer 2, into compiler.adverts
	bgp     []int // into compiler.bgp
	// local are the nodes with a usable endpoint, sorted; nil: externalTrafficPolicy is
	// Cluster. ending are those whose endpoints are terminating and still serve; for layer 2
	// local has some of them, see countEnding.
	local, ending []int
	// idle says that routers would send it traffic for which there is no endpoint at all,
	// and its policy is Cluster.
	idle bool
}

// asks reports whether it matters where u's endpoints are, or whether there is one.
func (u *user) asks() bool { return u.local != nil || len(u.bgp) > 0 }

func (u *user) moveTo(p places) { u.local, u.ending, u.idle = p.local, p.ending, p.none }

// isAt reports whether node i has an endpoint or needs none.
func (u *user) isAt(i int) bool {
	_, has := slices.BinarySearch(u.local, i)
	return has || u.local == nil
}

// touches reports whether node i has an endpoint of u, if only one that is terminating; with
// externalTrafficPolicy Cluster that is nobody's concern.
func (u *user) touches(i int) bool {
	_, ends := slices.BinarySearch(u.ending, i)
	return u.local != nil && (ends || u.isAt(i))
}

// readServices finds every address that may be announced, by layer 2 or BGP, and reports
// why the others may not.
func (k *compiler) readServices() {
	byAddr := map[netip.Addr]*holding{}
	for _, svc := range k.announceable() {
		for _, a := range loadbalancer.Addresses(svc) {
			pool := k.homes.Of(a)
			if pool < 0 {
				k.problem(snapshot.RefOf(svc), "OutsidePools", fmt.Sprintf("status holds %s, which no IPAddressPool contains: it is not announced", a))
				continue
			}
			k.addUser(byAddr, svc, a, pool, "status holds")
		}
	}
	if k.opts.ExternalIPs {
		k.readExternal(byAddr)
	}
	slices.SortFunc(k.holdings, func(a, b *holding) int { return a.addr.Compare(b.addr) })
}

// addUser adds a Service to an address of a pool, unless the address may not be announced
// for it. says is where the Service has the address from, for messages.
func (k *compiler) addUser(byAddr map[netip.Addr]*holding, svc *corev1.Service, a netip.Addr, pool int, says string) {
	if who := k.ownerOf(a); who != "" {
		k.problem(snapshot.RefOf(svc), "UnsafeAddress", fmt.Sprintf("%s %s, which belongs to %s: it is not announced; take it out of pool %q", says, a, who, k.pools[pool].Name))
		return
	}
	u := user{svc: svc, adverts: k.advertsFor(svc, k.pools[pool].adverts), bgp: k.routesFor(svc, k.pools[pool].bgp)}
	if len(u.adverts)+len(u.bgp) == 0 {
		k.tellUnselected(svc, a, pool)
		return
	}
	if loadbalancer.IsLocal(svc) || len(u.bgp) > 0 {
		u.moveTo(k.placesOf(question{snapshot.KeyOf(svc), a.Is6()}))
	}
	h := byAddr[a]
	if h == nil {
		h = &holding{addr: a, pool: pool}
		byAddr[a] = h
		k.holdings = append(k.holdings, h)
	}
	if other := h.conflict(svc); other != nil {
		k.problem(snapshot.RefOf(svc), "DuplicateAddress", fmt.Sprintf("%s is also held by the %s %s, which does not share it: only that one is announced", a, standing(other, svc), snapshot.KeyOf(other)))
		return
	}
	h.attach(u)
}

// tellUnselected reports a Service that no advertisement of its pool selects. A pool
// without advertisements is reported by package assign.
func (k *compiler) tellUnselected(svc *corev1.Service, a netip.Addr, pool int) {
	if p := k.pools[pool]; len(p.adverts)+len(p.bgp) > 0 {
		k.problem(snapshot.RefOf(svc), "NotAdvertised", fmt.Sprintf("%s is not announced: no advertisement of pool %q has a service selector that matches", a, p.Name))
	}
}

// announceable returns the load balancer Services of our class, the oldest first, but those
// that have changed how they share their addresses last: the allocator decides so, too.
func (k *compiler) announceable() []*corev1.Service {
	var out []*corev1.Service
	for _, svc := range k.c.Services.All() {
		if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) > 0 && isOurs(svc) {
			out = append(out, svc)
		}
	}
	slices.SortFunc(out, older)
	var changed []*corev1.Service
	out = slices.DeleteFunc(out, func(svc *corev1.Service) bool {
		is := loadbalancer.HasNewTerms(svc)
		if is {
			changed = append(changed, svc)
		}
		return is
	})
	return append(out, changed...)
}

func older(a, b *corev1.Service) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), snapshot.KeyOf(a).Compare(snapshot.KeyOf(b)))
}

// isOurs reports whether a Service is of our class, or has an address from our controller,
// which may run with another class.
func isOurs(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	return class == nil || *class == loadbalancer.Class || svc.Annotations[loadbalancer.AnnotationGiven] != ""
}

// advertsFor are those of a pool's L2 advertisements that select svc.
func (k *compiler) advertsFor(svc *corev1.Service, pool []int) []int {
	return selecting(pool, svc, func(i int) []labels.Selector { return k.adverts[i].services })
}

// routesFor are those of a pool's BGP advertisements that select svc.
func (k *compiler) routesFor(svc *corev1.Service, pool []int) []int {
	return selecting(pool, svc, func(i int) []labels.Selector { return k.bgp[i].services })
}

// selecting returns those of all whose selectors match svc. It does not change all.
func selecting(all []int, svc *corev1.Service, selectors func(int) []labels.Selector) []int {
	leavesOut := func(i int) bool {
		s := selectors(i)
		return len(s) > 0 && !anyMatches(s, labels.Set(svc.Labels))
	}
	if slices.ContainsFunc(all, leavesOut) { // the common case copies nothing
		return slices.DeleteFunc(slices.Clone(all), leavesOut)
	}
	return all
}

// standing says what a Service is beside the one that comes behind it.
func standing(first, second *corev1.Service) string {
	if older(first, second) < 0 {
		return "older Service"
	}
	return "Service"
}

// holdingOf is the index of what there is on a.
func (k *compiler) holdingOf(a netip.Addr) (index int, exists bool) {
	return slices.BinarySearchFunc(k.holdings, a, func(h *holding, a netip.Addr) int { return h.addr.Compare(a) })
}

// attach adds a user to h.
func (h *holding) attach(u user) {
	h.users = append(h.users, u)
	if h.ports != nil {
		h.listens(len(h.users) - 1)
	}
}

// listens records the ports of a user.
func (h *holding) listens(user int) {
	for _, p := range h.users[user].svc.Spec.Ports {
		if _, taken := h.ports[loadbalancer.PortOf(p)]; !taken {
			h.ports[loadbalancer.PortOf(p)] = user
		}
	}
}

// conflict returns the first Service on h with which svc may not share the address, by the
// rules of the allocator: an address that was allocated twice must not be announced for
// both. Those on h may share it with each other, so a Service that differs from one of
// them in more than its ports differs from all.
func (h *holding) conflict(svc *corev1.Service) *corev1.Service {
	if len(h.users) == 0 {
		return nil
	}
	if first := h.users[0].svc; !loadbalancer.Alike(first, svc) {
		return first
	}
	if h.ports == nil { // most addresses have one user
		h.ports = map[lbpool.Port]int{}
		for i := range h.users {
			h.listens(i)
		}
	}
	first := len(h.users)
	for _, p := range svc.Spec.Ports {
		if user, taken := h.ports[loadbalancer.PortOf(p)]; taken {
			first = min(first, user)
		}
	}
	if first == len(h.users) {
		return nil
	}
	return h.users[first].svc
}

func nodeKey(name string) snapshot.Key { return snapshot.Key{Name: name} }
