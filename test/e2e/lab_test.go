package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

func TestLabServices(t *testing.T) {
	inEachMode(t, func(t *testing.T, c *lab.Cluster) {
		for n := 1; n <= 3; n++ {
			c.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
		}
		c.Apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  loadBalancerClass: example.com/by-hand
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`)
		svc, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const address = "10.77.0.240"
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
		if svc, err = c.Kube().CoreV1().Services(c.Namespace()).UpdateStatus(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		laptop := c.Client("laptop")
		laptop.Exec("ip", "route", "add", address, "via", c.Node(2).IP())

		reachable := func(from lab.Host, url string) {
			t.Helper()
			seen := map[string]bool{}
			c.Eventually(10*time.Second, func() error {
				resp, err := from.Try(url, lab.Timeout(time.Second))
				if err != nil {
					return err
				}
				reply, err := resp.Reply()
				if err != nil {
					return err
				}
				if seen[reply.Pod] = true; len(seen) < 3 {
					return fmt.Errorf("only %v have answered", seen)
				}
				return nil
			})
		}
		reachable(c.Node(1).Host, "http://"+svc.Spec.ClusterIP)
		reachable(laptop.Host, fmt.Sprintf("http://%s:%d", c.Node(3).IP(), svc.Spec.Ports[0].NodePort))
		reachable(laptop.Host, "http://"+address)
		// Hairpin: a pod through the external address of its own Service.
		reachable(c.Pod(1, "web-hairpin", lab.Labels{"app": "other"}).Host, "http://"+address)
	})
}
