package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/networkpolicy"
	"quayside.io/cluster/snapshot"
)

// Hop is a Service whose pods get connections on a path.
type Hop struct {
	Service   string          `json:"service"` // NAMESPACE/NAME
	Port      int32           `json:"port"`    // of the Service
	Protocol  corev1.Protocol `json:"protocol"`
	ByProxies bool            `json:"byProxies,omitempty"` // who connects: the proxies, and not clients
}

// String names the port.
func (h *Hop) String() string { return fmt.Sprintf("port %d/%s of %s", h.Port, h.Protocol, h.Service) }

// hop notes that a port of a Service is connected to. `up` knows no NetworkPolicies.
func (t *tracer) hop(s *corev1.Service, port corev1.ServicePort, byProxies bool) {
	h := Hop{Service: snapshot.KeyOf(s).String(), Port: port.Port, Protocol: protocolOf(port), ByProxies: byProxies}
	if !t.Embedded && !slices.Contains(t.path.Hops, h) {
		t.path.Hops = append(t.path.Hops, h)
	}
}

// Services are those of the hops of a path.
func (p *Path) Services() (services []snapshot.Key) {
	for _, h := range p.Hops {
		namespace, name, _ := strings.Cut(h.Service, "/")
		if key := (snapshot.Key{Namespace: namespace, Name: name}); !slices.Contains(services, key) {
			services = append(services, key)
		}
	}
	return services
}

// Policies says of the hops of a path whether NetworkPolicies let connections through, where
// any is about them. behind has what stands behind their Services; one that is missing is not
// judged.
func Policies(p *Path, behind map[string]*networkpolicy.Behind) []Link {
	g := guards{behind: behind}
	for _, h := range p.Hops {
		if !h.ByProxies && behind[h.Service] != nil {
			g.fromClients(h)
		}
	}
	for _, h := range p.Hops {
		if h.ByProxies && behind[h.Service] != nil {
			g.fromProxies(p.Hops, h)
		}
	}
	return g.links
}

// guards gathers links.
type guards struct {
	behind map[string]*networkpolicy.Behind
	links  []Link
}

func (g *guards) say(state State, format string, args ...any) {
	g.links = append(g.links, Link{"policies", state, fmt.Sprintf(format, args...)})
}

// enforced is said of what policies keep away.
const enforced = "where the network enforces NetworkPolicies, connections time out"

// fromClients judges what clients send to the pods of a hop.
func (g *guards) fromClients(h Hop) {
	b := g.behind[h.Service]
	var shut, guarding []string
	var ranges []netip.Prefix
	for i := range b.Pods {
		p := &b.Pods[i]
		isolating := networkpolicy.Isolating(b.Policies, p, networkingv1.PolicyTypeIngress)
		port, ok := b.Target(p, h.Port, h.Protocol)
		if len(isolating) == 0 || !ok {
			continue
		}
		var open []netip.Prefix
		for _, policy := range isolating {
			open = append(open, networkpolicy.Outside(policy, p, port)...)
			guarding = append(guarding, snapshot.KeyOf(policy).String())
		}
		if len(open) == 0 {
			shut = append(shut, p.Name)
		}
		ranges = append(ranges, open...)
	}
	who := listed(guarding, 5)
	switch what := h.String(); {
	case len(guarding) == 0:
	case len(shut) > 0 && policyOf(b.Service) == corev1.ServiceExternalTrafficPolicyLocal:
		g.say(Broken, "%s: NetworkPolicy %s lets no address outside of the cluster reach pod %s, so %s; add an ipBlock with those of the clients, or a rule without from", what, who, names(shut, 3), enforced)
	case len(shut) > 0: // kube-proxy has connections come from nodes, each of which may reach its own pods
		g.say(Unknown, "%s: NetworkPolicy %s lets no address reach pod %s, and by externalTrafficPolicy: Cluster clients have those of nodes, which networks treat in different ways; add an ipBlock, or a rule without from", what, who, names(shut, 3))
	case slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() == 0 }):
		g.say(Works, "%s: NetworkPolicy %s lets clients in", what, who)
	default:
		g.say(Works, "%s: NetworkPolicy %s lets in clients from %s alone", what, who, listed(textsOf(ranges), 10))
	}
}

// listed names each of some texts once, in order, up to so many.
func listed(texts []string, most int) string {
	slices.Sort(texts)
	return names(slices.Compact(texts), most)
}

// fromProxies judges what the proxies, which are the pods of the other hops, send to those
// of one.
func (g *guards) fromProxies(hops []Hop, to Hop) {
	var found verdicts
	for _, h := range hops {
		if front := g.behind[h.Service]; !h.ByProxies && front != nil && !slices.Contains(found.fronts, h.Service) {
			found.fronts = append(found.fronts, h.Service)
			found.between(front, g.behind[to.Service], to)
		}
	}
	who := listed(found.guarding, 5)
	switch what := to.String(); {
	case found.keptIn != nil:
		g.say(Broken, "%s: NetworkPolicy %s lets nothing out of proxy %s/%s to it, so %s; add a rule to egress", what, who, found.keptIn.Namespace, found.keptIn.Name, enforced)
	case found.keptOut != nil && found.keptOut.OnHost:
		g.say(Broken, "%s: NetworkPolicy %s does not let in proxies, which are on the network of node %s, so %s; add an ipBlock with the addresses of nodes", what, who, found.keptOut.Node, enforced)
	case found.keptOut != nil:
		g.say(Broken, "%s: NetworkPolicy %s does not let in proxies from namespace %s, so %s; add one in from, with namespaceSelector %s=%s", what, who, found.keptOut.Namespace, enforced, corev1.LabelMetadataName, found.keptOut.Namespace)
	case len(found.guarding) > 0:
		g.say(Works, "%s: NetworkPolicy %s lets the proxies through", what, who)
	}
}

// verdicts are what is found of the connections from proxies to a backend.
type verdicts struct {
	fronts          []string // the Services of the proxies
	guarding        []string // the policies, or those alone that keep connections away
	keptIn, keptOut *networkpolicy.Pod
}

// between judges the connections of each pod in front with each one behind.
func (v *verdicts) between(front, back *networkpolicy.Behind, h Hop) {
	binding := make([][]*networkingv1.NetworkPolicy, len(front.Pods))
	for j := range front.Pods {
		binding[j] = networkpolicy.Isolating(front.Policies, &front.Pods[j], networkingv1.PolicyTypeEgress)
	}
	for i := range back.Pods {
		to := &back.Pods[i]
		port, ok := back.Target(to, h.Port, h.Protocol)
		if !ok {
			continue
		}
		isolating := networkpolicy.Isolating(back.Policies, to, networkingv1.PolicyTypeIngress)
		for j := range front.Pods {
			from := &front.Pods[j]
			v.judge(&v.keptIn, from, binding[j], func(p *networkingv1.NetworkPolicy) bool { return networkpolicy.LetsOut(p, from, to, port) })
			if from.OnHost && from.Node == to.Node { // a node reaches its own pods
				continue
			}
			v.judge(&v.keptOut, from, isolating, func(p *networkingv1.NetworkPolicy) bool { return networkpolicy.LetsIn(p, from, to, port) })
		}
	}
}

// judge notes the policies that are about a connection from a pod and, the first time that none
// lets it through, whose it is.
func (v *verdicts) judge(kept **networkpolicy.Pod, from *networkpolicy.Pod, policies []*networkingv1.NetworkPolicy, lets func(*networkingv1.NetworkPolicy) bool) {
	if v.keptIn != nil || v.keptOut != nil || len(policies) == 0 {
		return
	}
	if !slices.ContainsFunc(policies, lets) {
		*kept, v.guarding = from, nil
	}
	for _, p := range policies {
		v.guarding = append(v.guarding, snapshot.KeyOf(p).String())
	}
}
