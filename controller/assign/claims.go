package assign

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/controller/snapshot"
)

// readClaims collects the Services that concern us, oldest first. Those that
// have not changed since the last Compile are not parsed again.
func (w *work) readClaims() {
	var fresh []arrival
	if w.round == 1 { // everybody is new
		fresh = make([]arrival, 0, w.c.Services.Len())
	}
	live := 0
	for key, svc := range w.c.Services.All() {
		if len(svc.Spec.ExternalIPs) > 0 && hasClusterIP(svc) {
			w.listers = append(w.listers, svc)
		}
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 && !wasOurs(svc) {
			continue
		}
		if c := w.claims[svc]; c != nil {
			live++
			w.begin(c)
		} else {
			fresh = append(fresh, arrival{seniority{svc.CreationTimestamp.Unix(), key}, svc})
		}
	}
	if live < len(w.claims) { // some are gone, or have a newer version
		gone := func(c *claim) bool { return c.round != w.round }
		w.sorted = slices.DeleteFunc(w.sorted, gone)
		maps.DeleteFunc(w.claims, func(_ *corev1.Service, c *claim) bool { return gone(c) })
	}
	w.sorted = merge(w.sorted, w.readFresh(fresh))
}

// readFresh parses the Services that were not there before. It does so in the
// order of their age: then claims lie in memory as every later step reads them.
func (w *work) readFresh(fresh []arrival) []*claim {
	var batch []claim
	claims := make([]*claim, 0, len(fresh))
	for _, i := range inOrder(fresh) {
		if len(batch) == 0 { // few enough that the last of a batch keeps little alive
			batch = make([]claim, min(32, len(fresh)-len(claims)))
		}
		c := &batch[0]
		batch = batch[1:]
		c.read(fresh[i])
		w.begin(c)
		w.claims[c.svc] = c
		claims = append(claims, c)
	}
	return claims
}

// begin makes a claim ready for this Compile.
func (w *work) begin(c *claim) {
	c.begin(w.round, c.svc.Spec.Type == corev1.ServiceTypeLoadBalancer && w.isOurs(c.svc), w.pools)
}

// An arrival is a Service that was not there before.
type arrival struct {
	seniority
	svc *corev1.Service
}

// seniority decides who comes first: who was created first, then by key.
type seniority struct {
	created int64 // unix seconds
	key     snapshot.Key
}

func (s seniority) compare(o seniority) int {
	if s.created != o.created {
		return cmp.Compare(s.created, o.created)
	}
	return s.key.Compare(o.key)
}

// inOrder returns the indexes of arrivals, the oldest first. It sorts numbers,
// which are moved about at less cost than arrivals, and looks at names only where
// the second is the same: those of a whole cluster fit no cache.
func inOrder(arrivals []arrival) []int32 {
	type place struct {
		created int64
		index   int32
	}
	places := make([]place, len(arrivals))
	for i, a := range arrivals {
		places[i] = place{a.created, int32(i)}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.created, b.created) })
	order := make([]int32, len(places))
	for i, p := range places {
		order[i] = p.index
	}
	for from := 0; from < len(places); {
		to := from + 1
		for to < len(places) && places[to].created == places[from].created {
			to++
		}
		slices.SortFunc(order[from:to], func(a, b int32) int { return arrivals[a].key.Compare(arrivals[b].key) })
		from = to
	}
	return order
}

func (c *claim) seniority() seniority { return seniority{c.created, c.key()} }

// merge puts claims that are in order into a list that is in order.
func merge(sorted, fresh []*claim) []*claim {
	i, j := len(sorted)-1, len(fresh)-1
	sorted = append(sorted, fresh...)
	for k := len(sorted) - 1; j >= 0; k-- {
		if i >= 0 && sorted[i].seniority().compare(fresh[j].seniority()) > 0 {
			sorted[k] = sorted[i]
			i--
		} else {
			sorted[k] = fresh[j]
			j--
		}
	}
	return sorted
}
