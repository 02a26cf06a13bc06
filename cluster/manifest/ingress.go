package manifest

import (
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"quayside.io/cluster/snapshot"
)

// convertIngress turns a v1beta1 Ingress into the present version.
func convertIngress(o metav1.Object) snapshot.Object {
	old := o.(*networkingv1beta1.Ingress)
	return &networkingv1.Ingress{
		ObjectMeta: old.ObjectMeta,
		Spec:       IngressSpec(old.Spec),
		Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
			Ingress: each(old.Status.LoadBalancer.Ingress, convertLoadBalancer),
		}},
	}
}

// IngressSpec returns the spec of a v1beta1 Ingress, of either group, in the present
// version as the API server did: a missing pathType is ImplementationSpecific, a numeric
// servicePort a port number, any other the name of a port.
func IngressSpec(old networkingv1beta1.IngressSpec) networkingv1.IngressSpec {
	return networkingv1.IngressSpec{
		IngressClassName: old.IngressClassName,
		DefaultBackend:   convertBackend(old.Backend),
		TLS:              each(old.TLS, func(t networkingv1beta1.IngressTLS) networkingv1.IngressTLS { return networkingv1.IngressTLS(t) }),
		Rules:            each(old.Rules, convertRule),
	}
}

func convertBackend(old *networkingv1beta1.IngressBackend) *networkingv1.IngressBackend {
	if old == nil {
		return nil
	}
	if old.Resource != nil {
		return &networkingv1.IngressBackend{Resource: old.Resource}
	}
	service := &networkingv1.IngressServiceBackend{Name: old.ServiceName}
	if old.ServicePort.Type == intstr.String {
		service.Port.Name = old.ServicePort.StrVal
	} else {
		service.Port.Number = old.ServicePort.IntVal
	}
	return &networkingv1.IngressBackend{Service: service}
}

func convertRule(old networkingv1beta1.IngressRule) networkingv1.IngressRule {
	rule := networkingv1.IngressRule{Host: old.Host}
	if old.HTTP != nil {
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: each(old.HTTP.Paths, convertPath)}
	}
	return rule
}

func convertPath(old networkingv1beta1.HTTPIngressPath) networkingv1.HTTPIngressPath {
	pathType := networkingv1.PathTypeImplementationSpecific
	if old.PathType != nil {
		pathType = networkingv1.PathType(*old.PathType)
	}
	return networkingv1.HTTPIngressPath{Path: old.Path, PathType: &pathType, Backend: *convertBackend(&old.Backend)}
}

func convertLoadBalancer(old networkingv1beta1.IngressLoadBalancerIngress) networkingv1.IngressLoadBalancerIngress {
	return networkingv1.IngressLoadBalancerIngress{
		IP: old.IP, Hostname: old.Hostname,
		Ports: each(old.Ports, func(p networkingv1beta1.IngressPortStatus) networkingv1.IngressPortStatus {
			return networkingv1.IngressPortStatus(p)
		}),
	}
}

// each converts a list; nil stays nil, so that an absent field stays absent.
func each[A, B any](list []A, convert func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = convert(v)
	}
	return out
}
