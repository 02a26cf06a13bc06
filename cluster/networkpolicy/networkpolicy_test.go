package networkpolicy

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// policy reads a policy of namespace shop.
func policy(t *testing.T, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{}
	p.Namespace, p.Name = "shop", "p"
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func pod(namespace, app, ip string) *Pod {
	return &Pod{
		Namespace: namespace, Name: app, Within: map[string]string{"team": namespace}, Labels: map[string]string{"app": app},
		Addresses: []netip.Addr{netip.MustParseAddr(ip)},
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
	}
}

// What the documentation of NetworkPolicies says of each of these.
func TestLetsInAndOut(t *testing.T) {
	web, friend, stranger := pod("shop", "web", "10.1.0.1"), pod("shop", "friend", "10.1.0.2"), pod("else", "friend", "10.2.0.3")
	node := pod("else", "friend", "192.168.1.1")
	node.OnHost = true
	const all = "podSelector: {}\ningress: "
	for name, c := range map[string]struct {
		spec string
		from *Pod
		port Port
		want bool
	}{
		"no rule lets nobody in":                      {all + `[]`, friend, Port{8080, "TCP"}, false},
		"an empty rule lets everybody in":             {all + `[{}]`, stranger, Port{8080, "TCP"}, true},
		"pods of its own namespace":                   {all + `[{from: [{podSelector: {matchLabels: {app: friend}}}]}]`, friend, Port{8080, "TCP"}, true},
		"and of no other":                             {all + `[{from: [{podSelector: {matchLabels: {app: friend}}}]}]`, stranger, Port{8080, "TCP"}, false},
		"all of its own namespace":                    {all + `[{from: [{podSelector: {}}]}]`, friend, Port{8080, "TCP"}, true},
		"a namespace":                                 {all + `[{from: [{namespaceSelector: {matchLabels: {team: else}}}]}]`, stranger, Port{8080, "TCP"}, true},
		"another namespace":                           {all + `[{from: [{namespaceSelector: {matchLabels: {team: else}}}]}]`, friend, Port{8080, "TCP"}, false},
		"every namespace":                             {all + `[{from: [{namespaceSelector: {}}]}]`, stranger, Port{8080, "TCP"}, true},
		"both selectors of one peer":                  {all + `[{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]`, stranger, Port{8080, "TCP"}, false},
		"one of two peers":                            {all + `[{from: [{namespaceSelector: {}}, {podSelector: {matchLabels: {app: web}}}]}]`, stranger, Port{8080, "TCP"}, true},
		"an expression":                               {all + `[{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [else]}]}}]}]`, stranger, Port{8080, "TCP"}, false},
		"an address":                                  {all + `[{from: [{ipBlock: {cidr: 10.2.0.0/16}}]}]`, stranger, Port{8080, "TCP"}, true},
		"an address that is excepted":                 {all + `[{from: [{ipBlock: {cidr: 10.2.0.0/16, except: [10.2.0.0/30]}}]}]`, stranger, Port{8080, "TCP"}, false},
		"a node's address":                            {all + `[{from: [{ipBlock: {cidr: 192.168.0.0/16}}]}]`, node, Port{8080, "TCP"}, true},
		"a pod on a node's network is no pod":         {all + `[{from: [{namespaceSelector: {}, podSelector: {}}]}]`, node, Port{8080, "TCP"}, false},
		"a port":                                      {all + `[{ports: [{port: 8080}]}]`, friend, Port{8080, "TCP"}, true},
		"another port":                                {all + `[{ports: [{port: 8081}]}]`, friend, Port{8080, "TCP"}, false},
		"another protocol":                            {all + `[{ports: [{port: 8080, protocol: UDP}]}]`, friend, Port{8080, "TCP"}, false},
		"TCP is meant where none is named":            {all + `[{ports: [{port: 53}]}]`, friend, Port{53, "UDP"}, false},
		"a port by its name":                          {all + `[{ports: [{port: http}]}]`, friend, Port{8080, "TCP"}, true},
		"a name that another port has":                {all + `[{ports: [{port: http}]}]`, friend, Port{8081, "TCP"}, false},
		"a name of a UDP port":                        {all + `[{ports: [{port: dns, protocol: UDP}]}]`, friend, Port{53, "UDP"}, true},
		"a name of another protocol":                  {all + `[{ports: [{port: dns}]}]`, friend, Port{53, "TCP"}, false},
		"every port of a protocol":                    {all + `[{ports: [{protocol: UDP}]}]`, friend, Port{9, "UDP"}, true},
		"a range of ports":                            {all + `[{ports: [{port: 8000, endPort: 8080}]}]`, friend, Port{8080, "TCP"}, true},
		"the first of a range":                        {all + `[{ports: [{port: 8080, endPort: 8090}]}]`, friend, Port{8080, "TCP"}, true},
		"before the range":                            {all + `[{ports: [{port: 8081, endPort: 8090}]}]`, friend, Port{8080, "TCP"}, false},
		"behind the range":                            {all + `[{ports: [{port: 8000, endPort: 8079}]}]`, friend, Port{8080, "TCP"}, false},
		"a rule's port and peer belong together":      {all + `[{ports: [{port: 1}]}, {from: [{podSelector: {matchLabels: {app: web}}}]}]`, friend, Port{8080, "TCP"}, false},
		"an unreadable range contains nobody":         {all + `[{from: [{ipBlock: {cidr: 10.2/16}}]}]`, stranger, Port{8080, "TCP"}, false},
		"an unreadable selector selects nobody":       {all + `[{from: [{podSelector: {matchExpressions: [{key: app, operator: Perhaps}]}}]}]`, friend, Port{8080, "TCP"}, false},
		"a peer that names nothing, as none can have": {all + `[{from: [{}]}]`, friend, Port{8080, "TCP"}, false},
	} {
		p := policy(t, c.spec)
		if got := LetsIn(p, c.from, web, c.port); got != c.want {
			t.Errorf("%s: lets in: %v", name, got)
		}
		// The same of what goes out, with the ends changed; their ports have the same names.
		for _, r := range p.Spec.Ingress {
			p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: r.From, Ports: r.Ports})
		}
		if got := LetsOut(p, web, c.from, c.port); got != c.want {
			t.Errorf("%s: lets out: %v", name, got)
		}
	}
}

func TestIsolating(t *testing.T) {
	web, onHost := pod("shop", "web", "10.1.0.1"), pod("shop", "web", "10.1.0.1")
	onHost.OnHost = true
	for name, c := range map[string]struct {
		spec      string
		of        *Pod
		direction networkingv1.PolicyType
		want      int
	}{
		"all pods":                         {`{podSelector: {}, policyTypes: [Ingress]}`, web, "Ingress", 1},
		"in the direction that it names":   {`{podSelector: {}, policyTypes: [Ingress]}`, web, "Egress", 0},
		"always what comes in":             {`{podSelector: {}}`, web, "Ingress", 1},
		"what goes out by its rules alone": {`{podSelector: {}, egress: [{}]}`, web, "Egress", 1},
		"and not without":                  {`{podSelector: {}}`, web, "Egress", 0},
		"pods of other labels":             {`{podSelector: {matchLabels: {app: api}}}`, web, "Ingress", 0},
		"of another namespace":             {`{podSelector: {}}`, pod("else", "web", "10.2.0.1"), "Ingress", 0},
		"never a node":                     {`{podSelector: {}}`, onHost, "Ingress", 0},
	} {
		if got := Isolating([]*networkingv1.NetworkPolicy{policy(t, c.spec)}, c.of, c.direction); len(got) != c.want {
			t.Errorf("%s: %d policies isolate", name, len(got))
		}
	}
}

func TestOutside(t *testing.T) {
	web := pod("shop", "web", "10.1.0.1")
	for spec, want := range map[string]int{
		`{podSelector: {}}`:                0,
		`{podSelector: {}, ingress: [{}]}`: 2, // of both families
		`{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`:                                                               0,
		`{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}, {ipBlock: {cidr: "fd00::/8"}}, {ipBlock: {cidr: none}}]}]}`: 2,
		`{podSelector: {}, ingress: [{ports: [{port: 1}], from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}`:                                     0,
	} {
		if got := Outside(policy(t, spec), web, Port{8080, "TCP"}); len(got) != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}

func TestTarget(t *testing.T) {
	b := &Behind{Service: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Port: 80, TargetPort: intstr.FromString("http")}, {Port: 81}, {Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)}, {Port: 82, TargetPort: intstr.FromString("dns")},
	}}}}
	web := pod("shop", "web", "10.1.0.1")
	for asked, want := range map[Port]Port{
		{80, "TCP"}: {8080, "TCP"}, {81, "TCP"}: {81, "TCP"}, {53, "UDP"}: {5353, "UDP"},
		{82, "TCP"}: {}, {80, "UDP"}: {}, {83, "TCP"}: {},
	} {
		got, ok := b.Target(web, asked.Number, asked.Protocol)
		if ok != (want != Port{}) || ok && got != want {
			t.Errorf("%v leads to %v, %v", asked, got, ok)
		}
	}
}
