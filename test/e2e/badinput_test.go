package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// told waits until an Event about the object has a note that contains word.
func (e edge) told(kind, name, word string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		list, err := e.Kube().EventsV1().Events("").List(e.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var heard []string
		for _, event := range list.Items {
			if event.Regarding.Kind == kind && event.Regarding.Name == name {
				if strings.Contains(event.Reason+": "+event.Note, word) {
					return nil
				}
				heard = append(heard, event.Reason+": "+event.Note)
			}
		}
		return fmt.Errorf("no Event about %s %s says %q; it was told %q", kind, name, word, heard)
	})
}

// inState waits until the controller's /state lists a problem of the object.
func (e edge) inState(object, word string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		var state struct {
			Problems []struct{ Object, Reason, Message string }
		}
		if err := json.Unmarshal([]byte(e.Quayside().Leader().Admin("/state")), &state); err != nil {
			return err
		}
		for _, p := range state.Problems {
			if p.Object == object && strings.Contains(p.Reason+": "+p.Message, word) {
				return nil
			}
		}
		return fmt.Errorf("/state has no problem of %s that says %q: %+v", object, word, state.Problems)
	})
}

// Each kind of bad input is told on the object and in /state, nothing unsafe
// is announced, and a good Service and Ingress beside it are served.
func TestBadInputIsToldAndHarmsNobody(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.serve("video")
	e.Pod(1, "web", lab.Labels{"app": "web"})
	e.Apply(clusterIPServices("video"))
	ns, laptop := e.Namespace(), e.Client("laptop")

	// A pool with an unparsable range is refused at the door, with the reason;
	// one that only the order of its addresses spoils is told on the object.
	if err := e.TryApply(pool("hopeless", "10.77.0.0/33")); err == nil || !strings.Contains(err.Error(), "addresses") {
		t.Errorf("a pool of 10.77.0.0/33 was answered with %v", err)
	}
	e.Apply(pool("backwards", "10.77.0.250-10.77.0.249"))
	e.told("IPAddressPool", "backwards", "10.77.0.250-10.77.0.249")
	e.inState("IPAddressPool backwards", "10.77.0.250-10.77.0.249")

	// An Ingress that names a missing Service.
	e.Apply(ingressFor("missing", "ingressClassName: quayside", "", "missing.example.com", "nowhere"))
	e.told("Ingress", "missing", "nowhere")
	e.inState("Ingress "+ns+"/missing", "nowhere")

	// A missing TLS Secret, and a broken one.
	withTLS := func(name, host, secret string) string {
		return ingressFor(name, "tls: [{hosts: ["+host+"], secretName: "+secret+"}]\n  ingressClassName: quayside", "", host, "video")
	}
	e.Apply(withTLS("no-secret", "a.example.com", "absent"))
	e.told("Ingress", "no-secret", "absent")
	e.inState("Ingress "+ns+"/no-secret", "absent")
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: broken}
type: kubernetes.io/tls
data: {tls.crt: bm90IGEgY2VydGlmaWNhdGU=, tls.key: bm90IGEga2V5}
`)
	e.Apply(withTLS("broken-secret", "b.example.com", "broken"))
	e.told("Ingress", "broken-secret", "broken")
	e.inState("Ingress "+ns+"/broken-secret", "broken")

	// Two Ingresses that claim one host and path: the older one keeps it.
	e.Apply(ingressFor("first", "ingressClassName: quayside", "", "twice.example.com", "video"))
	e.ingressAddress("first")
	e.Apply(ingressFor("second", "ingressClassName: quayside", "", "twice.example.com", "nowhere"))
	e.told("Ingress", "second", "first")
	e.inState("Ingress "+ns+"/second", "first")

	// A Service that asks for an address outside every pool.
	e.Apply(strings.ReplaceAll(loadBalancer("Cluster"), "metadata: {name: web}",
		"metadata: {name: outside, annotations: {quayside.io/loadBalancerIPs: 192.0.2.1}}"))
	e.told("Service", "outside", "192.0.2.1")
	e.inState("Service "+ns+"/outside", "192.0.2.1")

	e.statusNamingANode(laptop)

	// Everything else goes on.
	e.Apply(loadBalancer("Cluster"))
	address := e.serviceAddress("web")
	e.Eventually(settle, func() error { _, err := laptop.Try("http://" + address); return err })
	e.until(laptop, e.ingressAddress("first"), "http://twice.example.com/", "video")
	resp := laptop.Get("http://missing.example.com/", lab.Via(e.ingressAddress("first")+":80"))
	if resp.Status != http.StatusServiceUnavailable || strings.Contains(string(resp.Body), "nowhere") {
		t.Errorf("an Ingress without its Service answers %d %q, want 503 and no names", resp.Status, resp.Body)
	}
}

// statusNamingANode forges the status of a Service of ours, so that it names a
// node's own address: nobody announces it, and it is told. (A Service of
// another load balancer may name nodes: some work that way.)
func (e edge) statusNamingANode(laptop *lab.Client) {
	e.t.Helper()
	victim := e.Node(2)
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: forged}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`)
	e.serviceAddress("forged")
	s, err := e.service("forged")
	if err != nil {
		e.t.Fatal(err)
	}
	delete(s.Annotations, "quayside.io/ip-allocated-from-pool") // or we would mend it: what we gave, we take away
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: victim.IP()}}
	if _, err := e.Kube().CoreV1().Services(e.Namespace()).UpdateStatus(e.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		e.t.Fatal(err)
	}
	e.inState("Service "+e.Namespace()+"/forged", victim.IP())
	e.told("Service", "forged", victim.IP())
	for range 10 {
		if macs := laptop.ARP(victim.IP()); len(macs) != 1 || macs[0] != victim.MAC() {
			e.t.Fatalf("the node address %s is answered by %v, want %s alone", victim.IP(), macs, victim.MAC())
		}
	}
}

// pool is an IPAddressPool of one range.
func pool(name, addresses string) string {
	return fmt.Sprintf(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: %s}
spec: {addresses: [%q]}
`, name, addresses)
}
