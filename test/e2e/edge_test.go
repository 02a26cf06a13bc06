package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/certificate"
	"quayside.io/test/lab"
)

// settle is how long the slowest honest thing may take on a busy machine. It
// bounds a wait; no test judges speed by it.
const settle = 30 * time.Second

// edge is a view of a lab in which Quayside is installed as the chart says.
type edge struct {
	*lab.Cluster
	t *testing.T
}

// withQuaysideInEachMode runs f with both modes of kube-proxy.
func withQuaysideInEachMode(t *testing.T, f func(t *testing.T, e edge)) {
	onEach(t, map[string]func(*testing.T) edge{
		"nftables": func(t *testing.T) edge { return quayside(t, "nftables") },
		"iptables": func(t *testing.T) edge { return quayside(t, "iptables") },
	}, f)
}

// serve starts one pod per name, each behind a label app of that name.
func (e edge) serve(names ...string) {
	for i, name := range names {
		e.Pod(1+i%3, name, lab.Labels{"app": name})
	}
}

// clusterIPServices makes a Service on port 3000 for each name.
func clusterIPServices(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, `
---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  selector: {app: %s}
  ports: [{name: http, port: 3000, targetPort: http}]
`, name, name)
	}
	return b.String()
}

// ingressAddress waits for the address in an Ingress's status.
func (e edge) ingressAddress(name string) string {
	e.t.Helper()
	var address string
	e.Eventually(settle, func() error {
		i, err := e.Kube().NetworkingV1().Ingresses(e.Namespace()).Get(e.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(i.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Ingress %s has no address yet", name)
		}
		address = i.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	return address
}

// serviceAddress waits for the address of a LoadBalancer Service.
func (e edge) serviceAddress(name string) string {
	e.t.Helper()
	var address string
	e.Eventually(settle, func() error {
		s, err := e.service(name)
		if err != nil {
			return err
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Service %s has no address yet: %v", name, s.Status.Conditions)
		}
		address = s.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	return address
}

func (e edge) service(name string) (*corev1.Service, error) {
	return e.Kube().CoreV1().Services(e.Namespace()).Get(e.t.Context(), name, metav1.GetOptions{})
}

// nodeByMAC returns the number of the node with that MAC.
func (e edge) nodeByMAC(mac string) *lab.Node {
	e.t.Helper()
	for _, n := range e.Nodes() {
		if n.MAC() == mac {
			return n
		}
	}
	e.t.Fatalf("%s is no node's MAC", mac)
	return nil
}

// owner waits until exactly one node answers for address, and returns it.
func (e edge) owner(from *lab.Client, address string) *lab.Node {
	e.t.Helper()
	return e.nodeByMAC(from.Owner(address, settle))
}

// labelNode sets a label of a node, or removes it where value is empty.
func (e edge) labelNode(name, label, value string) {
	e.t.Helper()
	quoted := "null"
	if value != "" {
		quoted = fmt.Sprintf("%q", value)
	}
	body := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, quoted)
	_, err := e.Kube().CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		e.t.Error(err)
	}
}

// tlsSecret makes a TLS Secret for host in the view's namespace, and returns
// the roots that verify it.
func (e edge) tlsSecret(name, host string) *x509.CertPool {
	e.t.Helper()
	secret := certificate.Secret(e.t, e.Namespace()+"/"+name, time.Now().Add(time.Hour), host)
	if _, err := e.Kube().CoreV1().Secrets(e.Namespace()).Create(e.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
	return certificate.Roots(secret)
}

// verify is a client's TLS configuration that trusts roots for host.
func verify(roots *x509.CertPool, host string) *tls.Config {
	return &tls.Config{RootCAs: roots, ServerName: host}
}
