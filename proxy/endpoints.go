package proxy

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/names"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// endpoints keeps the sets of all backends up with the cluster. The routes loop
// adds backends while the endpoints loop follows changes; the lock makes a
// backend's first set and its later ones come from one history, so that none is
// lost or overtaken.
type endpoints struct {
	options Options
	outside outside

	mu        sync.Mutex
	seen      *snapshot.Cluster // what all sets are compiled from
	zone      string
	cookies   balance.CookieKey
	byService map[snapshot.Key][]*upstream.Backend
}

func newEndpoints(o Options) *endpoints {
	return &endpoints{
		options: o, byService: map[snapshot.Key][]*upstream.Backend{},
		outside: outside{names: names.New(names.Options{Dial: o.DialDNS, Log: o.Log}), nodes: &nodes{own: o.NodeName, watch: o.Source.Refer}, always: o.Refuse, wanted: map[snapshot.Key]string{}},
	}
}

// add gives a new backend its endpoints, no older than c.
func (e *endpoints) add(b *upstream.Backend, c *snapshot.Cluster) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(c)
	service := b.Of().Service
	if !slices.Contains(e.byService[service], b) { // it may only have a new index
		e.byService[service] = append(e.byService[service], b)
	}
	e.compile(b)
}

// retain forgets the backends that are not in live.
func (e *endpoints) retain(live map[route.Backend]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for service, list := range e.byService {
		kept := make([]*upstream.Backend, 0, len(list))
		for _, b := range list {
			if live[b.Of()] {
				kept = append(kept, b)
			}
		}
		if len(kept) == 0 {
			delete(e.byService, service)
			e.outside.want(service, "")
		} else if len(kept) < len(list) {
			e.byService[service] = kept
		}
	}
}

// follow compiles the sets of the Services that changed since the last call.
func (e *endpoints) follow(c *snapshot.Cluster) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(c)
}

// advance needs the lock. Both loops bring snapshots of one history, but the
// one that comes later may bring the older.
func (e *endpoints) advance(c *snapshot.Cluster) {
	old := e.seen
	if old == c || old != nil && isOlder(c, old) {
		return
	}
	e.seen = c
	if zone := zoneOf(c, e.options.NodeName); old == nil || zone != e.zone {
		e.zone = zone
		for service := range e.byService {
			e.compileService(service)
		}
		return
	}
	touched := map[snapshot.Key]bool{}
	for key := range snapshot.Diff(old.EndpointSlices, c.EndpointSlices) {
		for _, in := range []*snapshot.Cluster{old, c} {
			if s, ok := in.EndpointSlices.Get(key); ok {
				touched[serviceOf(s)] = true
			}
		}
	}
	for key := range snapshot.Diff(old.Services, c.Services) {
		touched[key] = true
	}
	for service := range touched {
		e.compileService(service)
	}
	if len(e.outside.wanted) > 0 && e.outside.bar(c) {
		e.compileOutside()
	}
}

func isOlder(a, b *snapshot.Cluster) bool {
	for _, k := range []snapshot.Kind{snapshot.EndpointSlice, snapshot.Service, snapshot.Node} {
		if a.Generation(k) < b.Generation(k) {
			return true
		}
	}
	return false
}

func serviceOf(s *discoveryv1.EndpointSlice) snapshot.Key {
	return snapshot.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

func (e *endpoints) compileService(service snapshot.Key) {
	for _, b := range e.byService[service] {
		e.compile(b)
	}
}

func (e *endpoints) compile(b *upstream.Backend) {
	of := b.Of()
	svc, _ := of.In(e.seen)
	o := balance.Options{AnyNode: of.AnyNode, ServiceAddress: of.ServiceAddress, AllowLoopback: e.options.AllowLoopback, Policy: of.Policy, CookieKey: e.cookies}
	if svc != nil && svc.Spec.Type == corev1.ServiceTypeExternalName {
		o.External = e.outside.of(svc, e.seen)
	} else {
		e.outside.want(of.Service, "")
	}
	set := balance.Compile(svc, e.seen.SlicesOf(of.Service), of.Port, e.options.NodeName, e.zone, o)
	if svc == nil {
		set.Why = "Service " + of.Service.String() + " does not exist"
	}
	if !set.Equal(b.Endpoints()) {
		b.SetEndpoints(set)
	}
}

// seal has session cookies sealed by key from now on.
func (e *endpoints) seal(key balance.CookieKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if key == e.cookies {
		return
	}
	e.cookies = key
	for _, list := range e.byService {
		for _, b := range list {
			if b.Of().Policy.Cookie.Name != "" {
				e.compile(b)
			}
		}
	}
}

func zoneOf(c *snapshot.Cluster, node string) string {
	if n, ok := c.Nodes.Get(snapshot.Key{Name: node}); ok {
		return n.Labels[corev1.LabelTopologyZone]
	}
	return ""
}

// all yields every backend, for the state.
func (e *endpoints) all() []*upstream.Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*upstream.Backend
	for _, list := range e.byService {
		all = append(all, list...)
	}
	return all
}
