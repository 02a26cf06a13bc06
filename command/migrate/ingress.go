package migrate

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/geoip"
	"quayside.io/proxy/route"
)

// ourClass returns the class that an Ingress of theirs comes to, and false if it stays theirs.
func (m *Migration) ourClass(theirs string) (class string, taken bool) {
	if m.Classes == nil {
		return ingressclass.DefaultName, theirs == ingressclass.NginxName
	}
	class, taken = m.Classes[theirs]
	return class, taken
}

// ingressVersions are the apiVersions of Ingresses that are read. No API server has had any
// but the first since Kubernetes 1.22; files have.
func ingressVersions() []string {
	return []string{networkingv1.SchemeGroupVersion.String(), networkingv1beta1.SchemeGroupVersion.String(), "extensions/v1beta1"}
}

// readIngress returns the spec of an Ingress in the present version, and a note for each
// field that it does not have.
func readIngress(s *source) (spec networkingv1.IngressSpec, left []string, err error) {
	if s.APIVersion == networkingv1.SchemeGroupVersion.String() {
		left, err = read(s.Spec, &spec)
		return spec, left, err
	}
	var old networkingv1beta1.IngressSpec // the two groups are alike in every field
	if left, err = read(s.Spec, &old); err != nil {
		return spec, nil, err
	}
	return manifest.IngressSpec(old), left, nil
}

// takeIngress takes an Ingress of the classes that are taken over.
func (m *Migration) takeIngress(s *source) error {
	spec, left, err := readIngress(s)
	if err != nil {
		return err
	}
	class := ingressclass.NameOf(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Annotations: s.Metadata.Annotations}, Spec: spec})
	ours, taken := m.ourClass(class)
	if !taken && class == "" {
		m.note("Ingress %s/%s names no class: left alone; --ingress-class =%s takes it over, too", s.Metadata.Namespace, s.Metadata.Name, ingressclass.DefaultName)
		return nil
	}
	if !taken {
		m.note("Ingress %s/%s is of class %q: left alone; --ingress-class takes it over, too", s.Metadata.Namespace, s.Metadata.Name, class)
		return nil
	}
	if s.Metadata.Labels[challengeLabel] == "true" {
		m.pass(s) // it is gone when the challenge has been answered
		return nil
	}
	spec.IngressClassName = &ours
	meta, notes := own(s.Metadata)
	meta.Annotations = renamed(meta.Annotations)
	m.ingresses = append(m.ingresses, ingress{from: s, was: class, meta: meta, spec: spec, notes: slices.Concat(notes, left)})
	return nil
}

// ingress is one that was read.
type ingress struct {
	from  *source
	was   string // its class
	meta  Meta
	spec  networkingv1.IngressSpec
	notes []string
}

// finishIngresses makes of each what it comes to, now that all are known: what a snippet
// says of a host is said of every Ingress that has it.
func (m *Migration) finishIngresses() {
	users := map[string]int{}
	for _, i := range m.ingresses {
		for host := range hostsOf(i.spec) {
			users[host]++
		}
	}
	for n := range m.ingresses {
		m.ingresses[n].nameHosts()
	}
	m.redirects()
	shareHosts(m.ingresses)
	for _, i := range m.ingresses {
		alone := len(i.spec.Rules) > 0
		for host := range hostsOf(i.spec) {
			alone = alone && users[host] == 1
		}
		m.finishIngress(i, alone)
	}
	m.ingresses = nil
}

// hostsOf are the hosts of rules, each once.
func hostsOf(spec networkingv1.IngressSpec) map[string]bool {
	hosts := map[string]bool{}
	for _, r := range spec.Rules {
		hosts[strings.ToLower(r.Host)] = true
	}
	return hosts
}

// finishIngress adds an Ingress, and those beside it. alone says that no other has any of its
// hosts.
func (m *Migration) finishIngress(i ingress, alone bool) {
	meta, spec, notes := i.meta, i.spec, i.notes
	meta, beside, replaced := withoutSnippets(meta, spec, alone)
	notes = append(notes, m.namePorts(meta.Namespace, spec)...)
	notes = append(notes, m.challenges(meta, i.was, *spec.IngressClassName)...)
	judged := judge(meta, spec)
	if spec.DefaultBackend != nil && len(spec.Rules) > 0 {
		notes = append(notes, "spec.defaultBackend serves every host that no Ingress names, as the specification has it; in ingress-nginx it serves only the hosts of this Ingress")
	}
	m.add(i.from, Object{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: i.from.Kind, Metadata: meta, Spec: spec, Notes: slices.Concat(notes, replaced, judged, replacements(meta.Annotations, judged))})
	for _, o := range beside {
		m.add(i.from, o)
	}
}

// renamed are the annotations under our own prefix. Where an Ingress has a key under
// both prefixes, ours wins, as it does in the proxy.
func renamed(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range annotations {
		if name == ingressclass.LegacyAnnotation {
			continue
		}
		if key, theirs := strings.CutPrefix(name, route.NginxPrefix); theirs {
			name = route.OwnPrefix + key
			if _, both := annotations[name]; both {
				continue
			}
		}
		out[name] = value
	}
	return out
}

// replacements names what does here what snippets did that are left, of which judged says what
// the proxy makes of them.
func replacements(annotations map[string]string, judged []string) (notes []string) {
	for _, key := range []string{"configuration-snippet", "server-snippet"} {
		text, about := annotations[route.OwnPrefix+key], route.OwnPrefix+key
		inPart := func(note string) bool { return strings.Contains(note, about+" acts in part: ") }
		switch {
		case strings.TrimSpace(text) == "":
		case slices.ContainsFunc(judged, inPart):
			notes = append(notes, key+" stays: it is obeyed but for what can be left out")
		case slices.ContainsFunc(judged, func(note string) bool { return strings.Contains(note, about) }):
			notes = append(notes, snippetNotes(key, text)...)
		case key == "server-snippet":
			notes = append(notes, key+" stays: it is obeyed as it is, for the paths of this Ingress")
		default:
			notes = append(notes, key+" stays: it is obeyed as it is")
		}
	}
	return notes
}

// judge asks the proxy's compiler what it makes of the Ingress. That Services,
// Secrets and other Ingresses are not at hand here is no news.
func judge(meta Meta, spec networkingv1.IngressSpec) (notes []string) {
	o := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, Annotations: meta.Annotations}, Spec: spec,
	}
	classes := ingressclass.Rules{Name: *spec.IngressClassName}
	for _, p := range route.Compile(snapshot.Of(o), nil, route.Options{Classes: classes, Places: geoip.Every()}).Problems {
		absent := slices.Contains([]string{route.MissingService, route.MissingPort, route.MissingSecret, route.CanaryUnused}, p.Reason) ||
			strings.Contains(p.Message, "does not exist")
		if !absent {
			notes = append(notes, fmt.Sprintf("%s: %s", p.Reason, strings.TrimSuffix(p.Message, route.SnippetHelp)))
		}
	}
	return notes
}
