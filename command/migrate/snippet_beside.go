package migrate

import (
	"iter"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// pathsOf are the paths of all rules.
func pathsOf(spec networkingv1.IngressSpec) iter.Seq[networkingv1.HTTPIngressPath] {
	return func(yield func(networkingv1.HTTPIngressPath) bool) {
		for _, r := range spec.Rules {
			if r.HTTP == nil {
				continue
			}
			for _, at := range r.HTTP.Paths {
				if !yield(at) {
					return
				}
			}
		}
	}
}

func isExact(at networkingv1.HTTPIngressPath) bool {
	return at.PathType != nil && *at.PathType == networkingv1.PathTypeExact
}

// besideSpec is that of an Ingress with one path, on each host for which another has paths.
func besideSpec(spec networkingv1.IngressSpec, path networkingv1.HTTPIngressPath) networkingv1.IngressSpec {
	own := networkingv1.IngressSpec{IngressClassName: spec.IngressClassName}
	for _, r := range spec.Rules {
		if r.HTTP == nil || slices.ContainsFunc(own.Rules, func(have networkingv1.IngressRule) bool { return have.Host == r.Host }) {
			continue
		}
		value := networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}}}
		own.Rules = append(own.Rules, networkingv1.IngressRule{Host: r.Host, IngressRuleValue: value})
	}
	return own
}

// besideObject is an Ingress beside another, and whether the proxy understands all of it.
func besideObject(meta Meta, spec networkingv1.IngressSpec) (Object, bool) {
	return Object{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress", Metadata: meta, Spec: spec}, len(judge(meta, spec)) == 0 && len(spec.Rules) > 0
}
