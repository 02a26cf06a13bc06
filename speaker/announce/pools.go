package announce

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

type pool struct {
	*v1alpha1.IPAddressPool
	adverts []int // of L2, into compiler.adverts
	bgp     []int // into compiler.bgp
}

// readPools reads which pool contains which addresses. Entries that do not parse, and
// pools that overlap, are reported by package assign, which allocates from them.
func (k *compiler) readPools() {
	k.homes = loadbalancer.HomesOf(k.c.IPAddressPools.Sorted())
	for _, p := range k.homes.Pools {
		k.pools = append(k.pools, pool{IPAddressPool: p})
	}
}

// advert is an L2Advertisement with its selectors parsed.
type advert struct {
	services   []labels.Selector // none: every Service
	interfaces map[string]struct{}
	nodes      []bool  // by node: whether it may own
	weight     []int32 // by node: how much it is preferred
	preference uint64  // see fingerprintOf
}

func (k *compiler) readAdvertisements() {
	list := k.c.L2Advertisements.Sorted()
	if len(list) == 0 && k.c.BGPAdvertisements.Len() == 0 {
		// With no advertisement object at all, L2 everywhere is the default.
		list = []*v1alpha1.L2Advertisement{{}}
	}
	for _, l2 := range list {
		ok := true
		selectors := k.selectorsOf(l2, &ok)
		pools := selectors("ipAddressPoolSelectors", l2.Spec.IPAddressPoolSelectors)
		nodes := selectors("nodeSelectors", l2.Spec.NodeSelectors)
		services := selectors("serviceSelectors", l2.Spec.ServiceSelectors)
		preferences := make([]metav1.LabelSelector, len(l2.Spec.PreferredNodeSelectors))
		for i, p := range l2.Spec.PreferredNodeSelectors {
			preferences[i] = p.Preference
		}
		preferred := selectors("preferredNodeSelectors", preferences)
		if !ok {
			continue
		}
		a := advert{services: services, nodes: make([]bool, len(k.nodes)), weight: make([]int32, len(k.nodes))}
		for _, name := range l2.Spec.Interfaces {
			if a.interfaces == nil {
				a.interfaces = map[string]struct{}{}
			}
			a.interfaces[name] = struct{}{}
		}
		a.preference = fingerprintOf(l2.Spec.PreferredNodeSelectors, preferred)
		k.preferring = k.preferring || a.preference != 0
		for i, n := range k.nodes {
			a.nodes[i] = anyMatches(nodes, n.labels)
			for j, s := range preferred {
				if a.nodes[i] && s.Matches(n.labels) { // else another advertisement lets n have the address
					a.weight[i] += l2.Spec.PreferredNodeSelectors[j].Weight
				}
			}
		}
		k.eachPool(l2, l2.Spec.IPAddressPools, pools, func(p *pool) { p.adverts = append(p.adverts, len(k.adverts)) })
		k.adverts = append(k.adverts, a)
	}
	k.keepUsable()
}

// keepUsable takes the nodes out of usable that no advertisement of a pool selects, or that
// have no link which one may use: where few of many nodes are the edge, the addresses are
// shared by those few, not by all.
func (k *compiler) keepUsable() {
	var adverts []int
	for _, p := range k.pools {
		adverts = append(adverts, p.adverts...)
	}
	slices.Sort(adverts)
	adverts = slices.Compact(adverts)
	k.usable = slices.DeleteFunc(k.usable, func(i int) bool {
		return !slices.ContainsFunc(adverts, func(a int) bool {
			v := &k.adverts[a]
			return v.nodes[i] && k.nodes[i].hasLink(v.interfaces)
		})
	})
}

// selectorsOf returns a function that parses selectors of an advertisement, and that
// reports one that does not parse and then clears ok.
func (k *compiler) selectorsOf(advertisement snapshot.Object, ok *bool) func(field string, in []metav1.LabelSelector) []labels.Selector {
	return func(field string, in []metav1.LabelSelector) []labels.Selector {
		out, err := parseSelectors(in)
		if err != nil {
			*ok = false
			k.problem(snapshot.RefOf(advertisement), "InvalidSelector", fmt.Sprintf("spec.%s: %v; this advertisement is ignored", field, err))
		}
		return out
	}
}

// eachPool calls f for every pool that an advertisement selects, by name or by
// selectors.
func (k *compiler) eachPool(advertisement snapshot.Object, names []string, selectors []labels.Selector, f func(*pool)) {
	for i := range k.pools {
		if p := &k.pools[i]; selectsPool(p.IPAddressPool, names, selectors) {
			f(p)
		}
	}
	for _, name := range names {
		if _, ok := k.c.IPAddressPools.Get(snapshot.Key{Name: name}); !ok {
			k.problem(snapshot.RefOf(advertisement), "PoolNotFound", fmt.Sprintf("spec.ipAddressPools names %q, which does not exist", name))
		}
	}
}

func selectsPool(p *v1alpha1.IPAddressPool, names []string, selectors []labels.Selector) bool {
	if len(names) == 0 && len(selectors) == 0 {
		return true
	}
	return slices.Contains(names, p.Name) || len(selectors) > 0 && anyMatches(selectors, labels.Set(p.Labels))
}

func parseSelectors(in []metav1.LabelSelector) ([]labels.Selector, error) {
	var out []labels.Selector
	for i := range in {
		s, err := metav1.LabelSelectorAsSelector(&in[i])
		if err != nil {
			return nil, fmt.Errorf("selector %d: %w", i, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// anyMatches reports whether one of selectors matches, or there is none.
func anyMatches(selectors []labels.Selector, set labels.Set) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(set) })
}
