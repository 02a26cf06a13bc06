package proxy

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
)

// serviceEndpoints returns where a port of a Service is answered, if host is the
// name of one: NAME.NAMESPACE.svc, perhaps with cluster.local behind it. One whose
// endpoints are not in the cluster is left to DNS. Of a headless one the port may also be
// that of the pods, as DNS would have it.
func (p *Proxy) serviceEndpoints(host string, port uint16) (endpoints []netip.AddrPort, ours bool, err error) {
	key, ok := serviceNamed(host)
	if !ok {
		return nil, false, nil
	}
	c := p.options.Source.Snapshot()
	svc, ok := c.Services.Get(key)
	if !ok || svc.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, false, nil
	}
	ref, own := balance.PortRef{Number: int32(port)}, uint16(0)
	if _, unknown := ref.Find(svc); unknown != nil && svc.Spec.ClusterIP == corev1.ClusterIPNone && len(svc.Spec.Ports) > 0 {
		ref, own = balance.PortRef{Number: svc.Spec.Ports[0].Port}, port // the name is its pods', whose ports nobody maps
	}
	// For the outside, traffic policies of Services do not count: we ask for ourselves.
	set := balance.Compile(svc, c.SlicesOf(key), ref, p.options.NodeName, zoneOf(c, p.options.NodeName),
		balance.Options{AnyNode: true, AllowLoopback: p.options.AllowLoopback})
	for _, e := range set.Endpoints {
		endpoints = append(endpoints, netip.AddrPortFrom(e.Addr.Addr(), cmp.Or(own, e.Addr.Port())))
	}
	if len(endpoints) == 0 {
		return nil, true, fmt.Errorf("nobody answers for Service %s: %s", key, set.Why)
	}
	return endpoints, true, nil
}

// serviceNamed returns the Service that a DNS name means in a cluster.
func serviceNamed(host string) (snapshot.Key, bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	host = strings.TrimSuffix(host, ".cluster.local")
	rest, ok := strings.CutSuffix(host, ".svc")
	if !ok {
		return snapshot.Key{}, false
	}
	name, namespace, ok := strings.Cut(rest, ".")
	return snapshot.Key{Namespace: namespace, Name: name}, ok && name != "" && namespace != "" && !strings.Contains(namespace, ".")
}
