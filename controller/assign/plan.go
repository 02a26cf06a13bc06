package assign

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// Options are what the operator decides outside of objects.
type Options struct {
	// LoadBalancerClass of the Services that are ours; empty: loadbalancer.Class.
	LoadBalancerClass string
	// DefaultLoadBalancer serves Services without a class too.
	DefaultLoadBalancer bool
	// ExternalIPs says that speakers announce what Services list in
	// spec.externalIPs, so what is wrong with it is a Problem.
	ExternalIPs bool

	// Classes say which Ingresses the proxies serve.
	Classes ingressclass.Rules
	// PublishService is the Service whose addresses go into the status of our
	// Ingresses.
	PublishService snapshot.Key
	// PublishAddresses go there if PublishService is zero. With neither, statuses
	// of Ingresses are not touched.
	PublishAddresses []netip.Addr
}

// Inflight is writes of unknown outcome: the addresses that a Service may have
// been given although the snapshot does not show it. They are given to nobody
// else until the caller takes them out.
type Inflight map[snapshot.Key][]netip.Addr

// Plan is what should be.
type Plan struct {
	// Updates are what is to be written: Services, the oldest first, then
	// Ingresses and pools, by key.
	Updates []Update
	// Problems that exist now, whether or not they did before.
	Problems []snapshot.Problem
	// Holdings is who sits on which address, the oldest Service first; behind
	// them, in the same order, who lists which in spec.externalIPs.
	Holdings []Holding
	// Freed are the addresses that nobody has any more, or will not have when
	// this plan is carried out, oldest first.
	Freed []Freed
	// NextWake is when this plan may change by time alone; zero: never.
	NextWake time.Time

	memo *memo
}

// Holding says that a Service sits on an address.
type Holding struct {
	Address netip.Addr
	Service snapshot.Key
	Pool    string // empty if it is in none of our pools
	Pending bool   // this plan gives it; status does not show it yet
}

// memo is scratch that plans of one history pass on. It holds nothing that
// the arguments of Compile do not say, so plans do not depend on it; but a
// plan can be prev of only one Compile at a time.
type memo struct {
	round uint64
	// The options that say which Services are ours.
	class     string
	byDefault bool

	services  snapshot.Store[*corev1.Service] // of the last Compile, as those that follow
	listers   []*corev1.Service               // with spec.externalIPs
	consumers []*consumer                     // as Store.All yields their Services
	spare     []*consumer                     // reused: consumers of the last Compile but one, emptied
	sorted    []*consumer                     // the same, oldest first
	pools     *pools
	nodes     map[netip.Addr]string // their own addresses, and which node's
	links     map[netip.Addr]string // addresses in pools that interfaces or gateways have, and whose
	ingresses ingressMemo
}

func newMemo(o Options) *memo {
	return &memo{
		class: o.LoadBalancerClass, byDefault: o.DefaultLoadBalancer,
		nodes: map[netip.Addr]string{}, links: map[netip.Addr]string{},
	}
}

// work is one Compile.
type work struct {
	c        *snapshot.Cluster
	prev     *Plan
	inflight Inflight
	now      time.Time
	opts     Options

	*memo
	plan *Plan

	listed   []Holding          // what the listers have by that
	yielding []netip.Addr       // what they list, but do not keep from others
	listing  map[*pool][]string // which address of a pool is listed by whom…
	keeping  map[*pool][]string // …and those of which that keep it from others

	candidateList []*pool      // reused
	foundList     []netip.Addr // reused
	gaining       int          // how many addresses status does not show yet
}

// Compile works out the plan for a cluster. prev is the plan before; a new
// leader has none, and learns what rests from the statuses.
func Compile(c *snapshot.Cluster, prev *Plan, inflight Inflight, now time.Time, opts Options) *Plan {
	first := prev == nil
	if first {
		prev = &Plan{}
	}
	if opts.LoadBalancerClass == "" {
		opts.LoadBalancerClass = loadbalancer.Class
	}
	w := &work{c: c, prev: prev, inflight: inflight, now: now, opts: opts, memo: prev.memo, plan: &Plan{}}
	if m := w.memo; m == nil || m.class != opts.LoadBalancerClass || m.byDefault != opts.DefaultLoadBalancer {
		w.memo = newMemo(opts)
	}
	w.plan.memo = w.memo
	w.round++

	w.readPools()
	w.readNodes()
	w.readConsumers()
	w.keep()
	w.occupyListed()
	if first {
		w.recall()
	}
	w.freed()
	w.yieldListed()
	w.serve()
	w.swap()
	w.freeLost()

	w.holdings()
	w.writeServices()
	w.writeIngresses()
	w.writePools()
	slices.SortFunc(w.plan.Problems, snapshot.Problem.Compare)
	w.plan.Problems = slices.Compact(w.plan.Problems)
	return w.plan
}

// readPools compiles the pools, unless they are as in the last Compile.
func (w *work) readPools() {
	objects := w.c.IPAddressPools.Sorted()
	if w.pools == nil || !w.pools.renew(objects) {
		w.pools = compilePools(objects)
	}
	w.pools.allocations.Reset(w.c.Services.Len())
}

// isOurs reports whether a Service of type LoadBalancer is for us.
func (w *work) isOurs(svc *corev1.Service) bool {
	if svc.Spec.LoadBalancerClass == nil {
		return w.opts.DefaultLoadBalancer
	}
	return *svc.Spec.LoadBalancerClass == w.opts.LoadBalancerClass
}

// wasOurs reports whether anything of ours is left on a Service.
func wasOurs(svc *corev1.Service) bool {
	_, given := svc.Annotations[loadbalancer.AnnotationGiven]
	return given || slices.ContainsFunc(svc.Status.Conditions, isOurCondition)
}

// home returns the pool of an address that a Service has or gets, or nil.
func (w *work) home(c *consumer, a netip.Addr) *pool {
	if i := c.find(a); i >= 0 {
		return c.homes[i]
	}
	return w.pools.poolOf(a)
}

// problem adds a Problem about an object.
func (w *work) problem(about snapshot.Ref, reason, message string) {
	w.plan.Problems = append(w.plan.Problems, snapshot.Problem{Object: about, Reason: reason, Message: message})
}

func (c *consumer) key() snapshot.Key {
	return snapshot.Key{Namespace: c.holder.Realm, Name: c.holder.Name}
}

func (c *consumer) ref() snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.Service.String(), Key: c.key()}
}

// wake lowers NextWake to t.
func (w *work) wake(t time.Time) {
	if !t.IsZero() && (w.plan.NextWake.IsZero() || t.Before(w.plan.NextWake)) {
		w.plan.NextWake = t
	}
}

// holdings lists who sits on what after this plan: the list of the last plan
// itself, as long as it is the same.
func (w *work) holdings() {
	old, list, n := w.prev.Holdings, []Holding(nil), 0
	add := func(h Holding) {
		if list == nil && n < len(old) && old[n] == h {
			n++
			return
		}
		if list == nil {
			list = append(make([]Holding, 0, max(len(old), len(w.sorted)+len(w.listed))), old[:n]...)
		}
		list = append(list, h)
	}
	for _, c := range w.sorted {
		for _, a := range c.holds {
			h := Holding{Address: a, Service: c.key(), Pending: c.find(a) < 0}
			if p := w.home(c, a); p != nil {
				h.Pool = p.obj.Name
			}
			if h.Pending {
				w.gaining++
			}
			add(h)
		}
	}
	for _, h := range w.listed {
		add(h)
	}
	if w.plan.Holdings = list; list == nil {
		w.plan.Holdings = old[:n:n]
	}
}
