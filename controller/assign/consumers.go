package assign

import (
	"cmp"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// readConsumers collects the Services that concern us, oldest first. Those that
// have not changed since the last Compile are not looked at again: a Store yields
// what it shares with the one before in the same order, so that one walk along
// both finds them. Where no Service changed, none is looked at.
func (w *work) readConsumers() {
	if w.services == w.c.Services {
		for _, c := range w.consumers {
			c.begin(w.round, w.pools)
		}
		return
	}
	w.services, w.listers = w.c.Services, w.listers[:0]
	n := w.c.Services.Len()
	before, now := w.consumers, slices.Grow(w.spare[:0], n)
	var fresh []arrival
	if len(before) == 0 { // everybody is new
		fresh = make([]arrival, 0, n)
	}
	for key, svc := range w.c.Services.All() {
		if before = w.skip(before, key, svc); len(before) > 0 && before[0].svc == svc {
			w.begin(before[0])
			now, before = append(now, before[0]), before[1:]
		} else if concerns(svc) {
			fresh = append(fresh, arrival{seniorityOf(svc), svc, len(now)})
			now = append(now, nil)
		} else if len(loadbalancer.ExternalIPs(svc)) > 0 {
			w.listers = append(w.listers, svc)
		}
	}
	if len(now)-len(fresh) < len(w.sorted) { // some are gone, or have a newer version
		w.sorted = slices.DeleteFunc(w.sorted, func(c *consumer) bool { return c.round != w.round })
	}
	w.sorted = merge(w.sorted, w.readFresh(fresh, now))
	clear(w.consumers)
	w.consumers, w.spare = now, w.consumers[:0]
}

// readFresh parses the Services that were not there before, and puts each in its
// place among all. It does so in the order of their age: then consumers lie in
// memory as every later step reads them.
func (w *work) readFresh(fresh []arrival, all []*consumer) []*consumer {
	var batch []consumer
	consumers := make([]*consumer, 0, len(fresh))
	for _, i := range inOrder(fresh) {
		if len(batch) == 0 { // few enough that the last of a batch keeps little alive
			batch = make([]consumer, min(32, len(fresh)-len(consumers)))
		}
		c := &batch[0]
		batch = batch[1:]
		c.read(fresh[i].svc)
		c.managed = c.svc.Spec.Type == corev1.ServiceTypeLoadBalancer && w.isOurs(c.svc)
		w.begin(c)
		all[fresh[i].place] = c
		consumers = append(consumers, c)
	}
	return consumers
}

// An arrival is a Service that was not there before, and its place among all.
type arrival struct {
	seniority
	svc   *corev1.Service
	place int
}

// skip returns what is left of consumers without those whose Services do not come
// any more when svc comes.
func (w *work) skip(consumers []*consumer, key snapshot.Key, svc *corev1.Service) []*consumer {
	for len(consumers) > 0 && consumers[0].svc != svc {
		first := consumers[0].key()
		if first == key {
			return consumers[1:] // svc is a newer version
		}
		if still, ok := w.c.Services.Get(first); ok && concerns(still) {
			return consumers // its turn is later, and svc was not there before
		}
		consumers = consumers[1:]
	}
	return consumers
}

// concerns reports whether a Service has, or asks for, anything that others may
// not be given, or has anything of ours.
func concerns(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer || len(svc.Status.LoadBalancer.Ingress) > 0 || wasOurs(svc)
}

// begin makes a consumer ready for this Compile.
func (w *work) begin(c *consumer) {
	c.begin(w.round, w.pools)
	if c.lists {
		w.listers = append(w.listers, c.svc)
	}
}

// consumerOf returns the consumer of a Service, or nil.
func (w *work) consumerOf(svc *corev1.Service) *consumer {
	at := seniorityOf(svc)
	if i, ok := slices.BinarySearchFunc(w.sorted, at, func(c *consumer, at seniority) int { return c.seniority().compare(at) }); ok {
		return w.sorted[i]
	}
	return nil
}

// seniority decides who comes first: who was created first, then by key.
type seniority struct {
	created int64 // unix seconds
	key     snapshot.Key
}

func seniorityOf(svc *corev1.Service) seniority {
	return seniority{svc.CreationTimestamp.Unix(), snapshot.KeyOf(svc)}
}

func (s seniority) compare(o seniority) int {
	if s.created != o.created {
		return cmp.Compare(s.created, o.created)
	}
	return s.key.Compare(o.key)
}

func (c *consumer) seniority() seniority { return seniority{c.created, c.key()} }

// inOrder returns the indexes of arrivals, the oldest first. It sorts numbers, of a
// time and an index each, and looks at names only where the time is the same:
// those of a whole cluster fit no cache.
func inOrder(arrivals []arrival) []uint64 {
	if len(arrivals) == 0 {
		return nil
	}
	first := slices.MinFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.created, b.created) }).created
	width := bits.Len(uint(len(arrivals)))
	order := make([]uint64, len(arrivals))
	for i := range arrivals {
		order[i] = uint64(arrivals[i].created-first)<<width | uint64(i)
	}
	slices.Sort(order)
	for from := 0; from < len(order); {
		time, to := order[from]>>width, from
		for ; to < len(order) && order[to]>>width == time; to++ {
			order[to] &= 1<<width - 1
		}
		slices.SortFunc(order[from:to], func(a, b uint64) int { return arrivals[a].key.Compare(arrivals[b].key) })
		from = to
	}
	return order
}

// merge puts consumers that are in order into a list that is in order.
func merge(sorted, fresh []*consumer) []*consumer {
	if len(sorted) == 0 {
		return fresh
	}
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
