package explain

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/networkpolicy"
	"quayside.io/cluster/snapshot"
)

// behindTwo is what stands behind the Service of the proxies and that of an application, with
// policies by namespace.
func behindTwo(t *testing.T, policies map[string]string) map[string]*networkpolicy.Behind {
	t.Helper()
	all := map[string]*networkpolicy.Behind{}
	for service, pod := range map[string]networkpolicy.Pod{
		"edge/proxy": {Namespace: "edge", Name: "proxy-1", Within: map[string]string{corev1.LabelMetadataName: "edge"}, Labels: map[string]string{"app": "proxy"}, Node: "n1", Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1")}},
		"shop/web":   {Namespace: "shop", Name: "web-1", Within: map[string]string{corev1.LabelMetadataName: "shop"}, Labels: map[string]string{"app": "web"}, Node: "n2", Addresses: []netip.Addr{netip.MustParseAddr("10.2.0.1")}},
	} {
		b := &networkpolicy.Behind{Service: &corev1.Service{}, Pods: []networkpolicy.Pod{pod}}
		b.Service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		b.Service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		if spec := policies[pod.Namespace]; spec != "" {
			p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "p"}}
			if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			b.Policies = append(b.Policies, p)
		}
		all[service] = b
	}
	return all
}

// A policy is told of where it is about the path, and is blamed for what it keeps away.
func TestPolicies(t *testing.T) {
	onHost := func(all map[string]*networkpolicy.Behind) { all["edge/proxy"].Pods[0].OnHost = true }
	for name, c := range map[string]struct {
		policies map[string]string
		change   func(map[string]*networkpolicy.Behind)
		want     string // "": no link
	}{
		"none":                 {},
		"of other pods":        {policies: map[string]string{"shop": `{podSelector: {matchLabels: {app: api}}}`}},
		"lets nobody in":       {policies: map[string]string{"shop": `{podSelector: {}}`}, want: "broken: port 80/TCP of shop/web: NetworkPolicy shop/p does not let in proxies from namespace edge,"},
		"lets the proxies in":  {policies: map[string]string{"shop": `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: edge}}}]}]}`}, want: "ok: port 80/TCP of shop/web: NetworkPolicy shop/p lets the proxies through"},
		"lets nothing out":     {policies: map[string]string{"edge": `{podSelector: {}, policyTypes: [Egress]}`}, want: "broken: port 80/TCP of shop/web: NetworkPolicy edge/p lets nothing out of proxy edge/proxy-1 to it,"},
		"keeps clients away":   {policies: map[string]string{"edge": `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`}, want: "broken: port 80/TCP of edge/proxy: NetworkPolicy edge/p lets no address outside of the cluster reach pod proxy-1,"},
		"lets in some clients": {policies: map[string]string{"edge": `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}`}, want: "ok: port 80/TCP of edge/proxy: NetworkPolicy edge/p lets in clients from 10.0.0.0/8 alone"},
		"lets clients in":      {policies: map[string]string{"edge": `{podSelector: {}, ingress: [{ports: [{port: 80}]}]}`}, want: "ok: port 80/TCP of edge/proxy: NetworkPolicy edge/p lets clients in"},
		"clients come from nodes": {policies: map[string]string{"edge": `{podSelector: {}}`}, want: "unknown: port 80/TCP of edge/proxy: NetworkPolicy edge/p lets no address reach pod proxy-1,",
			change: func(all map[string]*networkpolicy.Behind) { all["edge/proxy"].Service.Spec.ExternalTrafficPolicy = "" }},
		"of proxies on the network of nodes": {policies: map[string]string{"edge": `{podSelector: {}}`}, change: onHost},
		"lets in no nodes":                   {policies: map[string]string{"shop": `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`}, change: onHost, want: "broken: port 80/TCP of shop/web: NetworkPolicy shop/p does not let in proxies, which are on the network of node n1,"},
		"a node reaches its own pods": {policies: map[string]string{"shop": `{podSelector: {}}`}, change: func(all map[string]*networkpolicy.Behind) {
			onHost(all)
			all["shop/web"].Pods[0].Node = "n1"
		}},
	} {
		behind := behindTwo(t, c.policies)
		if c.change != nil {
			c.change(behind)
		}
		p := &Path{Hops: []Hop{{Service: "edge/proxy", Port: 80, Protocol: "TCP"}, {Service: "shop/web", Port: 80, Protocol: "TCP", ByProxies: true}, {Service: "shop/gone", Port: 80, Protocol: "TCP", ByProxies: true}}}
		var said []string
		for _, l := range Policies(p, behind) {
			said = append(said, string(l.State)+": "+l.Says)
		}
		if c.want == "" && len(said) > 0 || c.want != "" && (len(said) != 1 || !strings.HasPrefix(said[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// The Services that a path passes are known where there is a cluster.
func TestServicesOfHops(t *testing.T) {
	p := &Path{Hops: []Hop{{Service: "edge/proxy", Port: 80}, {Service: "edge/proxy", Port: 443}, {Service: "shop/web", Port: 80}}}
	var texts []string
	for _, key := range p.Services() {
		texts = append(texts, key.String())
	}
	if !slices.Equal(texts, []string{"edge/proxy", "shop/web"}) {
		t.Error(texts)
	}
}

// Connections are known from the clients to the pods, also where nothing says what is in front
// of the proxies.
func TestHopsOfAPath(t *testing.T) {
	const objects = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec:
  ingressClassName: quayside
  rules: [{host: shop.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: quayside}
spec: {controller: quayside.io/ingress}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: metrics, port: 9090}, {name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: proxy, namespace: edge}
spec: {type: LoadBalancer, ports: [{name: http, port: 80}, {name: https, port: 443}]}
`
	proxies, web := Hop{Service: "edge/proxy", Port: 80, Protocol: "TCP"}, Hop{Service: "shop/web", Port: 8080, Protocol: "TCP", ByProxies: true}
	self := snapshot.Key{Namespace: "edge", Name: "proxy"}
	for name, c := range map[string]struct {
		target, status string
		embedded       bool
		want           []Hop
	}{
		"by the Service of the proxies": {"http://shop.test/", "status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", false, []Hop{proxies, web}},
		"by a published address":        {"http://shop.test/", "", false, []Hop{proxies, web}},
		"`up` knows no policies":        {"http://shop.test/", "", true, nil},
		"a Service":                     {"service/edge/proxy", "status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", false, []Hop{proxies, {Service: "edge/proxy", Port: 443, Protocol: "TCP"}}},
	} {
		s := inputsOf(snapshot.Of(manifest.Decode("objects.yaml", []byte(objects+c.status)).Objects...), time.Time{}, c.embedded, false)
		s.Self = []snapshot.Key{{Namespace: "edge", Name: "gone"}, self}
		to, err := ParseTarget(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := Trace(s, to).Hops; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
