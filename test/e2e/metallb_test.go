package e2e

import (
	"fmt"
	"net"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/test/busy"
	"quayside.io/test/lab"
)

// itsPool is a pool of MetalLB, and an advertisement of the Services that it still
// announces.
const itsPool = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: lan, namespace: metallb-system}
spec: {addresses: [10.77.0.230-10.77.0.239]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: lan, namespace: metallb-system}
spec:
  ipAddressPools: [lan]
  serviceSelectors: [{matchLabels: {announced-by: metallb}}]
`

// theirs is a Service that MetalLB serves.
type theirs struct {
	edge
	name, address string
	node          int // that answers for the address, the first being 1
}

// byMetalLB makes a Service, and returns when MetalLB has given it an address and answers
// for that.
func (e edge) byMetalLB(laptop *lab.Client, name, app string) theirs {
	e.t.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s, labels: {announced-by: metallb}}
spec:
  type: LoadBalancer
  selector: {app: %s}
  ports: [{name: http, port: 80, targetPort: http}]
`, name, app))
	s := theirs{edge: e, name: name}
	e.Eventually(settle, func() error {
		now, err := e.service(name)
		if err == nil && len(now.Status.LoadBalancer.Ingress) == 0 {
			err = fmt.Errorf("MetalLB has not given Service %s an address", name)
		}
		if err == nil {
			s.address = now.Status.LoadBalancer.Ingress[0].IP
			s.node, err = s.told()
		}
		return err
	})
	if holder := e.owner(laptop, s.address); holder.Name() != e.Node(s.node).Name() {
		e.t.Fatalf("%s is answered by %s, and MetalLB says %s", s.address, holder.Name(), e.Node(s.node).Name())
	}
	return s
}

// told is the node that MetalLB names in its ServiceL2Status.
func (s theirs) told() (node int, err error) {
	kind := schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "servicel2statuses"}
	list, err := s.Dynamic().Resource(kind).Namespace(lab.MetalLBNamespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, one := range list.Items {
		service, _, _ := unstructured.NestedString(one.Object, "status", "serviceName")
		namespace, _, _ := unstructured.NestedString(one.Object, "status", "serviceNamespace")
		at, _, _ := unstructured.NestedString(one.Object, "status", "node")
		i := slices.IndexFunc(s.Nodes(), func(n *lab.Node) bool { return n.Name() == at })
		if service == s.name && namespace == s.Namespace() && i >= 0 {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("no ServiceL2Status names a node for Service %s", s.name)
}

// announced has MetalLB answer for the Service again, and returns when it does.
func (s theirs) announced(laptop *lab.Client) {
	s.t.Helper()
	s.patch(`{"metadata":{"labels":{"announced-by":"metallb"}}}`)
	s.Eventually(settle, func() error {
		if who := laptop.WhoHas(s.address); !slices.Contains(who, s.Node(s.node).MAC()) {
			return fmt.Errorf("%s is answered by %v, not yet by MetalLB on %s", s.address, who, s.Node(s.node).Name())
		}
		return nil
	})
}

// silence has MetalLB's speakers answer for the Service no more.
func (s theirs) silence() {
	s.t.Helper()
	s.patch(`{"metadata":{"labels":{"announced-by":null}}}`)
}

// leave takes the Service away from MetalLB, which then answers for it no more.
func (s theirs) leave() {
	s.t.Helper()
	s.patch(`{"spec":{"type":"ClusterIP"}}`)
}

// movesTo silences MetalLB, and lets another node notice.
func (s theirs) movesTo(laptop *lab.Client, node *lab.Node) {
	s.t.Helper()
	target := net.JoinHostPort(s.address, "80")
	knows := laptop.Probe(target, 10*time.Millisecond, handshake)
	asks := s.Client("visitor").ProbeAfresh(target, 10*time.Millisecond, 100*time.Millisecond)
	time.Sleep(500 * time.Millisecond) // twice as long as that node's pause between two questions
	standstill := busy.Standstill(s.t)
	if by := s.claimed()[s.address]; by != "" {
		s.t.Errorf("%s is claimed by %q while MetalLB answers for it", s.address, by)
	}
	s.silence()
	s.claimedBy(s.address, node)
	late := standstill()
	s.judge("on another node: one who knows the address", knows, 1)
	report := asks.Stop()
	s.t.Logf("on another node: one new to the LAN: %s", report)
	if report.Gap > notices+late {
		s.t.Errorf("%s had no answer for %v, want %v and %v of a busy machine", s.address, report.Gap, notices, late)
	}
	if holder := s.owner(laptop, s.address); holder.Name() != node.Name() {
		s.t.Errorf("%s is answered by %s, want %s", s.address, holder.Name(), node.Name())
	}
}

// untouched asserts that of the Service there is only what MetalLB has written.
func (s theirs) untouched() {
	s.t.Helper()
	now, err := s.service(s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	if given := now.Annotations[loadbalancer.AnnotationGiven]; given != "" || len(now.Status.Conditions) > 0 || len(now.Status.LoadBalancer.Ingress) != 1 || now.Status.LoadBalancer.Ingress[0].IP != s.address {
		s.t.Errorf("Service %s of MetalLB: %v, given by pool %q", s.name, now.Status, given)
	}
}

// adopted waits until the Service is ours, with the address that it has.
func (s theirs) adopted() {
	s.t.Helper()
	s.Eventually(settle, func() error {
		now, err := s.service(s.name)
		if err == nil && (now.Annotations[loadbalancer.AnnotationGiven] != "from-metallb-"+s.name || len(now.Status.LoadBalancer.Ingress) != 1 || now.Status.LoadBalancer.Ingress[0].IP != s.address) {
			err = fmt.Errorf("Service %s was at %s and is %v, %v", s.name, s.address, now.Annotations, now.Status)
		}
		return err
	})
}

func (s theirs) patch(body string) {
	s.t.Helper()
	if _, err := s.Kube().CoreV1().Services(s.Namespace()).Patch(s.t.Context(), s.name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}
