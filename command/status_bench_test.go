package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/printable"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/admin"
	"quayside.io/command/explain"
	"quayside.io/proxy/route"
)

// What a large cluster has, in the benchmark of status.
const (
	manyServices, manyIngresses = 5_000, 10_000
	manyNodes, manyPeers        = 100, 4
)

// largeCluster has a pool, Services with an address and two pods each, Ingresses with
// two paths each, and nodes that announce all of it.
func largeCluster(bgp bool) *snapshot.Cluster {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	objects := []snapshot.Object{
		&v1alpha1.IPAddressPool{ObjectMeta: meta("", "lan"), Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/16"}}},
		&networkingv1.IngressClass{ObjectMeta: meta("", "quayside"), Spec: networkingv1.IngressClassSpec{Controller: ingressclass.Controller}},
	}
	statuses := make([]*v1alpha1.SpeakerStatus, manyNodes)
	for i := range statuses {
		name := fmt.Sprintf("n%03d", i)
		statuses[i] = &v1alpha1.SpeakerStatus{ObjectMeta: meta("", name), Status: v1alpha1.SpeakerStatusStatus{
			Interfaces: []v1alpha1.SpeakerInterface{{Name: "eth0", Up: true, Prefixes: []string{"10.0.0.0/16"}}}}}
		objects = append(objects, statuses[i], &corev1.Node{ObjectMeta: meta("", name), Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.9.0.%d", i+1)}}}})
	}
	if bgp {
		objects = append(objects, &v1alpha1.BGPAdvertisement{ObjectMeta: meta("", "all")})
		for i := range manyPeers {
			peer := fmt.Sprintf("tor-%d", i)
			objects = append(objects, &v1alpha1.BGPPeer{ObjectMeta: meta("", peer), Spec: v1alpha1.BGPPeerSpec{MyASN: 64500, ASN: 64501, Address: fmt.Sprintf("10.9.1.%d", i+1)}})
			for _, s := range statuses {
				s.Status.BGPSessions = append(s.Status.BGPSessions, v1alpha1.BGPSession{Peer: peer, State: "Established", Advertised: manyServices})
			}
		}
	}
	address := netip.MustParseAddr("10.0.0.1")
	for i := range manyServices {
		namespace, name := fmt.Sprintf("team-%02d", i%50), fmt.Sprintf("web-%05d", i)
		s := &corev1.Service{ObjectMeta: meta(namespace, name), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}}
		s.Annotations = map[string]string{loadbalancer.AnnotationGiven: "lan"}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address.String()}}
		if !bgp {
			by := statuses[i%manyNodes]
			by.Status.Announcing = append(by.Status.Announcing, v1alpha1.Announcing{Service: namespace + "/" + name, Address: address.String(), Protocol: "l2", Interfaces: []string{"eth0"}})
		}
		address = address.Next()
		port, tcp, empty, ready := int32(8080), corev1.ProtocolTCP, "", true
		pods := &discoveryv1.EndpointSlice{ObjectMeta: meta(namespace, name+"-1"), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &empty, Port: &port, Protocol: &tcp}}}
		pods.Labels = map[string]string{discoveryv1.LabelServiceName: name}
		for j := range 2 {
			node := statuses[(i+j)%manyNodes].Name
			pods.Endpoints = append(pods.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.1.%d.%d", i/200, 1+(i%200)+j)}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
		}
		objects = append(objects, s, pods)
	}
	class, prefix := "quayside", networkingv1.PathTypePrefix
	for i := range manyIngresses {
		at := i % manyServices
		backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: fmt.Sprintf("web-%05d", at), Port: networkingv1.ServiceBackendPort{Number: 80}}}
		objects = append(objects, &networkingv1.Ingress{ObjectMeta: meta(fmt.Sprintf("team-%02d", at%50), fmt.Sprintf("site-%05d", i)), Spec: networkingv1.IngressSpec{
			IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: fmt.Sprintf("site-%05d.example.com", i), IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: backend}, {Path: "/api", PathType: &prefix, Backend: backend}}}}}}},
			Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.1"}}}},
		})
	}
	return snapshot.Of(objects...)
}

// BenchmarkStatus is what one look at a large cluster costs: a leader that has its
// routes and Problems, and answers as JSON; who compiles everything for himself; and
// what the one who asked makes of the answer. The bar is 2 s for each.
func BenchmarkStatus(b *testing.B) {
	for name, bgp := range map[string]bool{"l2": false, "bgp": true} {
		c := largeCluster(bgp)
		f := clusterFlags{serveClassless: true, namespace: "quayside-system"}
		options := route.Options{Classes: ingressclass.Rules{Name: "quayside"}}
		routes := route.Compile(c, nil, options)
		leading := inputsOf(c, f, routes)
		leading.Problems = problemsOf(leading)
		b.Run(name+"/leader", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				server := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
				server.Status(func(context.Context) func() any {
					return func() any {
						inputs := inputsOf(c, f, route.Compile(c, routes, options))
						inputs.Problems = leading.Problems
						return explain.Status(inputs)
					}
				})
				w := httptest.NewRecorder()
				server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status", nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
				b.ReportMetric(float64(w.Body.Len())/1e6, "MB/answer")
			}
		})
		b.Run(name+"/local", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := explain.Status(compileInputs(c, f, options, nil)).WriteText(&bytes.Buffer{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		report := explain.Status(leading)
		if len(report.Services) != manyServices || len(report.Ingresses) != manyIngresses || len(report.Services[7].Addresses[0].Announced) == 0 {
			b.Fatalf("%d Services, %d Ingresses, %+v", len(report.Services), len(report.Ingresses), report.Services[7])
		}
		answer, err := json.Marshal(report)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/asker", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var got explain.Report
				if err := json.Unmarshal(answer, &got); err != nil {
					b.Fatal(err)
				}
				if err := got.WriteText(&bytes.Buffer{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := printable.JSON(report); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
