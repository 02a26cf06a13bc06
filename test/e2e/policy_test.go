package e2e

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

// loadBalancer is a LoadBalancer Service called web in front of pods app=web.
func loadBalancer(policy string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  externalTrafficPolicy: %s
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`, policy)
}

func remoteIP(t *testing.T, remote string) string {
	t.Helper()
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// Cluster policy: whichever node holds the address, a client reaches pods on
// every node, and a pod sees an address of a node as the source.
func TestClusterPolicy(t *testing.T) {
	beside(t)
	withQuaysideInEachMode(t, func(t *testing.T, e edge) {
		for n := 1; n <= 3; n++ {
			e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
		}
		e.Apply(loadBalancer("Cluster"))
		address, laptop := e.serviceAddress("web"), e.Client("laptop")
		nodes := e.Nodes()
		defer func() {
			for _, n := range nodes {
				e.labelNode(n.Name(), excludeLabel, "")
			}
		}()
		for i, holder := range nodes {
			// Make it the only eligible node: first welcome it, then bar the others.
			e.labelNode(holder.Name(), excludeLabel, "")
			for j, other := range nodes {
				if j != i {
					e.labelNode(other.Name(), excludeLabel, "yes")
				}
			}
			e.Eventually(settle, func() error {
				if macs := laptop.ARP(address); !slices.Equal(macs, []string{holder.MAC()}) {
					return fmt.Errorf("%s is answered by %v, want %s alone (%s)", address, macs, holder.MAC(), holder.Name())
				}
				return nil
			})
			laptop.Exec("ip", "neigh", "flush", "dev", "eth0")
			e.servesTo(laptop.Host, address)
			seen := map[string]bool{}
			e.Eventually(settle, func() error {
				reply := laptop.Reply("http://" + address)
				seen[reply.Node] = true
				source := remoteIP(t, reply.Remote)
				if source == laptop.IP() || !e.isNodeAddress(source) {
					t.Fatalf("through %s a pod on %s saw %s, want a node's address", holder.Name(), reply.Node, source)
				}
				if len(seen) < 3 {
					return fmt.Errorf("through %s only pods on %v have answered", holder.Name(), seen)
				}
				return nil
			})
		}
	})
}

// isNodeAddress says whether ip is one of a node's own, on the LAN or towards its pods.
func (e edge) isNodeAddress(ip string) bool {
	return slices.ContainsFunc(e.Nodes(), func(n *lab.Node) bool {
		return strings.Contains(n.Exec("ip", "-o", "addr"), " "+ip+"/")
	})
}

// Local policy: only a node with a ready pod ever answers, the pod sees the
// client's own address, and when a node's last pod stops being ready the
// address moves without a client noticing more than a retry.
func TestLocalPolicy(t *testing.T) {
	withQuaysideInEachMode(t, func(t *testing.T, e edge) {
		pods := map[string]*lab.Pod{}
		for n := 1; n <= 2; n++ { // node 3 has none
			p := e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
			pods[p.Node()] = p
		}
		e.Apply(loadBalancer("Local"))
		address, laptop := e.serviceAddress("web"), e.Client("laptop")
		holder := e.owner(laptop, address)
		if pods[holder.Name()] == nil {
			t.Fatalf("%s answers for %s and has no pod", holder.Name(), address)
		}
		e.servesTo(laptop.Host, address)
		for _, n := range e.Nodes()[:2] { // whoever takes over: each kube-proxy writes its rules in its own time
			e.kubeProxyServes(laptop.Host, n)
		}
		reply := laptop.Reply("http://" + address)
		if got := remoteIP(t, reply.Remote); got != laptop.IP() {
			t.Errorf("the pod saw %s, want the client's own address %s", got, laptop.IP())
		}
		if reply.Node != holder.Name() {
			t.Errorf("%s holds the address and a pod on %s answered", holder.Name(), reply.Node)
		}

		stop := make(chan struct{})
		unserved := make(chan error, 1)
		go func() { unserved <- clientWithOneRetry(laptop, "http://"+address, stop) }()
		pods[holder.Name()].SetReady(false)
		e.Eventually(settle, func() error {
			macs := laptop.ARP(address)
			for _, mac := range macs {
				if e.nodeByMAC(mac).Name() == e.Node(3).Name() {
					t.Fatalf("%s answers for %s and has no pod", e.Node(3).Name(), address)
				}
			}
			if len(macs) != 1 || macs[0] == holder.MAC() {
				return fmt.Errorf("%s is still answered by %v", address, macs)
			}
			return nil
		})
		time.Sleep(2 * time.Second) // the client goes on through and after the move
		close(stop)
		if err := <-unserved; err != nil {
			t.Errorf("while the address moved: %v", err)
		}
	})
}

// kubeProxyServes waits until a node's kube-proxy says, at the
// healthCheckNodePort of web, that its rules lead to a local pod.
func (e edge) kubeProxyServes(from lab.Host, n *lab.Node) {
	e.t.Helper()
	svc, err := e.service("web")
	if err != nil {
		e.t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s:%d/healthz", n.IP(), svc.Spec.HealthCheckNodePort)
	e.Eventually(settle, func() error {
		resp, err := from.Try(url, lab.Timeout(time.Second))
		if err == nil && resp.Status != http.StatusOK {
			err = fmt.Errorf("%s answers %d: %s", url, resp.Status, resp.Body)
		}
		return err
	})
}

// clientWithOneRetry asks again and again, each time with one retry, and
// returns the first error that a retry did not mend.
func clientWithOneRetry(from *lab.Client, url string, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, first := from.Try(url, lab.Timeout(time.Second)); first != nil {
			if _, err := from.Try(url, lab.Timeout(time.Second)); err != nil {
				return fmt.Errorf("%w, and again: %w", first, err)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Hairpin: a pod reaches its own Service through the external address, even
// where it is the only one behind it.
func TestHairpin(t *testing.T) {
	beside(t)
	withQuaysideInEachMode(t, func(t *testing.T, e edge) {
		for _, policy := range []string{"Cluster", "Local"} {
			t.Run(policy, func(t *testing.T) {
				e := edge{e.With(t), t}
				pod := e.Pod(1, "web", lab.Labels{"app": "web"})
				e.Apply(loadBalancer(policy))
				address := e.serviceAddress("web")
				e.Eventually(settle, func() error {
					resp, err := pod.Try("http://"+address, lab.Timeout(2*time.Second))
					if err != nil {
						return err
					}
					reply, err := resp.Reply()
					if err == nil && reply.Pod != "web" {
						err = fmt.Errorf("%s answered", reply.Pod)
					}
					return err
				})
			})
		}
	})
}
