package proxy

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/names"
)

// outside knows what Services of type ExternalName lead to. It belongs to endpoints,
// whose lock guards it.
type outside struct {
	names    *names.Resolver
	nodes    *nodes
	always   []netip.Addr            // never asked, whatever the cluster says
	wanted   map[snapshot.Key]string // the names of the Services that backends have
	stapling bool                    // responders are asked, whose names are in certificates
	barred   barred
}

// barred are the addresses that no name may lead to, and what they were made of.
type barred struct {
	nodes   snapshot.Store[*corev1.Node]
	unknown bool // not all nodes are known, so every address may be one of theirs
	api     *corev1.Service
	slices  []*discoveryv1.EndpointSlice
	addrs   map[netip.Addr]string
}

// why an address is barred; "" it is not.
func (b *barred) why(a netip.Addr) string {
	if b.unknown {
		return "the addresses of the nodes, which are refused, are not known yet"
	}
	return b.addrs[balance.Translated(a)]
}

// apiServer is the Service of the API server.
func apiServer() snapshot.Key { return snapshot.Key{Namespace: "default", Name: "kubernetes"} }

// of returns what svc, of type ExternalName, leads to as c has it.
func (o *outside) of(svc *corev1.Service, c *snapshot.Cluster) balance.External {
	e := balance.External{Refuse: o.barred.why}
	name, err := balance.OutsideName(svc)
	o.want(snapshot.KeyOf(svc), name)
	if err != nil {
		e.Why = err.Error()
		return e
	}
	o.bar(c)
	if addr, err := netip.ParseAddr(name); err == nil {
		e.Addrs = []netip.Addr{addr}
		return e
	}
	known := o.names.Lookup(name)
	e.Addrs, e.Why = known.Addrs, known.Why
	return e
}

// want notes the name of a Service; empty: it has none, or nobody needs it.
func (o *outside) want(service snapshot.Key, name string) {
	if o.wanted[service] == name {
		return
	}
	o.wanted[service] = name
	if name == "" {
		delete(o.wanted, service)
	}
	o.referNodes()
	var list []string
	for _, name := range o.wanted {
		if _, err := netip.ParseAddr(name); err != nil {
			list = append(list, name)
		}
	}
	o.names.Set(list)
}

// referNodes sees to it that all Nodes are watched while their addresses must be known.
func (o *outside) referNodes() { o.nodes.refer(len(o.wanted) > 0 || o.stapling) }

// bar works out which addresses are barred, and reports whether they are others than
// before.
func (o *outside) bar(c *snapshot.Cluster) bool {
	now := barred{nodes: c.Nodes, unknown: !c.Reach(snapshot.Node).Covers(snapshot.Key{}), slices: c.SlicesOf(apiServer())}
	now.api, _ = c.Services.Get(apiServer())
	old := &o.barred
	if old.addrs != nil && old.nodes == now.nodes && old.unknown == now.unknown && old.api == now.api && slices.Equal(old.slices, now.slices) {
		return false
	}
	now.addrs = map[netip.Addr]string{}
	const api = "the address of the API server is refused"
	put := func(text string) {
		if a, ok := loadbalancer.ParseAddress(text); ok {
			now.addrs[a] = api
		}
	}
	for _, n := range c.Nodes.All() {
		for a := range loadbalancer.NodeAddresses(n) {
			now.addrs[a] = "addresses of nodes are refused"
		}
	}
	if now.api != nil {
		for _, text := range append(slices.Clone(now.api.Spec.ClusterIPs), now.api.Spec.ClusterIP) {
			put(text)
		}
	}
	for _, s := range now.slices {
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				put(text)
			}
		}
	}
	for _, a := range o.always {
		now.addrs[a.Unmap()] = api
	}
	changed := old.unknown != now.unknown || !maps.Equal(old.addrs, now.addrs)
	o.barred = now
	return changed
}

// resolved compiles the sets of the Services whose names may lead elsewhere now.
func (e *endpoints) resolved() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.compileOutside()
}

func (e *endpoints) compileOutside() {
	for _, service := range slices.Collect(maps.Keys(e.outside.wanted)) {
		e.compileService(service)
	}
}
