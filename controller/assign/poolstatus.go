package assign

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// Conditions of pools.
const (
	conditionReady      = "Ready"
	conditionAdvertised = "Advertised"
)

// writePools adds the pools whose counters or conditions are not what they
// should be, and their problems.
func (w *work) writePools() {
	var updates []Update
	inside, resting := w.nodesInside(), w.resting()
	for _, p := range w.pools.list {
		problems := slices.Clone(p.problems)
		if list := inside[p]; len(list) > 0 {
			problems = append(problems, snapshot.Problem{
				Object: snapshot.RefOf(p.obj), Reason: ReasonNodeAddressInPool,
				Message: fmt.Sprintf("it contains addresses of nodes or gateways (%s), which are given to nobody; take them out of spec.addresses", several(list, ", ")),
			})
		}
		if list := w.listing[p]; len(list) > 0 && !w.opts.ExternalIPs {
			problems = append(problems, snapshot.Problem{
				Object: snapshot.RefOf(p.obj), Reason: ReasonExternalIPsInPool,
				Message: fmt.Sprintf("Services list addresses of it in spec.externalIPs (%s): kube-proxy takes their traffic on every node, "+
					"and they are given to nobody else, or last; take them out of the Services, or have the API server refuse such (DenyServiceExternalIPs)",
					several(list, ", ")),
			})
		}
		status := w.poolStatus(p, resting[p])
		advertised := w.advertised(p)
		if advertised.Status == metav1.ConditionFalse {
			problems = append(problems, snapshot.Problem{Object: snapshot.RefOf(p.obj), Reason: advertised.Reason, Message: advertised.Message})
		}
		w.plan.Problems = append(w.plan.Problems, problems...)

		conditions, changed := withCondition(p.obj.Status.Conditions, conditionReady, ready(p, problems), w.now)
		conditions, again := withCondition(conditions, conditionAdvertised, advertised, w.now)
		status.Conditions = conditions
		if changed || again || !sameCounts(&status, &p.obj.Status) {
			next := *p.obj
			next.Status = status
			updates = append(updates, Update{Was: p.obj, next: &next})
		}
	}
	slices.SortFunc(updates, Update.compare)
	w.plan.Updates = append(w.plan.Updates, updates...)
}

// nodesInside lists the nodes whose own addresses lie in a pool.
func (w *work) nodesInside() map[*pool][]string {
	inside := map[*pool][]string{}
	for a, node := range w.nodes {
		if p := w.pools.poolOf(a); p != nil {
			inside[p] = append(inside[p], fmt.Sprintf("%v of %s", a, node))
		}
	}
	for a, link := range w.links {
		if _, known := w.nodes[a]; !known {
			p := w.pools.poolOf(a)
			inside[p] = append(inside[p], fmt.Sprintf("%v, %s", a, link))
		}
	}
	for _, list := range inside {
		slices.Sort(list)
	}
	return inside
}

// sameCounts reports whether two statuses of a pool differ in conditions at most.
func sameCounts(a, b *v1alpha1.IPAddressPoolStatus) bool {
	return a.AssignedIPv4 == b.AssignedIPv4 && a.AssignedIPv6 == b.AssignedIPv6 &&
		a.AvailableIPv4 == b.AvailableIPv4 && a.AvailableIPv6 == b.AvailableIPv6 &&
		a.RestingCount == b.RestingCount && slices.EqualFunc(a.Resting, b.Resting, func(a, b v1alpha1.RestingAddresses) bool {
		return a.Addresses == b.Addresses && a.Since.Equal(&b.Since)
	})
}

// poolStatus counts.
func (w *work) poolStatus(p *pool, resting []Freed) v1alpha1.IPAddressPoolStatus {
	var used [2]lbpool.Usage
	for _, f := range [...]lbpool.Family{lbpool.IPv4, lbpool.IPv6} {
		used[f] = w.pools.allocations.Usage(p.index, f, w.now)
		if p.drain {
			used[f].Available = 0
		}
		w.wakeRested(w.pools.allocations.Wake(p.index, f, w.now))
	}
	return v1alpha1.IPAddressPoolStatus{
		AssignedIPv4: used[lbpool.IPv4].Assigned, AvailableIPv4: used[lbpool.IPv4].Available,
		AssignedIPv6: used[lbpool.IPv6].Assigned, AvailableIPv6: used[lbpool.IPv6].Available,
		Resting: restingRanges(resting, w.reuseAfter(p)), RestingCount: int64(len(resting)),
	}
}

// ready is the condition that says whether the pool works as written.
func ready(p *pool, problems []snapshot.Problem) metav1.Condition {
	c := metav1.Condition{Type: conditionReady, Status: metav1.ConditionTrue, Reason: ReasonUsable, ObservedGeneration: p.obj.Generation}
	var messages []string
	for _, problem := range problems {
		switch problem.Reason {
		case ReasonNotAdvertised, ReasonNodeAddressInPool, ReasonExternalIPsInPool:
			continue
		}
		if c.Status == metav1.ConditionTrue {
			c.Status, c.Reason = metav1.ConditionFalse, problem.Reason
		}
		messages = append(messages, problem.Message)
	}
	c.Message = several(messages, "; ")
	return c
}

// advertised is the condition that says whether the network learns of the
// pool's addresses.
func (w *work) advertised(p *pool) metav1.Condition {
	c := metav1.Condition{Type: conditionAdvertised, Status: metav1.ConditionTrue, Reason: ReasonAdvertised, ObservedGeneration: p.obj.Generation}
	if w.c.L2Advertisements.Len()+w.c.BGPAdvertisements.Len() == 0 {
		c.Message = "by L2 on every node and interface, the default where there is no advertisement object"
		return c
	}
	for _, ad := range w.c.L2Advertisements.All() {
		if isReadable(selectorsOf(&ad.Spec)) && selects(ad.Spec.IPAddressPools, ad.Spec.IPAddressPoolSelectors, p.obj) {
			return c
		}
	}
	for _, ad := range w.c.BGPAdvertisements.All() {
		if isReadable(slices.Concat(ad.Spec.IPAddressPoolSelectors, ad.Spec.NodeSelectors, ad.Spec.ServiceSelectors)) && selects(ad.Spec.IPAddressPools, ad.Spec.IPAddressPoolSelectors, p.obj) {
			return c
		}
	}
	c.Status, c.Reason = metav1.ConditionFalse, ReasonNotAdvertised
	c.Message = "no L2Advertisement and no BGPAdvertisement selects this pool: its addresses are given out but nobody announces them; name the pool in one, or remove the selectors of one"
	return c
}

// selectorsOf are all selectors of an advertisement on layer 2.
func selectorsOf(ad *v1alpha1.L2AdvertisementSpec) []metav1.LabelSelector {
	all := slices.Concat(ad.IPAddressPoolSelectors, ad.NodeSelectors, ad.ServiceSelectors)
	for _, p := range ad.PreferredNodeSelectors {
		all = append(all, p.Preference)
	}
	return all
}

// isReadable reports whether all selectors of an advertisement parse. One that
// has others is ignored by the speakers, who tell it of that.
func isReadable(all []metav1.LabelSelector) bool {
	return !slices.ContainsFunc(all, func(s metav1.LabelSelector) bool {
		_, err := metav1.LabelSelectorAsSelector(&s)
		return err != nil
	})
}

// selects reports whether an advertisement is for a pool.
func selects(names []string, selectors []metav1.LabelSelector, p *v1alpha1.IPAddressPool) bool {
	if len(names)+len(selectors) == 0 || slices.Contains(names, p.Name) {
		return true
	}
	return slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(p.Labels))
	})
}
