package proxy

import (
	"cmp"
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// State is the current plan as /state shows it.
type State struct {
	Kind      string             `json:"kind"`
	Leaving   bool               `json:"leaving,omitempty"` // responses end their connections
	Listeners []ListenerState    `json:"listeners"`
	Routes    []RouteState       `json:"routes"`
	Backends  []BackendState     `json:"backends"`
	Problems  []snapshot.Problem `json:"problems"`
}

// ListenerState is one listening address.
type ListenerState struct {
	Address string `json:"address"`
	TLS     bool   `json:"tls,omitempty"`
	Bound   string `json:"bound,omitempty"`
	Error   string `json:"error,omitempty"`
}

// RouteState is one path of one host.
type RouteState struct {
	Host    string `json:"host,omitempty"`
	Path    string `json:"path,omitempty"`
	Type    string `json:"type,omitempty"`
	Ingress string `json:"ingress"`
	Service string `json:"service"`
	Port    string `json:"port,omitempty"`
	Closed  string `json:"closed,omitempty"`
}

// BackendState is one port of one Service.
type BackendState struct {
	Service   string   `json:"service"`
	Port      string   `json:"port"`
	Endpoints []string `json:"endpoints"`
	Draining  bool     `json:"draining,omitempty"`
	Why       string   `json:"why,omitempty"`
}

// Table is what is served now; nil before the first sync.
func (p *Proxy) Table() *route.Table { return p.table.Load() }

// Problems returns what is wrong with the Ingresses, with the Services that they
// name as seen from here, and with our own listeners.
func (p *Proxy) Problems() []snapshot.Problem {
	var all []snapshot.Problem
	if t := p.table.Load(); t != nil {
		all = slices.Clone(t.Problems)
	}
	all = append(all, p.ruleProblems()...)
	all = append(all, p.cookieProblems()...)
	for _, b := range p.endpoints.all() {
		service := snapshot.Ref{Kind: snapshot.Service.String(), Key: b.Of().Service}
		set := b.Endpoints()
		if set.Why != "" {
			all = append(all, snapshot.Problem{Object: service, Reason: "NoEndpoint", Message: set.Why})
		}
		for _, r := range set.Refused {
			all = append(all, snapshot.Problem{Object: service, Reason: "EndpointRefused", Message: "endpoint " + r})
		}
	}
	for _, l := range p.server.Listeners() {
		if l.Error != "" {
			all = append(all, snapshot.Problem{
				Object: snapshot.Ref{Kind: "Listener", Key: snapshot.Key{Name: l.Address}}, Reason: "NotListening", Message: l.Error,
			})
		}
	}
	return snapshot.Distinct(all)
}

// State returns the current plan for /state.
func (p *Proxy) State() any {
	st := State{
		Kind: "proxy", Leaving: p.leaving.Load(), Listeners: []ListenerState{}, Routes: []RouteState{}, Backends: []BackendState{},
		Problems: p.Problems(),
	}
	for _, l := range p.server.Listeners() {
		st.Listeners = append(st.Listeners, ListenerState{Address: l.Address, TLS: l.TLS, Bound: l.Bound, Error: l.Error})
	}
	if t := p.table.Load(); t != nil {
		for r := range t.Routes() {
			if r.NoRule {
				continue
			}
			rs := RouteState{
				Host: r.Host, Path: r.Path, Type: string(r.Type), Ingress: r.Owner.Key.String(), Service: r.Service.String(), Closed: r.Closed,
			}
			if r.Backend >= 0 {
				rs.Port = t.Backends[r.Backend].Port.String()
			}
			st.Routes = append(st.Routes, rs)
		}
	}
	for _, b := range p.endpoints.all() {
		st.Backends = append(st.Backends, backendState(b))
	}
	slices.SortFunc(st.Backends, func(a, b BackendState) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Port, b.Port))
	})
	return st
}

func backendState(b *upstream.Backend) BackendState {
	set := b.Endpoints()
	bs := BackendState{
		Service: b.Of().Service.String(), Port: b.Of().Port.String(), Endpoints: []string{}, Draining: set.Draining, Why: set.Why,
	}
	for _, e := range set.Endpoints {
		bs.Endpoints = append(bs.Endpoints, e.Addr.String())
	}
	return bs
}
