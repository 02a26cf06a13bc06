package balance_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/manifest"
	"quayside.io/proxy/balance"
)

// cluster reads one Service and its slices.
func cluster(t *testing.T, text string) (svc *corev1.Service, list []*discoveryv1.EndpointSlice) {
	t.Helper()
	read := manifest.Decode("test.yaml", []byte(text))
	for _, p := range read.Errors {
		t.Fatal(p)
	}
	for _, o := range read.Objects {
		switch o := o.(type) {
		case *corev1.Service:
			svc = o
		case *discoveryv1.EndpointSlice:
			list = append(list, o)
		}
	}
	return svc, list
}

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: a}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: admin, port: 81, targetPort: named}
  - {name: dns, port: 53, protocol: UDP}
---
`

func slice(name, endpoints string) string {
	return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name + `, namespace: a, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}, {name: admin, port: 9000, protocol: TCP}]
endpoints:
` + endpoints + "---\n"
}

func TestCompile(t *testing.T) {
	http := balance.PortRef{Number: 80}
	local := strings.Replace(service, "spec:", "spec:\n  type: LoadBalancer\n  externalTrafficPolicy: Local", 1)
	for _, test := range []struct {
		name, text string
		port       balance.PortRef
		options    balance.Options
		want       string // addresses, then why
		draining   bool
		refused    int
	}{{
		name: "number", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.2]}\n- {addresses: [10.0.0.1], conditions: {ready: true}}\n"),
		want: "10.0.0.1:8080 10.0.0.2:8080",
	}, {
		name: "name with a port of its own", port: balance.PortRef{Name: "admin"},
		text: service + slice("s", "- {addresses: [10.0.0.1]}\n"), want: "10.0.0.1:9000",
	}, {
		name: "UDP is no port for us", port: balance.PortRef{Name: "dns"}, text: service,
		want: "no TCP port dns in Service a/web, which has 80 named http, 81 named admin",
	}, {
		name: "no such port", port: balance.PortRef{Number: 82}, text: service,
		want: "no TCP port 82 in Service a/web, which has 80 named http, 81 named admin",
	}, {
		name: "one endpoint in two slices", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1]}\n") + slice("t", "- {addresses: [10.0.0.1]}\n- {addresses: [10.0.0.2]}\n"),
		want: "10.0.0.1:8080 10.0.0.2:8080",
	}, {
		name: "ready before draining", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}\n- {addresses: [10.0.0.2]}\n"),
		want: "10.0.0.2:8080",
	}, {
		name: "draining while none is ready", port: http, draining: true,
		text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}\n- {addresses: [10.0.0.2], conditions: {ready: false, serving: false, terminating: true}}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "of what does not say that it serves, what terminates does", port: http, draining: true,
		text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false, terminating: true}}\n- {addresses: [10.0.0.2], conditions: {ready: false, serving: true}}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "draining anywhere, whatever is near", port: http, draining: true,
		text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false, terminating: true}, hints: {forZones: [{name: z1}]}}\n- {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}, hints: {forZones: [{name: z2}]}}\n"),
		want: "10.0.0.1:8080 10.0.0.2:8080",
	}, {
		name: "a new pod has the address of one that ends", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false, terminating: true}}\n") + slice("t", "- {addresses: [10.0.0.1], conditions: {ready: false}}\n"),
		want: "Service a/web has no ready endpoint (1 not ready)",
	}, {
		name: "none ready", port: http, text: service + slice("s", "- {addresses: [10.0.0.1], conditions: {ready: false}}\n"),
		want: "Service a/web has no ready endpoint (1 not ready)",
	}, {
		name: "no slice", port: http, text: service, want: "Service a/web has no endpoint",
	}, {
		name: "no selector and no slice", port: http, text: strings.Replace(service, "selector: {app: web}", "clusterIP: None", 1),
		want: "Service a/web has no endpoint and no selector: it needs an EndpointSlice",
	}, {
		name: "no selector but a slice", port: http,
		text: strings.Replace(service, "selector: {app: web}", "clusterIP: None", 1) + slice("s", "- {addresses: [10.0.0.1]}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "slice of another port", port: http,
		text: service + strings.ReplaceAll(slice("s", "- {addresses: [10.0.0.1]}\n"), "name: http", "name: web"),
		want: "no endpoint of Service a/web serves its port 80 named http",
	}, {
		name: "ExternalName", port: http, text: strings.Replace(service, "spec:", "spec:\n  type: ExternalName\n  externalName: example.org", 1),
		want: "Service a/web is of type ExternalName and its proxies look example.org up",
	}, {
		name: "dangerous addresses", port: http, refused: 4,
		text: service + slice("s", "- {addresses: [127.0.0.1]}\n- {addresses: [169.254.169.254]}\n- {addresses: [0.0.0.0]}\n- {addresses: [224.0.0.1]}\n- {addresses: [10.0.0.1]}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "dangerous addresses in IPv6 clothes", port: http, refused: 3,
		text: service + slice("s", "- {addresses: [\"::ffff:127.0.0.1\"]}\n- {addresses: [\"::ffff:169.254.169.254\"]}\n- {addresses: [\"::ffff:0.0.0.0\"]}\n- {addresses: [\"::ffff:10.0.0.1\"]}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "loopback where it is allowed", port: http, options: balance.Options{AllowLoopback: true}, refused: 1,
		text: service + slice("s", "- {addresses: [127.0.0.1]}\n- {addresses: [169.254.169.254]}\n"),
		want: "127.0.0.1:8080",
	}, {
		name: "Local", port: http,
		text: local + slice("s", "- {addresses: [10.0.0.1], nodeName: n1}\n- {addresses: [10.0.0.2], nodeName: n2}\n- {addresses: [10.0.0.3]}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "Local without any here", port: http,
		text: local + slice("s", "- {addresses: [10.0.0.2], nodeName: n2}\n- {addresses: [10.0.0.3]}\n"),
		want: "Service a/web has externalTrafficPolicy: Local and no endpoint on this node (2 elsewhere)",
	}, {
		name: "Local with only a draining one here", port: http, draining: true,
		text: local + slice("s", "- {addresses: [10.0.0.1], nodeName: n1, conditions: {ready: false, serving: true, terminating: true}}\n- {addresses: [10.0.0.2], nodeName: n2}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "Local ignored", port: http, options: balance.Options{AnyNode: true},
		text: local + slice("s", "- {addresses: [10.0.0.2], nodeName: n2}\n- {addresses: [10.0.0.3]}\n"),
		want: "10.0.0.2:8080 10.0.0.3:8080",
	}, {
		name: "zone hints", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1], hints: {forZones: [{name: z1}]}}\n- {addresses: [10.0.0.2], hints: {forZones: [{name: z2}]}}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "zone hints, one missing", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1], hints: {forZones: [{name: z1}]}}\n- {addresses: [10.0.0.2]}\n"),
		want: "10.0.0.1:8080 10.0.0.2:8080",
	}, {
		name: "zone hints for others only", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.2], hints: {forZones: [{name: z2}]}}\n"),
		want: "10.0.0.2:8080",
	}, {
		name: "internal Local", port: http,
		text: strings.Replace(service, "spec:", "spec:\n  internalTrafficPolicy: Local", 1) + slice("s", "- {addresses: [10.0.0.2], nodeName: n2}\n"),
		want: "Service a/web has internalTrafficPolicy: Local and no endpoint on this node (1 elsewhere)",
	}, {
		name: "trafficDistribution without hints, same zone", port: http,
		text: strings.Replace(service, "spec:", "spec:\n  trafficDistribution: PreferClose", 1) + slice("s", "- {addresses: [10.0.0.1], zone: z1, nodeName: n2}\n- {addresses: [10.0.0.2], zone: z2, nodeName: n3}\n"),
		want: "10.0.0.1:8080",
	}, {
		name: "trafficDistribution without hints, same node", port: http,
		text: strings.Replace(service, "spec:", "spec:\n  trafficDistribution: PreferSameNode", 1) + slice("s", "- {addresses: [10.0.0.1], zone: z1, nodeName: n2}\n- {addresses: [10.0.0.2], zone: z1, nodeName: n1}\n"),
		want: "10.0.0.2:8080",
	}, {
		name: "trafficDistribution, nobody near", port: http,
		text: strings.Replace(service, "spec:", "spec:\n  trafficDistribution: PreferSameZone", 1) + slice("s", "- {addresses: [10.0.0.1], zone: z2}\n- {addresses: [10.0.0.2]}\n"),
		want: "10.0.0.1:8080 10.0.0.2:8080",
	}, {
		name: "trafficDistribution yields to hints", port: http,
		text: strings.Replace(service, "spec:", "spec:\n  trafficDistribution: PreferSameZone", 1) + slice("s", "- {addresses: [10.0.0.1], zone: z1, hints: {forZones: [{name: z2}]}}\n- {addresses: [10.0.0.2], zone: z2, hints: {forZones: [{name: z1}]}}\n"),
		want: "10.0.0.2:8080",
	}, {
		name: "node hints before zone hints", port: http,
		text: service + slice("s", "- {addresses: [10.0.0.1], hints: {forZones: [{name: z1}], forNodes: [{name: n2}]}}\n- {addresses: [10.0.0.2], hints: {forZones: [{name: z1}], forNodes: [{name: n1}]}}\n"),
		want: "10.0.0.2:8080",
	}} {
		t.Run(test.name, func(t *testing.T) {
			svc, list := cluster(t, test.text)
			s := balance.Compile(svc, list, test.port, "n1", "z1", test.options)
			if diff := cmp.Diff(test.want, show(s)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if s.Draining != test.draining || len(s.Refused) != test.refused {
				t.Errorf("draining %v, refused %q", s.Draining, s.Refused)
			}
		})
	}
}

func show(s *balance.Set) string {
	var words []string
	for _, e := range s.Endpoints {
		words = append(words, e.Addr.String())
	}
	if s.Why != "" {
		words = append(words, s.Why)
	}
	return strings.Join(words, " ")
}

func TestNoService(t *testing.T) {
	if s := balance.Compile(nil, nil, balance.PortRef{Number: 80}, "", "", balance.Options{}); s.Why == "" || len(s.Endpoints) > 0 {
		t.Errorf("got %+v, want a reason", s)
	}
}

// TestDualStack: a pod with two addresses takes one turn, by the Service's first
// family; a pod of the other family only takes its own.
func TestDualStack(t *testing.T) {
	pod := func(addr, name string) string {
		return "- {addresses: ['" + addr + "'], targetRef: {kind: Pod, name: " + name + "}}\n"
	}
	text := strings.Replace(service, "spec:", "spec:\n  ipFamilies: [IPv6, IPv4]\n  ipFamilyPolicy: RequireDualStack", 1) +
		slice("a4", pod("10.0.0.1", "p1")+pod("10.0.0.2", "p2")) +
		strings.Replace(slice("b6", pod("2001:db8::1", "p1")), "IPv4", "IPv6", 1)
	svc, list := cluster(t, text)
	s := balance.Compile(svc, list, balance.PortRef{Number: 80}, "", "", balance.Options{})
	if got, want := show(s), "10.0.0.2:8080 [2001:db8::1]:8080"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Endpoints[1].Pod.String() != "a/p1" {
		t.Errorf("pod is %s", s.Endpoints[1].Pod)
	}
}

func TestKeepAndEqual(t *testing.T) {
	svc, list := cluster(t, service+slice("s", "- {addresses: [10.0.0.1]}\n- {addresses: [10.0.0.2]}\n"))
	first := balance.Compile(svc, list, balance.PortRef{Number: 80}, "", "", balance.Options{})
	for range 3 {
		first.Endpoints[1].Health.Failed(epoch)
	}
	svc, list = cluster(t, service+slice("s", "- {addresses: [10.0.0.0]}\n- {addresses: [10.0.0.2]}\n"))
	fresh := balance.Compile(svc, list, balance.PortRef{Number: 80}, "", "", balance.Options{})
	second := fresh.Keep(first)
	if second.Endpoints[0].Health.Ejected() || !second.Endpoints[1].Health.Ejected() || fresh.Endpoints[1].Health.Ejected() {
		t.Error("health did not follow its endpoint")
	}
	if !second.Equal(fresh) || second.Equal(first) || first.Equal(nil) || !(*balance.Set)(nil).Equal(nil) {
		t.Error("Equal is about health or blind to addresses")
	}
	if second.Endpoints[1].Addr != netip.MustParseAddrPort("10.0.0.2:8080") {
		t.Error(second.Endpoints[1].Addr)
	}
}

// The first and the last port there are serve; what is no port does not.
func TestPortsOfSlices(t *testing.T) {
	for port, want := range map[string]string{"1": "10.0.0.1:1", "65535": "10.0.0.1:65535", "65536": "", "-1": ""} {
		svc, list := cluster(t, service+strings.Replace(slice("s", "- {addresses: [10.0.0.1]}\n"), "port: 8080", "port: "+port, 1))
		set := balance.Compile(svc, list, balance.PortRef{Number: 80}, "", "", balance.Options{})
		got := ""
		for i := range set.Endpoints {
			got += set.Endpoints[i].Addr.String()
		}
		if got != want {
			t.Errorf("port %s: endpoints %q, want %q", port, got, want)
		}
	}
	// A slice without a port leaves it to the Service, and a file may say anything.
	for port, want := range map[string]string{"80, targetPort: 8081": "10.0.0.1:8081", "80": "10.0.0.1:80", "0": "", "65536": ""} {
		said := strings.Replace(service, "port: 80, targetPort: 8080", "port: "+port, 1)
		svc, list := cluster(t, said+strings.Replace(slice("s", "- {addresses: [10.0.0.1]}\n"), "port: 8080, ", "", 1))
		set := balance.Compile(svc, list, balance.PortRef{Name: "http"}, "", "", balance.Options{})
		got := ""
		for i := range set.Endpoints {
			got += set.Endpoints[i].Addr.String()
		}
		if got != want {
			t.Errorf("the Service's port %s: endpoints %q, want %q", port, got, want)
		}
	}
}
