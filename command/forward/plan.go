package forward

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
)

// Plan says which addresses are listened on and who answers behind each.
type Plan struct {
	Targets  map[netip.AddrPort]*balance.Set
	Problems []snapshot.Problem
}

// unprivileged is added to ports below 1024: 80 becomes 8080, 443 becomes 8443.
const unprivileged = 8000

// Port is where a Service port is listened on without being root.
func Port(service int32) uint16 {
	if service < 1024 {
		return uint16(service + unprivileged)
	}
	return uint16(service)
}

// Compile plans every LoadBalancer Service that has a loopback address, save
// the proxy's own, which the proxy itself listens for. prev, which may be nil,
// is the plan before: what it learned of the endpoints' health is kept. Services
// of addresses that this machine announces on the LAN are told that they are not
// carried.
func Compile(c *snapshot.Cluster, prev *Plan, proxy snapshot.Key, node string) *Plan {
	p := &Plan{Targets: map[netip.AddrPort]*balance.Set{}}
	announced := announcedBy(c, node)
	for _, s := range c.Services.Sorted() {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		for _, ip := range loadbalancer.Addresses(s) {
			switch {
			case announced[ip.String()]:
				p.tellUnserved(s, ip)
			case !ip.IsLoopback():
			case snapshot.KeyOf(s) != proxy:
				p.add(c, prev, s, ip, node)
			}
		}
	}
	return p
}

// announcedBy are the addresses that a node answers for.
func announcedBy(c *snapshot.Cluster, node string) map[string]bool {
	out := map[string]bool{}
	if s, ok := c.SpeakerStatuses.Get(snapshot.Key{Name: node}); ok {
		for _, a := range s.Status.Announcing {
			out[a.Address] = true
		}
	}
	return out
}

// tellUnserved tells a Service of an address that brings traffic here and is not
// carried. The kernel would refuse it: this machine does not hold the address,
// and to hold it beyond the end of this process would be to steal it.
func (p *Plan) tellUnserved(s *corev1.Service, ip netip.Addr) {
	p.Problems = append(p.Problems, snapshot.Problem{
		Object: snapshot.RefOf(s), Reason: "NotServed",
		Message: fmt.Sprintf("`quayside up --announce` brings the traffic for %s here, and carries connections to loopback addresses only: "+
			"clients are served if kube-proxy on this machine knows the Service, and by nobody if not; on a node of a cluster run `quayside speaker` instead", ip),
	})
}

func (p *Plan) add(c *snapshot.Cluster, prev *Plan, s *corev1.Service, ip netip.Addr, node string) {
	slices := c.SlicesOf(snapshot.KeyOf(s))
	for _, port := range s.Spec.Ports {
		if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
			p.Problems = append(p.Problems, snapshot.Problem{
				Object: snapshot.RefOf(s), Reason: "ProtocolNotForwarded",
				Message: fmt.Sprintf("port %d is %s; without a cluster only TCP ports are forwarded", port.Port, port.Protocol),
			})
			continue
		}
		at := netip.AddrPortFrom(ip, Port(port.Port))
		ref := balance.PortRef{Number: port.Port}
		set := balance.Compile(s, slices, ref, node, "", balance.Options{AllowLoopback: true})
		if prev != nil {
			set = set.Keep(prev.Targets[at])
		}
		p.Targets[at] = set
	}
}
