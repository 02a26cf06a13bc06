package e2e

import (
	"fmt"
	"net"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// dualStack makes Service web of policy Local with an address of each family
// and a pod on every node: whoever holds an address answers by its own pod, and
// nothing behind the address is lost with another node.
func (e edge) dualStack() (addresses []string) {
	e.t.Helper()
	for n := range e.Nodes() {
		e.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`)
	e.Eventually(settle, func() error {
		svc, err := e.service("web")
		if err != nil {
			return err
		}
		if got := svc.Status.LoadBalancer.Ingress; len(got) != 2 {
			return fmt.Errorf("Service web has addresses %v, want one of each family: %v", got, svc.Status.Conditions)
		}
		addresses = []string{svc.Status.LoadBalancer.Ingress[0].IP, svc.Status.LoadBalancer.Ingress[1].IP}
		return nil
	})
	return addresses
}

// servedAt asks until a pod answers at address, and returns its node.
func (e edge) servedAt(from *lab.Client, address string) (node string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		resp, err := from.Try("http://"+net.JoinHostPort(address, "80"), lab.Timeout(time.Second))
		if err != nil {
			return err
		}
		reply, err := resp.Reply()
		node = reply.Node
		return err
	})
	return node
}

// Seven nodes serve a Service at an address of each family.
func TestDualStackOnSevenNodes(t *testing.T) {
	e := big(t)
	addresses, laptop := e.dualStack(), e.Client("laptop")
	for _, address := range addresses {
		t.Logf("%s is served by %s", address, e.servedAt(laptop, address))
	}
	if owner := e.owner(laptop, addresses[0]).Name(); e.servedAt(laptop, addresses[0]) != owner {
		t.Errorf("%s answers for %s and %s serves it", owner, addresses[0], e.servedAt(laptop, addresses[0]))
	}
}
