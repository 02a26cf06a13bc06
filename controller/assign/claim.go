package assign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/controller/snapshot"
	"quayside.io/lbpool"
)

// A claim is a Service in our own words. What stands above the line is read
// from the object once; the rest is one Compile's decision about it.
type claim struct {
	svc     *corev1.Service
	key     snapshot.Key
	created int64 // unix seconds; who is older wins
	tenant  lbpool.Tenant

	have     []netip.Addr    // in status, each once
	alien    string          // an entry of status that is no address of ours for sure: a hostname
	given    bool            // the annotation says that we gave what is in status
	families []lbpool.Family // wanted, primary first
	policy   corev1.IPFamilyPolicy
	pool     string       // asked for by name
	wants    []netip.Addr // asked for by address
	fault    refusal      // the request cannot be read

	// homes are the pools of have in estate; nil: in none.
	homes  []*pool
	estate *lbpool.Estate
	// settled says that the object is as it should be if it keeps exactly what
	// it has, and nothing is refused.
	settled bool

	round    uint64
	managed  bool
	foreign  bool         // managed, but another controller's address: left alone
	holds    []netip.Addr // the decision: what belongs in status
	lost     []loss       // what is taken away
	leaving  bool         // what it has goes with the next plan; this one tells
	refused  refusal      // why it does not have what it asks for
	inflight []netip.Addr
	listed   *lbpool.Tenant // itself, on what it lists in spec.externalIPs
}

// A refusal is a reason from the list in names.go and a sentence.
type refusal struct{ reason, message string }

func (r refusal) isZero() bool { return r.reason == "" }

// A loss is an address taken away, and why, as the end of a sentence.
type loss struct {
	addr netip.Addr
	why  string
}

// newClaim reads a Service.
func newClaim(svc *corev1.Service) *claim {
	c := &claim{
		svc:     svc,
		key:     snapshot.KeyOf(svc),
		created: svc.CreationTimestamp.Unix(),
		policy:  corev1.IPFamilyPolicySingleStack,
	}
	if svc.Spec.IPFamilyPolicy != nil {
		c.policy = *svc.Spec.IPFamilyPolicy
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && in.IP != "" {
			if a = a.Unmap().WithZone(""); !slices.Contains(c.have, a) {
				c.have = append(c.have, a)
			}
		} else {
			c.alien = in.IP + in.Hostname
		}
	}
	_, c.given = svc.Annotations[AnnotationGiven]
	c.tenant = tenantOf(svc, c.key)
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		c.families = familiesOf(svc, c.policy)
		c.pool, _ = annotation(svc, "address-pool")
		c.wants, c.fault = requestOf(svc)
		for _, a := range c.wants {
			if c.fault.isZero() && !slices.Contains(c.families, lbpool.FamilyOf(a)) {
				c.fault = refusal{ReasonFamilyMismatch, fmt.Sprintf(
					"it asks for %v, but the Service has no %v; change spec.ipFamilies or the request", a, lbpool.FamilyOf(a))}
			}
		}
	}
	return c
}

// annotation returns the value of a key under our prefix, or MetalLB's.
func annotation(svc *corev1.Service, name string) (string, bool) {
	if len(svc.Annotations) == 0 {
		return "", false
	}
	if v, ok := svc.Annotations[ourPrefix+name]; ok {
		return v, true
	}
	for _, prefix := range metallbPrefixes() {
		if v, ok := svc.Annotations[prefix+name]; ok {
			return v, true
		}
	}
	return "", false
}

func tenantOf(svc *corev1.Service, key snapshot.Key) lbpool.Tenant {
	t := lbpool.Tenant{Name: key.String(), Realm: key.Namespace}
	t.Key, _ = annotation(svc, "allow-shared-ip")
	if list := svc.Annotations[AnnotationSharingNamespaces]; list != "" {
		for name := range strings.SplitSeq(list, ",") {
			t.Admits = append(t.Admits, strings.TrimSpace(name))
		}
	}
	t.Ports = make([]lbpool.Port, 0, len(svc.Spec.Ports))
	for _, p := range svc.Spec.Ports {
		protocol := string(p.Protocol)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		t.Ports = append(t.Ports, lbpool.Port{Protocol: protocol, Number: p.Port})
	}
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		t.Backend = "Local " + labels.Set(svc.Spec.Selector).String()
	}
	return t
}

// familiesOf returns the families a Service wants, primary first. An API
// server fills ipFamilies in; from files it may have to be guessed.
func familiesOf(svc *corev1.Service, policy corev1.IPFamilyPolicy) []lbpool.Family {
	families := make([]lbpool.Family, 0, 2)
	add := func(f lbpool.Family) {
		if !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	for _, f := range svc.Spec.IPFamilies {
		if f == corev1.IPv6Protocol {
			add(lbpool.IPv6)
		} else {
			add(lbpool.IPv4)
		}
	}
	if len(families) == 0 {
		for _, ip := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
			if a, err := netip.ParseAddr(ip); err == nil {
				add(lbpool.FamilyOf(a.Unmap()))
			}
		}
	}
	guessed := len(families) == 0
	if guessed {
		add(lbpool.IPv4)
	}
	switch {
	case policy == corev1.IPFamilyPolicySingleStack:
		return families[:1]
	case policy == corev1.IPFamilyPolicyRequireDualStack || guessed:
		add(lbpool.IPv4)
		add(lbpool.IPv6)
	}
	return families
}

// requestOf reads the addresses that a Service asks for.
func requestOf(svc *corev1.Service) ([]netip.Addr, refusal) {
	list, _ := annotation(svc, "loadBalancerIPs")
	wants, fault := parseRequest("the annotation loadBalancerIPs", list)
	field, fieldFault := parseRequest("spec.loadBalancerIP", svc.Spec.LoadBalancerIP)
	switch {
	case !fault.isZero():
		return nil, fault
	case !fieldFault.isZero():
		return nil, fieldFault
	case len(wants) == 0:
		return field, refusal{}
	case len(field) > 0 && !slices.Contains(wants, field[0]):
		return nil, refusal{ReasonConflictingRequest, fmt.Sprintf(
			"spec.loadBalancerIP asks for %v and the annotation loadBalancerIPs for %s; remove one", field[0], list)}
	}
	return wants, refusal{}
}

func parseRequest(where, list string) (wants []netip.Addr, fault refusal) {
	if strings.TrimSpace(list) == "" {
		return nil, refusal{}
	}
	for s := range strings.SplitSeq(list, ",") {
		a, err := lbpool.ParseAddr(s)
		if err != nil {
			return nil, refusal{ReasonBadRequest, where + ": " + err.Error()}
		}
		if !slices.Contains(wants, a) {
			wants = append(wants, a)
		}
	}
	return wants, refusal{}
}

// isOutside reports whether an address in status is in none of our pools.
func (c *claim) isOutside() bool { return slices.Contains(c.homes, nil) }

// merge puts claims, in any order, into a list that is in order.
func merge(sorted, fresh []*claim) []*claim {
	slices.SortFunc(fresh, (*claim).compare)
	i, j := len(sorted)-1, len(fresh)-1
	sorted = append(sorted, fresh...)
	for k := len(sorted) - 1; j >= 0; k-- {
		if i >= 0 && sorted[i].compare(fresh[j]) > 0 {
			sorted[k] = sorted[i]
			i--
		} else {
			sorted[k] = fresh[j]
			j--
		}
	}
	return sorted
}

// isContent reports whether a Service of ours keeps exactly what it has.
func (c *claim) isContent() bool {
	return c.managed && !c.foreign && c.refused.isZero() && len(c.holds) > 0 && slices.Equal(c.holds, c.have)
}

// compare orders claims: who was created first, then by key.
func (c *claim) compare(o *claim) int {
	if c.created != o.created {
		if c.created < o.created {
			return -1
		}
		return 1
	}
	return c.key.Compare(o.key)
}

// begin forgets the decision of an earlier Compile.
func (c *claim) begin(round uint64, managed bool, ps *pools) {
	if c.estate != ps.estate {
		c.estate, c.homes, c.settled = ps.estate, c.homes[:0], false
		for _, a := range c.have {
			c.homes = append(c.homes, ps.poolOf(a))
		}
	}
	c.round, c.managed, c.foreign = round, managed, false
	c.holds, c.lost, c.inflight, c.leaving = c.holds[:0], nil, nil, false
	c.refused, c.listed = refusal{}, nil
}
