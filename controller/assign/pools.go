package assign

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// pools is every IPAddressPool in our own words. It depends on what people
// write in the pool objects alone, so it is kept as long as that is the same.
type pools struct {
	list        []*pool // older first: the order in which overlaps are settled
	order       []*pool // the order in which a Service tries them
	byName      map[string]*pool
	poolIndex   *lbpool.PoolIndex
	allocations *lbpool.Allocations
}

// A pool is one IPAddressPool.
type pool struct {
	obj        *v1alpha1.IPAddressPool
	index      int // in pools.list and in poolIndex
	auto       bool
	drain      bool
	priority   int
	namespaces []string
	ofSpace    []labels.Selector
	ofService  []labels.Selector
	problems   []snapshot.Problem
}

// compilePools reads every pool, the good part of a bad one too.
func compilePools(objects []*v1alpha1.IPAddressPool) *pools {
	ps := &pools{byName: make(map[string]*pool, len(objects))}
	var raw []*lbpool.Pool
	for i, o := range loadbalancer.ByAge(objects) {
		p := &pool{obj: o, index: i, drain: o.Spec.Drain, auto: o.Spec.AutoAssign == nil || *o.Spec.AutoAssign}
		raw = append(raw, p.readAddresses())
		p.readAllocation()
		ps.list = append(ps.list, p)
		ps.byName[o.Name] = p
	}
	ps.poolIndex = lbpool.Divide(raw)
	for _, o := range ps.poolIndex.Overlaps {
		p := ps.byName[o.Pool.Name]
		var ranges []string
		for _, r := range o.Ranges {
			ranges = append(ranges, r.String())
		}
		p.problem(ReasonOverlap, "%s belongs to pool %s, which comes first; remove it from one of them", several(ranges, ", "), o.First.Name)
	}
	for _, p := range ps.list {
		if !ps.poolIndex.Has(p.index, lbpool.IPv4) && !ps.poolIndex.Has(p.index, lbpool.IPv6) {
			p.problem(ReasonNoAddresses, "the pool has no address of its own; see spec.addresses")
		}
	}
	ps.allocations = lbpool.NewAllocations(ps.poolIndex)
	ps.order = slices.Clone(ps.list)
	slices.SortFunc(ps.order, comparePools)
	return ps
}

// poolOf returns the pool that an address belongs to, or nil.
func (ps *pools) poolOf(a netip.Addr) *pool {
	if i := ps.poolIndex.PoolOf(a); i >= 0 {
		return ps.list[i]
	}
	return nil
}

// comparePools orders pools with a serviceAllocation before those without, then by priority,
// then pools with namespaces or selectors before pools for everybody, then by name.
func comparePools(a, b *pool) int {
	behind := func(ahead bool) int {
		if ahead {
			return 0
		}
		return 1
	}
	last := func(p *pool) uint { return uint(p.priority) - 1 } // zero goes behind all
	return cmp.Or(
		cmp.Compare(behind(a.isAllocated()), behind(b.isAllocated())),
		cmp.Compare(last(a), last(b)),
		cmp.Compare(behind(a.isPinned()), behind(b.isPinned())),
		cmp.Compare(a.obj.Name, b.obj.Name),
	)
}

// renew puts newer versions of the same pools in the place of the old ones, and
// returns false if people have changed any: our own writes of their status, one
// for every change of a counter, are no reason to compile them again.
func (ps *pools) renew(objects []*v1alpha1.IPAddressPool) bool {
	if len(objects) != len(ps.list) {
		return false
	}
	for _, o := range objects {
		p := ps.byName[o.Name]
		if p == nil || p.obj != o && (!p.obj.CreationTimestamp.Equal(&o.CreationTimestamp) || !reflect.DeepEqual(p.obj.Spec, o.Spec)) {
			return false
		}
	}
	for _, o := range objects {
		ps.byName[o.Name].obj = o
	}
	return true
}

func (p *pool) problem(reason, format string, args ...any) {
	p.problems = append(p.problems, snapshot.Problem{
		Object: snapshot.RefOf(p.obj), Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

func (p *pool) readAddresses() *lbpool.Pool {
	raw := &lbpool.Pool{Name: p.obj.Name, AvoidBuggy: p.obj.Spec.AvoidBuggyIPs}
	for i, s := range p.obj.Spec.Addresses {
		if r, err := lbpool.ParseRange(s); err != nil {
			p.problem(ReasonBadAddresses, "spec.addresses[%d]: %v; the rest of the pool works", i, err)
		} else {
			raw.Ranges = append(raw.Ranges, r)
		}
	}
	for i, s := range p.obj.Spec.Reserved {
		if r, err := lbpool.ParseReserved(s); err != nil {
			// What cannot be reserved could be anything: give nothing new away.
			p.drain = true
			p.problem(ReasonBadReserved, "spec.reserved[%d]: %v; the pool gives nothing new until this is fixed", i, err)
		} else {
			raw.Reserved = append(raw.Reserved, r)
		}
	}
	if d := p.obj.Spec.ReuseAfter; d != nil {
		raw.ReuseAfter = max(0, d.Duration)
	}
	return raw
}

func (p *pool) readAllocation() {
	to := p.obj.Spec.AllocateTo
	if to == nil {
		return
	}
	p.priority = max(0, to.Priority)
	p.namespaces = to.Namespaces
	p.ofSpace = p.selectors("namespaceSelectors", to.NamespaceSelectors)
	p.ofService = p.selectors("serviceSelectors", to.ServiceSelectors)
}

// selectors reads selectors; one that cannot be read matches nothing, because
// it would otherwise open the pool to everybody.
func (p *pool) selectors(field string, raw []metav1.LabelSelector) []labels.Selector {
	var list []labels.Selector
	for i := range raw {
		s, err := metav1.LabelSelectorAsSelector(&raw[i])
		if err != nil {
			p.problem(ReasonBadSelector, "spec.serviceAllocation.%s[%d]: %v; it selects nothing", field, i, err)
			s = labels.Nothing()
		}
		list = append(list, s)
	}
	return list
}

// isAllocated reports whether the pool says whom it is for, if only with a priority: those
// are given its addresses before any of a pool that does not.
func (p *pool) isAllocated() bool { return p.obj.Spec.AllocateTo != nil }

func (p *pool) isPinned() bool {
	return len(p.namespaces) > 0 || len(p.ofSpace) > 0 || len(p.ofService) > 0
}

// admits reports whether the pool serves a Service.
func (p *pool) admits(svc *corev1.Service, namespace labels.Set) bool {
	matches := func(set labels.Set) func(labels.Selector) bool {
		return func(s labels.Selector) bool { return s.Matches(set) }
	}
	if len(p.namespaces) > 0 || len(p.ofSpace) > 0 {
		if !slices.Contains(p.namespaces, svc.Namespace) && !slices.ContainsFunc(p.ofSpace, matches(namespace)) {
			return false
		}
	}
	return len(p.ofService) == 0 || slices.ContainsFunc(p.ofService, matches(svc.Labels))
}
