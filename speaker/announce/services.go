package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// address is one address with the Services that may use it together.
type address struct {
	addr  netip.Addr
	pool  int // into compiler.pools
	users []user
	ports map[lbpool.Port]int // which user listens; nil: nobody has asked
	owner int                 // node index, -1 nobody
	// outwished says that its holder keeps it only until owner, which changed
	// preferences name, has taken it.
	outwished bool
}

// user is one Service on an address.
type user struct {
	svc     *corev1.Service
	adverts []int
	// local are the nodes that have an endpoint to offer, in order; nil: the policy
	// is Cluster. Ending are those with one that ends and still serves.
	local, ending []int
}

// isAt reports whether node i has an endpoint, where that matters.
func (u *user) isAt(i int) bool {
	_, has := slices.BinarySearch(u.local, i)
	return has || u.local == nil
}

// readServices finds every address that may be announced, and says why the
// others may not.
func (k *compiler) readServices() {
	byAddr := map[netip.Addr]*address{}
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
	slices.SortFunc(k.addresses, func(a, b *address) int { return a.addr.Compare(b.addr) })
}

// addUser puts a Service on an address of a pool, unless it may not be
// announced for it. says is where the Service has it from.
func (k *compiler) addUser(byAddr map[netip.Addr]*address, svc *corev1.Service, a netip.Addr, pool int, says string) {
	if who, taken := k.owned[a]; taken {
		k.problem(snapshot.RefOf(svc), "UnsafeAddress", fmt.Sprintf("%s %s, which belongs to %s: it is not announced; take it out of pool %q", says, a, who, k.pools[pool].Name))
		return
	}
	u := user{svc: svc, adverts: k.advertsFor(svc, pool)}
	if len(u.adverts) == 0 {
		k.tellUnselected(svc, a, pool)
		return
	}
	if loadbalancer.IsLocal(svc) {
		u.local, u.ending = k.localNodes(svc, a)
	}
	e := byAddr[a]
	if e == nil {
		e = &address{addr: a, pool: pool, owner: -1}
		byAddr[a] = e
		k.addresses = append(k.addresses, e)
	}
	if other := e.conflict(svc); other != nil {
		k.problem(snapshot.RefOf(svc), "DuplicateAddress", fmt.Sprintf("%s is also held by the older Service %s, which does not share it: only that one is announced", a, snapshot.KeyOf(other)))
		return
	}
	e.seat(u)
}

// tellUnselected reports a Service that the service selectors of all
// advertisements of its pool leave out. Of a pool without any, the pool itself is
// reported, and one that BGP announces is no business of L2.
func (k *compiler) tellUnselected(svc *corev1.Service, a netip.Addr, pool int) {
	if p := k.pools[pool]; len(p.adverts) > 0 && !p.bgp {
		k.problem(snapshot.RefOf(svc), "NotAdvertised", fmt.Sprintf("%s is not announced: no advertisement of pool %q has a service selector that matches", a, p.Name))
	}
}

// announceable returns our load balancer Services, the oldest first.
func (k *compiler) announceable() []*corev1.Service {
	var out []*corev1.Service
	for _, svc := range k.c.Services.All() {
		if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) > 0 && isOurs(svc) {
			out = append(out, svc)
		}
	}
	slices.SortFunc(out, older)
	return out
}

func older(a, b *corev1.Service) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), snapshot.KeyOf(a).Compare(snapshot.KeyOf(b)))
}

// isOurs leaves Services of another class alone, unless the controller (which
// may run with another class) says that it gave the address.
func isOurs(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	return class == nil || *class == loadbalancer.Class || svc.Annotations[loadbalancer.AnnotationGiven] != ""
}

func (k *compiler) advertsFor(svc *corev1.Service, pool int) []int {
	all := k.pools[pool].adverts
	for _, i := range all {
		if len(k.adverts[i].services) == 0 || anyMatches(k.adverts[i].services, labels.Set(svc.Labels)) {
			continue
		}
		// The common case above copies nothing.
		return slices.DeleteFunc(slices.Clone(all), func(i int) bool {
			return !anyMatches(k.adverts[i].services, labels.Set(svc.Labels))
		})
	}
	return all
}

// localNodes are the nodes with a ready endpoint in the family of a or, where
// no node has one, those with an endpoint that still serves, which are ending.
func (k *compiler) localNodes(svc *corev1.Service, a netip.Addr) (local, ending []int) {
	family := discoveryv1.AddressTypeIPv4
	if a.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	ready := []int{}
	for _, s := range k.c.SlicesOf(snapshot.KeyOf(svc)) {
		if s.AddressType != family {
			continue
		}
		for _, e := range s.Endpoints {
			if e.NodeName == nil {
				continue
			}
			i, exists := k.nodeIndex[*e.NodeName]
			switch c := e.Conditions; {
			case !exists: // no node can serve it locally
			case c.Ready == nil || *c.Ready:
				ready = append(ready, i)
			case c.Serving != nil && *c.Serving:
				ending = append(ending, i)
			}
		}
	}
	slices.Sort(ready)
	slices.Sort(ending)
	if ready, ending = slices.Compact(ready), slices.Compact(ending); len(ready) == 0 && len(ending) > 0 {
		return ending, ending
	}
	return ready, ending
}

// seat puts a user on e.
func (e *address) seat(u user) {
	e.users = append(e.users, u)
	if e.ports != nil {
		e.listens(len(e.users) - 1)
	}
}

// listens enters the ports of a user.
func (e *address) listens(user int) {
	for _, p := range e.users[user].svc.Spec.Ports {
		if _, taken := e.ports[loadbalancer.PortOf(p)]; !taken {
			e.ports[loadbalancer.PortOf(p)] = user
		}
	}
}

// conflict returns the first Service on e that svc may not sit beside, by the
// rules of the allocator: a duplicate that slipped through must not be announced
// for both. Those on e get along with each other: who differs from one of them in
// more than its ports differs from all.
func (e *address) conflict(svc *corev1.Service) *corev1.Service {
	if len(e.users) == 0 {
		return nil
	}
	if first := e.users[0].svc; !loadbalancer.Alike(first, svc) {
		return first
	}
	if e.ports == nil { // most addresses have one user
		e.ports = map[lbpool.Port]int{}
		for i := range e.users {
			e.listens(i)
		}
	}
	first := len(e.users)
	for _, p := range svc.Spec.Ports {
		if user, taken := e.ports[loadbalancer.PortOf(p)]; taken {
			first = min(first, user)
		}
	}
	if first == len(e.users) {
		return nil
	}
	return e.users[first].svc
}

func nodeKey(name string) snapshot.Key { return snapshot.Key{Name: name} }
