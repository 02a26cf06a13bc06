package migrate

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/controller/snapshot"
	"quayside.io/proxy/route"
)

const (
	nginxClass  = "nginx"
	legacyClass = "kubernetes.io/ingress.class"
	nginxPrefix = "nginx.ingress.kubernetes.io/"
	ownPrefix   = "ingress.quayside.io/"
	redirect    = "ssl-redirect"
)

// ingress takes an Ingress of class nginx.
func (m *Migration) ingress(s *source) error {
	var spec networkingv1.IngressSpec
	left, err := read(s.Spec, &spec)
	if err != nil {
		return err
	}
	class := s.Metadata.Annotations[legacyClass]
	if spec.IngressClassName != nil {
		class = *spec.IngressClassName
	}
	if class != nginxClass {
		m.note("Ingress %s/%s is of class %q, not nginx: left alone", s.Metadata.Namespace, s.Metadata.Name, class)
		return nil
	}
	ours := route.DefaultClass
	spec.IngressClassName = &ours
	meta := Meta{Name: s.Metadata.Name, Namespace: s.Metadata.Namespace, Labels: s.Metadata.Labels, Annotations: renamed(s.Metadata.Annotations)}
	if _, said := meta.Annotations[ownPrefix+redirect]; !said && len(spec.TLS) > 0 {
		// The habit of ingress-nginx that classes of our own do not have.
		meta.Annotations[ownPrefix+redirect] = "true"
	}
	o := Object{APIVersion: s.APIVersion, Kind: s.Kind, Metadata: meta, Spec: spec, Notes: append(left, judge(meta, spec)...)}
	m.add(s, o)
	return nil
}

// renamed are the annotations under our own prefix.
func renamed(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range own(annotations) {
		if name == legacyClass {
			continue
		}
		if key, theirs := strings.CutPrefix(name, nginxPrefix); theirs {
			name = ownPrefix + key
		}
		out[name] = value
	}
	return out
}

// judge asks the proxy's compiler what it makes of the Ingress. That Services
// and Secrets are not at hand here is no news.
func judge(meta Meta, spec networkingv1.IngressSpec) (notes []string) {
	o := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, Annotations: meta.Annotations}, Spec: spec,
	}
	for _, p := range route.Compile(snapshot.Of(o), nil, route.Options{}).Problems {
		if !slices.Contains([]string{route.MissingService, route.MissingPort, route.MissingSecret}, p.Reason) {
			notes = append(notes, fmt.Sprintf("%s: %s", p.Reason, p.Message))
		}
	}
	return notes
}
