package cluster

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/test/objects"
)

// A tenth of a large cluster, and of what the objects of it may take. The garbage
// collector lets a process take about twice as much.
const (
	largeServices    = 1_000
	slicesPerService = 5
	endpointsEach    = 10 // in each slice
	mostBytes        = 25 << 20
)

func largeService(i int) *corev1.Service {
	policy := corev1.IPFamilyPolicySingleStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i/20), Name: fmt.Sprintf("service-%d", i), UID: "6b1f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c", ResourceVersion: "123456789",
			Labels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", i), "app.kubernetes.io/managed-by": "Helm", "team": "edge"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &policy,
			Selector: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", i)},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}, {Name: "https", Port: 443, NodePort: 30443, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func largeSlice(svc *corev1.Service, number int) *discoveryv1.EndpointSlice {
	ready, port, name, protocol := true, int32(8080), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, Name: fmt.Sprintf("%s-%d", svc.Name, number), UID: "0c9f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c", ResourceVersion: "123456789",
			Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "team": "edge"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for e := range endpointsEach {
		node := fmt.Sprintf("node-%d", (e*997+number)%5000)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.%d.%d", e, number)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}, NodeName: &node,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: svc.Namespace, Name: fmt.Sprintf("%s-%d", svc.Name, e), UID: "1c9f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c"},
		})
	}
	return s
}

// Who knows 10,000 Services and half a million endpoints, such as the controller and
// every proxy, stays within half a gigabyte.
func TestAllocOfALargeCluster(t *testing.T) {
	before := held()
	c := &snapshot.Cluster{}
	for i := range largeServices {
		svc := largeService(i)
		batch := []snapshot.Object{strip(objects.Received(t, svc))}
		for n := range slicesPerService {
			batch = append(batch, strip(objects.Received(t, largeSlice(svc, n))))
		}
		c = c.With(batch...)
	}
	took := held() - before
	t.Logf("%d Services and %d EndpointSlices take %d MB", c.Services.Len(), c.EndpointSlices.Len(), took>>20)
	if took > mostBytes {
		t.Errorf("they take %d MB, more than %d", took>>20, mostBytes>>20)
	}
	if c.EndpointSlices.Len() != largeServices*slicesPerService {
		t.Errorf("%d EndpointSlices", c.EndpointSlices.Len())
	}
}

// held is how many bytes are in use.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
