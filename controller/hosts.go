package controller

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// hostRest is how long a node is published whose proxy is away. A rollout
// restarts them all, and each change is a write to every Ingress, and one to DNS.
const hostRest = time.Minute

// hosts are the nodes on whose network proxies listen.
type hosts struct {
	service snapshot.Key         // selects the proxies; zero: there are no hosts
	since   map[string]time.Time // when the proxy of a node was found to be away; zero: it is ready
	of      []*discoveryv1.EndpointSlice
}

// watch returns a channel that is ready when endpoints have changed, of whatever Service;
// nil if there are no hosts.
func (h *hosts) watch(source *cluster.Source) (c <-chan struct{}, stop func()) {
	if h.service == (snapshot.Key{}) {
		return nil, func() {}
	}
	s := source.Watch(snapshot.EndpointSlice)
	return s.C(), s.Stop
}

// changed reports whether the endpoints are others than those published last. Those of other
// Services may change a thousand times a second.
func (h *hosts) changed(c *snapshot.Cluster) bool {
	return !slices.Equal(h.of, c.SlicesOf(h.service))
}

// publish returns o with the addresses of the hosts, if there are to be any, and when they
// may change by time alone. With no proxy that is ready they stay as they were: nothing
// else is better, and resolvers remember that a name has no address.
func (h *hosts) publish(o assign.Options, c *snapshot.Cluster, now time.Time) (_ assign.Options, next time.Time) {
	if h.service == (snapshot.Key{}) {
		return o, next
	}
	h.of = c.SlicesOf(h.service)
	next = h.see(h.ready(), now)
	o.PublishAddresses = nil
	for name := range h.since {
		if node, ok := c.Nodes.Get(snapshot.Key{Name: name}); ok {
			o.PublishAddresses = append(o.PublishAddresses, addressesOf(node)...)
		}
	}
	slices.SortFunc(o.PublishAddresses, netip.Addr.Compare)
	o.PublishAddresses = slices.Compact(o.PublishAddresses)
	return o, next
}

// see notes where proxies are ready, forgets where they have long been away, and returns when
// it will forget more.
func (h *hosts) see(ready map[string]bool, now time.Time) (next time.Time) {
	if h.since == nil {
		h.since = map[string]time.Time{}
	}
	for name := range ready {
		h.since[name] = time.Time{}
	}
	for name, since := range h.since {
		if ready[name] {
			continue
		}
		if since.IsZero() {
			since = now
			h.since[name] = now
		}
		switch leaves := since.Add(hostRest); {
		case len(ready) == 0:
		case !leaves.After(now):
			delete(h.since, name)
		default:
			next = earlier(next, leaves)
		}
	}
	return next
}

// ready are the nodes with a proxy that takes connections.
func (h *hosts) ready() map[string]bool {
	nodes := map[string]bool{}
	for _, slice := range h.of {
		for _, e := range slice.Endpoints {
			if e.NodeName != nil && loadbalancer.StateOf(e.Conditions) == loadbalancer.Ready {
				nodes[*e.NodeName] = true
			}
		}
	}
	return nodes
}

// addressesOf are those at which others reach a node: from outside, where it has such.
func addressesOf(node *corev1.Node) []netip.Addr {
	for _, of := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		if list := slices.Collect(loadbalancer.NodeAddresses(node, of)); len(list) > 0 {
			return list
		}
	}
	return nil
}
