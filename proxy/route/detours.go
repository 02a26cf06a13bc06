package route

import (
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// detours are the backends that ifs of its snippets lead to, for one route.
func (b *unitBuilder) detours() (backends []int) {
	for i := range b.settings.detours {
		backend, fault := b.detour(&b.settings.detours[i].Upstream)
		if fault.reason != "" {
			backends = append(backends, -1)
			if fault.message = "an if of its snippets with proxy_pass: " + fault.message + "; its requests get a 503"; !b.told(fault) {
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
func (b *unitBuilder) detour(u *snippet.Upstream) (Backend, finding) {
	s, all := *b.settings, b.w.t.state.global.settingsOf(b.class)
	s.policy, s.serviceAddress, s.protocol, s.upstream.On = all.policy, false, protocol{said: true}, u.TLS
	if s.upstream.Name == hostsName {
		s.upstream.Name = "" // it would be that of the Ingress's backend
	}
	own := unitBuilder{unit: b.unit, w: b.w, class: b.class, settings: &s, ingress: b.ingress}
	return own.passed(u, networkingv1.ServiceBackendPort{Number: u.Port})
}
