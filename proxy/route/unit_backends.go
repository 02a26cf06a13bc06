package route

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
)

// sendsAway reports whether all requests are redirected, or answered, so that no backend is
// needed: many such Ingresses name one that was never made.
func (b *unitBuilder) sendsAway() bool {
	s := b.settings
	return !s.canary.on && !s.passthrough.on && (s.filters.Redirect != nil || s.filters.DirectResponse != nil || s.rewrite != nil && s.rewrite.IsURL())
}

// SendsAway reports whether all requests that its guards let pass are redirected, or answered.
func (r *Route) SendsAway() bool {
	f := r.Filters
	return f != nil && (f.Redirect != nil || f.DirectResponse != nil || f.Rewrite != nil && f.Rewrite.Target.IsURL())
}

func (b *unitBuilder) backend(be *networkingv1.IngressBackend) (Backend, finding) {
	switch {
	case be.Resource != nil:
		return Backend{}, finding{UnsupportedBackend, fmt.Sprintf("a backend of kind %s is not supported, only a Service is", be.Resource.Kind)}
	case be.Service == nil || be.Service.Name == "":
		return Backend{}, finding{UnsupportedBackend, "the backend names no Service"}
	case b.last.of == *be.Service:
		return b.last.backend, b.last.fault
	}
	b.last.of = *be.Service
	b.last.backend, b.last.fault = b.service(snapshot.Key{Namespace: b.ref.Namespace, Name: be.Service.Name}, be.Service.Port)
	return b.last.backend, b.last.fault
}

// service returns the backend that a Service is.
func (b *unitBuilder) service(key snapshot.Key, at networkingv1.ServiceBackendPort) (Backend, finding) {
	b.dependsOn(refTo(snapshot.Service, key))
	backend := b.to(key, at)
	svc, ok := b.w.c.Services.Get(key)
	if !ok {
		return backend, finding{MissingService, fmt.Sprintf("Service %s does not exist; create it, or name another in the %s", key, b.ref.Kind)}
	}
	if externalName(svc) {
		return b.external(backend, svc)
	}
	port, err := backend.Port.Find(svc)
	if first := b.portOf(svc, backend.Port); first != nil && first.Port != port.Port {
		b.problemf(TargetPortNamed, "%s of Service %s is the targetPort of its port %d, which is served, as in ingress-nginx; name that one", backend.Port, key, first.Port)
		port, err, backend.Port = *first, nil, balance.PortRef{Number: first.Port}
	}
	if err != nil {
		return backend, finding{MissingPort, fmt.Sprintf("%v; name one that the Service has", err)}
	}
	backend.HTTP2 = b.settings.protocol.of(port)
	return backend, finding{}
}

// portOf is the port of a Service that ingress-nginx takes a backend's port for; nil in classes of
// ours.
func (b *unitBuilder) portOf(svc *corev1.Service, ref balance.PortRef) *corev1.ServicePort {
	if !b.class.Nginx {
		return nil
	}
	return firstPort(svc, ref)
}

// firstPort is the first whose number, name or targetPort it is; nil: there is none.
func firstPort(svc *corev1.Service, ref balance.PortRef) *corev1.ServicePort {
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		switch {
		case p.Protocol != "" && p.Protocol != corev1.ProtocolTCP:
		case ref.Name != "" && (p.Name == ref.Name || p.TargetPort.StrVal == ref.Name),
			ref.Number != 0 && (p.Port == ref.Number || p.TargetPort.IntVal == ref.Number):
			return p
		}
	}
	return nil
}

// NginxPort returns the port of a Service that ingress-nginx takes a backend's port for where a
// class of ours takes another, or none. Nil: it is the same.
func NginxPort(svc *corev1.Service, at networkingv1.ServiceBackendPort) *corev1.ServicePort {
	ref := balance.PortRef{Number: at.Number, Name: at.Name}
	ours, err := ref.Find(svc)
	if first := firstPort(svc, ref); first != nil && (err != nil || first.Port != ours.Port) {
		return first
	}
	return nil
}

// to returns a backend with what the Ingress says of all that it asks.
func (b *unitBuilder) to(key snapshot.Key, port networkingv1.ServiceBackendPort) Backend {
	return Backend{Service: key, AnyNode: b.class.Nginx, ServiceAddress: b.settings.serviceAddress, Policy: b.settings.policy, TLS: b.settings.upstream,
		Port: balance.PortRef{Number: port.Number, Name: port.Name}}
}

// backendAt is backend for paths of a host.
func (b *unitBuilder) backendAt(host string, be *networkingv1.IngressBackend) (Backend, finding) {
	backend, fault := b.backend(be)
	var named bool
	if backend.TLS, named = backend.TLS.at(host); !named && fault.reason == "" {
		fault = finding{InvalidAnnotation, fmt.Sprintf("proxy-ssl-name is %s, and %q is not one name; name that of the backend's certificate", hostsName, host)}
	}
	return backend, fault
}
