package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"quayside.io/test/lab"
)

// l2Ranges are the addresses of pool l2 on the LAN.
const l2Ranges = `10.77.0.241-10.77.0.254, "fd77::241-fd77::254"`

// l2World makes the pool l2, which the tests of layer 2 advertise as they like;
// the pool lan stays advertised beside it.
func (e edge) l2World(ranges string) {
	e.t.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: l2, labels: {kind: l2}}
spec:
  autoAssign: false
  addresses: [%s]
---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: lan}
spec: {ipAddressPools: [lan]}
`, ranges))
	e.t.Cleanup(func() { e.advertise(e.t) })
}

// advertise makes these the L2Advertisements of pool l2, each a spec in YAML's
// flow style, and no others. What was there is changed in place. It takes the
// test that runs, since a test and its subtests share them.
func (e edge) advertise(t *testing.T, specs ...string) {
	t.Helper()
	for i, spec := range specs {
		if err := e.TryApply(fmt.Sprintf("{apiVersion: quayside.io/v1alpha1, kind: L2Advertisement, metadata: {name: l2-%d}, spec: %s}", i, spec)); err != nil {
			t.Fatal(err)
		}
	}
	adverts := e.Dynamic().Resource(poolResource().GroupVersion().WithResource("l2advertisements"))
	list, err := adverts.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Items {
		var i int
		if _, err := fmt.Sscanf(a.GetName(), "l2-%d", &i); err != nil || i < len(specs) {
			continue
		}
		if err := adverts.Delete(context.Background(), a.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// dual makes a Service with an address of each family from pool l2, in front
// of pods app=web, and returns the addresses.
func (e edge) dual(name, policy, labels string) (addresses []string) {
	e.t.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s, labels: {%s}, annotations: {quayside.io/address-pool: l2}}
spec:
  type: LoadBalancer
  externalTrafficPolicy: %s
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`, name, labels, policy))
	return e.bothAddresses(name)
}

// bothAddresses waits until a Service has an address of each family.
func (e edge) bothAddresses(name string) (addresses []string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		svc, err := e.service(name)
		if err != nil {
			return err
		}
		addresses = nil
		for _, in := range svc.Status.LoadBalancer.Ingress {
			addresses = append(addresses, in.IP)
		}
		if len(addresses) != 2 {
			return fmt.Errorf("Service %s has addresses %v, want one of each family: %v", name, addresses, svc.Status.Conditions)
		}
		return nil
	})
	return addresses
}

// asker is a client on one of the LANs.
type asker struct {
	*lab.Client
	mac   func(*lab.Node) string // of a node's interface there
	nodes []*lab.Node
}

func (e edge) asker(name string) asker {
	return asker{e.Client(name), (*lab.Node).MAC, e.Nodes()}
}

// name is the node with that MAC; a stranger is named by it.
func (a asker) name(mac string) string {
	for _, n := range a.nodes {
		if a.mac(n) == mac {
			return n.Name()
		}
	}
	return mac
}

// who says who answers one question, in the order of their answers.
func (a asker) who(address string) (names []string) {
	for mac, n := range a.Answers(address, 1, 60*time.Millisecond) {
		for range n {
			names = append(names, a.name(mac))
		}
	}
	slices.Sort(names)
	return names
}

// often asks n times and counts the answers by node.
func (a asker) often(address string, n int) map[string]int {
	count := map[string]int{}
	for mac, answers := range a.Answers(address, n, 2*time.Millisecond) {
		count[a.name(mac)] += answers
	}
	return count
}

// always is often where each question must be answered, if late.
func (a asker) always(address string, n int) map[string]int {
	count := map[string]int{}
	for mac, answers := range a.AllAnswers(address, n, 2*time.Millisecond) {
		count[a.name(mac)] += answers
	}
	return count
}

// holder waits until one of the nodes, and nobody else, answers for address:
// to each of four questions, once. No nodes: until nobody answers.
func (e edge) holder(a asker, address string, among ...string) (holder string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		for i := range 4 {
			switch got := a.who(address); {
			case len(among) == 0 && len(got) == 0:
				holder = ""
			case len(got) == 1 && slices.Contains(among, got[0]) && (i == 0 || got[0] == holder):
				holder = got[0]
			default:
				return fmt.Errorf("%s is answered by %v, want one of %v", address, got, among)
			}
		}
		return nil
	})
	return holder
}

// stays asks for a while: nobody but holder answers, and it always does.
func (e edge) stays(a asker, address, holder string, lasting time.Duration) {
	e.t.Helper()
	e.stay(a, map[string]string{address: holder}, lasting)
}

// stay is stays for the holder of each address, about all of them in the same while.
func (e edge) stay(a asker, holders map[string]string, lasting time.Duration) {
	e.t.Helper()
	n := int(lasting / (2 * time.Millisecond))
	var asking sync.WaitGroup
	for address, holder := range holders {
		asking.Go(func() {
			if got := a.always(address, n); !maps.Equal(got, map[string]int{holder: n}) {
				e.t.Errorf("%s: of %d questions %v were answered, want all by %s", address, n, got, holder)
			}
		})
	}
	asking.Wait()
}

// everyNode are the names of all nodes but these.
func (e edge) everyNode(but ...string) (names []string) {
	for _, n := range e.Nodes() {
		if !slices.Contains(but, n.Name()) {
			names = append(names, n.Name())
		}
	}
	return names
}

// nodeNamed is the node of that name.
func (e edge) nodeNamed(name string) *lab.Node {
	e.t.Helper()
	for _, n := range e.Nodes() {
		if n.Name() == name {
			return n
		}
	}
	e.t.Fatalf("no node %s", name)
	return nil
}

// mark labels a node until the test ends.
func (e edge) mark(node, label, value string) {
	e.t.Helper()
	e.labelNode(node, label, value)
	e.t.Cleanup(func() { e.labelNode(node, label, "") })
}

// announced waits until the SpeakerStatus of holder, and no other, says that it
// announces the address on these interfaces. No holder: until none does.
func (e edge) announced(address, holder string, interfaces ...string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		for _, n := range e.Nodes() {
			s, err := e.speakerStatus(n.Name())
			if err != nil {
				return err
			}
			want, got := "", ""
			if n.Name() == holder {
				want = strings.Join(interfaces, " ")
			}
			for _, a := range s.Status.Announcing {
				if a.Address == address {
					got = strings.Join(a.Interfaces, " ")
				}
			}
			if got != want {
				return fmt.Errorf("the SpeakerStatus of %s announces %s on %q, want %q", n.Name(), address, got, want)
			}
		}
		return nil
	})
}

// setNetworkUnavailable writes that condition of a node, as a network plugin
// or a cloud's route controller does.
func (e edge) setNetworkUnavailable(node string, unavailable bool) {
	e.t.Helper()
	nodes := e.Kube().CoreV1().Nodes()
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // others write to Nodes, too
		n, err := nodes.Get(context.Background(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeNetworkUnavailable {
				c.Status = corev1.ConditionFalse
				if unavailable {
					c.Status = corev1.ConditionTrue
				}
			}
		}
		_, err = nodes.UpdateStatus(context.Background(), n, metav1.UpdateOptions{})
		return err
	}); err != nil {
		e.t.Error(err)
	}
}
