package balance

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
)

// Endpoint is one address that serves a port of a Service.
type Endpoint struct {
	Addr netip.AddrPort
	Pod  snapshot.Key // the pod behind it; zero if the slice names none
	Node string       // empty if the slice names none
	Zone string

	// Health is shared by every Set of one history, see Keep. It is never nil
	// in a Set that Compile made.
	Health *Health
}

// Set is the endpoints behind one port of a Service. It is immutable, save for
// the Health of its endpoints.
type Set struct {
	// Endpoints are ordered by address, so that equal inputs give equal sets.
	Endpoints []Endpoint
	// Draining says that no endpoint is ready and these are the ones that
	// terminate but still serve.
	Draining bool
	// Why says in one sentence why Endpoints is empty. It is empty otherwise.
	Why string
	// Refused names endpoints left out because of what they are: loopback,
	// link-local, a host name. Someone may have meant them to work.
	Refused []string

	plan *plan // nil: in turn
}

// Options are the circumstances that change what a Service means.
type Options struct {
	// AnyNode ignores externalTrafficPolicy: Local, as ingress-nginx does.
	AnyNode bool
	// ServiceAddress takes the Service's own address for the only endpoint, and leaves
	// the choice among its pods to the cluster's network.
	ServiceAddress bool
	// External is what a Service of type ExternalName leads to.
	External External
	// AllowLoopback accepts endpoints on loopback addresses, which in a cluster
	// would let whoever writes an EndpointSlice reach into the proxy itself.
	AllowLoopback bool
	// Policy is how requests are spread. AnyNode also ignores the Service's
	// sessionAffinity, as ingress-nginx does; otherwise ClientIP is obeyed where
	// the policy has neither a cookie nor a hash.
	Policy Policy
	// CookieKey seals the cookies of a Policy that has some.
	CookieKey CookieKey
}

// Compile returns the endpoints of svc behind port, as a proxy on this node and
// in this zone may use them: the ready ones, or while none is ready those that
// terminate and still serve. A pod that has an address of each family appears
// once, under the Service's first family.
func Compile(svc *corev1.Service, list []*discoveryv1.EndpointSlice, port PortRef, node, zone string, o Options) *Set {
	if svc == nil {
		return &Set{Why: "the Service does not exist"}
	}
	b := builder{service: svc, options: o}
	identity := identityOf(svc, port)
	byClient := svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && !o.AnyNode
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return b.external(o.External, port).arrange(o.Policy, byClient, identity, o.CookieKey)
	}
	var err error
	if b.port, err = port.Find(svc); err != nil {
		return &Set{Why: err.Error()}
	}
	if o.ServiceAddress {
		return b.own().arrange(Policy{}, false, nil, CookieKey{})
	}
	for _, s := range byFamily(list, svc) {
		b.slice(s)
	}
	return b.set(node, zone).arrange(o.Policy, byClient, identity, o.CookieKey)
}

// identityOf tells a backend from others, and from one of the same name before it: every
// replica knows the UID. Without one, as in files, it is the name. Ports differ, so that
// a canary may be another port of the same Service.
func identityOf(svc *corev1.Service, port PortRef) []byte {
	number := port.Number
	if p, err := port.Find(svc); err == nil {
		number = p.Port
	}
	return fmt.Appendf(nil, "%s\x00%d", cmp.Or(string(svc.UID), svc.Namespace+"/"+svc.Name), number)
}

// Keep returns s with the Health of those endpoints that prev holds too, so
// that a change elsewhere in the Service does not forgive a dead pod.
func (s *Set) Keep(prev *Set) *Set {
	if prev == nil || len(prev.Endpoints) == 0 || len(s.Endpoints) == 0 {
		return s
	}
	n := *s
	n.Endpoints = slices.Clone(s.Endpoints)
	for i := range n.Endpoints {
		e := &n.Endpoints[i]
		if was := prev.same(e); was != nil {
			e.Health = was.Health
		}
	}
	return &n
}

// Joined notes when the endpoints that prev does not have came, for a slow
// start. Those of a first set have all been there before us.
func (s *Set) Joined(prev *Set, now time.Time) {
	if s.plan == nil || s.plan.policy.SlowStart == 0 || prev == nil || len(prev.Endpoints) == 0 {
		return
	}
	for i := range s.Endpoints {
		if e := &s.Endpoints[i]; prev.same(e) == nil {
			e.Health.joined.Store(now.UnixNano())
		}
	}
}

// panics reports whether more than half of the endpoints are ejected. Then the
// fault is hardly theirs, and those that still take connections are asked again.
func (s *Set) panics() bool {
	ejected := 0
	for i := range s.Endpoints {
		if s.Endpoints[i].Health.Ejected() {
			ejected++
		}
	}
	return 2*ejected > len(s.Endpoints)
}

// Equal reports whether s and o describe the same endpoints for the same
// reasons, whatever their health.
func (s *Set) Equal(o *Set) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.plan.same(o.plan) && s.Why == o.Why && s.Draining == o.Draining && slices.Equal(s.Refused, o.Refused) &&
		slices.EqualFunc(s.Endpoints, o.Endpoints, func(a, b Endpoint) bool {
			a.Health, b.Health = nil, nil
			return a == b
		})
}

// same returns the endpoint of s that is e: the same pod at the same address. nil: it has none.
func (s *Set) same(e *Endpoint) *Endpoint {
	i, ok := slices.BinarySearchFunc(s.Endpoints, e.Addr, func(have Endpoint, a netip.AddrPort) int { return have.Addr.Compare(a) })
	if !ok || s.Endpoints[i].Pod != e.Pod {
		return nil
	}
	return &s.Endpoints[i]
}

// byFamily puts the slices of the Service's first family before the others.
func byFamily(list []*discoveryv1.EndpointSlice, svc *corev1.Service) []*discoveryv1.EndpointSlice {
	if len(svc.Spec.IPFamilies) == 0 {
		return list
	}
	first := discoveryv1.AddressType(svc.Spec.IPFamilies[0])
	rank := func(s *discoveryv1.EndpointSlice) int {
		if s.AddressType == first {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(list), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(rank(a), rank(b))
	})
}
