package migrate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/networkpolicy"
)

// DefaultProxyNamespace is where the chart has the proxies run by default.
const DefaultProxyNamespace = "quayside-proxy"

// Labels by which pods of ingress-nginx and of ours are known.
const (
	nameLabel      = "app.kubernetes.io/name"
	instanceLabel  = "app.kubernetes.io/instance"
	componentLabel = "app.kubernetes.io/component"
	ingressNginx   = "ingress-nginx"
)

// policy is a NetworkPolicy that was read. One that lets in the pods of ingress-nginx would
// keep ours from the application: connections would time out, and nothing would say why.
type policy struct {
	from  *source
	meta  Meta
	spec  networkingv1.NetworkPolicySpec
	notes []string
}

// takePolicy takes a NetworkPolicy until it is known where ingress-nginx runs.
func (m *Migration) takePolicy(s *source) error {
	p := policy{from: s}
	left, err := read(s.Spec, &p.spec)
	if err != nil {
		return err
	}
	p.meta, p.notes = own(s.Metadata)
	p.notes = append(p.notes, left...)
	m.policies = append(m.policies, p)
	return nil
}

// takeNamespace remembers the labels of a namespace.
func (m *Migration) takeNamespace(s *source) error {
	if m.namespaces == nil {
		m.namespaces = map[string]map[string]string{}
	}
	m.namespaces[s.Metadata.Name] = s.Metadata.Labels
	return nil
}

// noteEdge remembers where ingress-nginx runs, by the Service in front of it.
func (m *Migration) noteEdge(s *source, selector map[string]string) {
	if s.Metadata.Labels[nameLabel] == ingressNginx && len(selector) > 0 {
		m.edges = append(m.edges, networkpolicy.Pod{Namespace: s.Metadata.Namespace, Labels: selector})
	}
}

// podsOf completes p by the labels of its namespace: those that were read, or else assumed.
func (m *Migration) podsOf(p networkpolicy.Pod, assumed labels.Set) networkpolicy.Pod {
	p.Within = maps.Clone(assumed)
	if read, known := m.namespaces[p.Namespace]; known {
		p.Within = maps.Clone(labels.Set(read))
	}
	if p.Within == nil {
		p.Within = labels.Set{}
	}
	p.Within[corev1.LabelMetadataName] = p.Namespace
	return p
}

// finishPolicies adds each NetworkPolicy that lets in ingress-nginx and keeps ours out, as it
// lets in both.
func (m *Migration) finishPolicies() {
	theirs := m.edges
	if len(theirs) == 0 {
		theirs = []networkpolicy.Pod{{Namespace: ingressNginx, Labels: labels.Set{nameLabel: ingressNginx, instanceLabel: ingressNginx, componentLabel: "controller"}}}
	}
	for i, t := range theirs { // whose namespaces have these where their makers followed its documentation
		theirs[i] = m.podsOf(t, labels.Set{"name": t.Namespace, nameLabel: t.Namespace, instanceLabel: t.Namespace})
	}
	ours := m.podsOf(networkpolicy.Pod{Namespace: m.proxyNamespace(), Labels: labels.Set{nameLabel: "quayside", componentLabel: "proxy"}}, nil)
	for _, p := range m.policies {
		changed := false
		for i := range p.spec.Ingress {
			rule := &p.spec.Ingress[i]
			letsTheirs := slices.ContainsFunc(theirs, func(t networkpolicy.Pod) bool { return p.letsIn(rule.From, t) })
			if letsTheirs && !p.letsIn(rule.From, ours) {
				rule.From = append(rule.From, peerOf(ours))
				changed = true
			}
		}
		if changed {
			m.addPolicy(p, ours.Namespace)
		} else {
			m.pass(p.from)
		}
	}
	m.policies = nil
}

func (m *Migration) proxyNamespace() string {
	if m.ProxyNamespace != "" {
		return m.ProxyNamespace
	}
	return DefaultProxyNamespace
}

// addPolicy adds what a NetworkPolicy comes to.
func (m *Migration) addPolicy(p policy, namespace string) {
	notes := append(p.notes, fmt.Sprintf("lets in the proxies in namespace %s beside ingress-nginx, whose part is to be taken out when that is gone; "+
		"proxies on the host network (proxy.hostNetwork.enabled of the chart) come from the addresses of nodes, which an ipBlock lets in", namespace))
	if slices.ContainsFunc(m.streams, func(s stream) bool { return s.to.namespace == p.meta.Namespace }) {
		notes = append(notes, "the clients of TCP and UDP services come here themselves, and not through the proxies: where it selects such pods, an ipBlock has to let in their addresses")
	}
	m.add(p.from, Object{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: p.from.Kind, Metadata: p.meta, Spec: p.spec, Notes: notes})
}

// letsIn reports whether one of the peers of a rule of p is that of some pods. A rule without
// peers lets everybody in. Whose addresses those of an ipBlock are is not known.
func (p *policy) letsIn(from []networkingv1.NetworkPolicyPeer, who networkpolicy.Pod) bool {
	return len(from) == 0 || slices.ContainsFunc(from, func(peer networkingv1.NetworkPolicyPeer) bool {
		return networkpolicy.Names(&peer, p.meta.Namespace, &who)
	})
}

// peerOf is a peer that selects some proxies.
func peerOf(who networkpolicy.Pod) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: who.Namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{componentLabel: who.Labels[componentLabel]}},
	}
}
