package route

import (
	"fmt"
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// detours are the backends that ifs of its snippets lead to, for one route.
func (b *unitBuilder) detours() (backends []int) {
	for i := range b.settings.detours {
		backend, fault := b.detour(&b.settings.detours[i])
		if fault.reason != "" {
			backends = append(backends, -1)
			if fault.message = "in its snippets another backend is named: " + fault.message + "; its requests get a 503"; !b.told(fault) {
				b.problemf(fault.reason, "%s", fault.message)
			}
			continue
		}
		index := b.w.acquire(backend)
		backends, b.backends = append(backends, index), append(b.backends, index)
	}
	return backends
}

// pathsOf are the paths that detours lead to.
func pathsOf(list []snippet.Detour) (paths []*filter.UpstreamPath) {
	for i := range list {
		paths = append(paths, list[i].To)
	}
	return paths
}

// detour returns one of them. It is asked in its own protocol, and no sessions stay there.
func (b *unitBuilder) detour(d *snippet.Detour) (Backend, finding) {
	s, all := *b.settings, b.w.t.state.global.settingsOf(b.class)
	s.policy, s.serviceAddress = all.policy, false
	if d.Named == "" {
		s.protocol, s.upstream.On = protocol{said: true}, d.TLS
	}
	if s.upstream.Name == hostsName {
		s.upstream.Name = "" // it would be that of the Ingress's backend
	}
	own := unitBuilder{unit: b.unit, w: b.w, class: b.class, settings: &s, ingress: b.ingress}
	if d.Named != "" {
		return own.named(d.Named)
	}
	return own.passed(&d.Upstream, networkingv1.ServiceBackendPort{Number: d.Port})
}

// named returns the backend that ingress-nginx calls NAMESPACE-SERVICE-PORT, of which each may
// have dashes: it is the Service that is there.
func (b *unitBuilder) named(text string) (Backend, finding) {
	var u snippet.Upstream
	var at networkingv1.ServiceBackendPort
	found := 0
	dashes := func(from int, do func(i int)) {
		for i := from; i < len(text); i++ {
			if text[i] == '-' {
				do(i)
			}
		}
	}
	dashes(1, func(i int) {
		dashes(i+2, func(j int) {
			key := snapshot.Key{Namespace: text[:i], Name: text[i+1 : j]}
			b.dependsOn(refTo(snapshot.Service, key))
			svc, ok := b.w.c.Services.Get(key)
			if !ok {
				return
			}
			port := portCalled(text[j+1:])
			if _, err := (balance.PortRef{Number: port.Number, Name: port.Name}).Find(svc); err == nil {
				u, at, found = snippet.Upstream{Namespace: key.Namespace, Service: key.Name}, port, found+1
			}
		})
	})
	switch found {
	case 0:
		return Backend{}, finding{MissingService, fmt.Sprintf("no Service is %s, its namespace, name and port; create it, or name another", text)}
	case 1:
		return b.passed(&u, at)
	}
	return Backend{}, finding{UnsupportedBackend, fmt.Sprintf("%s may be one of several Services; write if (...) { proxy_pass http://NAME.NAMESPACE.svc:PORT; } instead", text)}
}

// portCalled returns what the number of a port means, or its name, which has a letter.
func portCalled(text string) networkingv1.ServiceBackendPort {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return networkingv1.ServiceBackendPort{Number: int32(n)}
	}
	return networkingv1.ServiceBackendPort{Name: text}
}
