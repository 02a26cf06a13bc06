package route

import (
	"cmp"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy/balance"
)

func externalName(svc *corev1.Service) bool { return svc.Spec.Type == corev1.ServiceTypeExternalName }

// outside is external of a backend whose Service has the name of what is outside itself.
func (b *unitBuilder) outside(backend Backend) (Backend, finding) {
	backend.Outside = true
	return b.external(backend, balance.Outside(backend.Service))
}

// external fills in a backend whose Service stands for a name outside the cluster. Its
// addresses are judged where they are known.
func (b *unitBuilder) external(backend Backend, svc *corev1.Service) (Backend, finding) {
	name, err := balance.OutsideName(svc)
	if err == nil {
		_, err = backend.Port.Outside(svc)
	}
	if addr, notAddr := netip.ParseAddr(name); err == nil && notAddr == nil {
		if why := balance.RefuseOutside(addr); why != "" {
			err = fmt.Errorf("%s: %s", addr, why)
		}
	}
	if b.w.t.state.options.NoExternalName {
		err = fmt.Errorf("--disable-svc-external-name refuses that")
	}
	switch {
	case err != nil && backend.Outside:
		return backend, finding{UnsupportedBackend, fmt.Sprintf("%s is outside of the cluster, and %v; name a Service: NAME.NAMESPACE.svc", backend.Service.Name, err)}
	case err != nil:
		return backend, finding{UnsupportedBackend, fmt.Sprintf("Service %s is of type ExternalName, and %v; correct its spec.externalName, or name another Service", backend.Service, err)}
	}
	if backend.TLS.On {
		backend.TLS.Name = cmp.Or(backend.TLS.Name, name)
	}
	port, _ := backend.Port.Find(svc) // it need not have any
	backend.HTTP2 = b.settings.protocol.of(port)
	return backend, finding{}
}
