package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/test/busy"
	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// besideOthers are the values of docs/from-metallb.md for a cluster whose load balancer
// and Ingress controller are still there.
func besideOthers() lab.Values {
	return lab.Values{
		"loadBalancer": lab.Values{"default": false},
		"controller":   lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":        lab.Values{"gracePeriodSeconds": 2},
		"speaker":      lab.Values{"members": lab.Values{"port": 7956}}, // MetalLB's speakers have 7946
	}
}

// notTheirs is a range that MetalLB has not got, for what is new.
const notTheirs = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: ours}
spec:
  addresses: [10.77.0.241-10.77.0.249]
---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: ours}
spec: {ipAddressPools: [ours]}
`

// Beside MetalLB and ingress-nginx, one host and one address moves at a time, and each
// address stays. MetalLB is here what it is on the wire: a status that somebody else
// writes, and a node that answers for the address. ingress-nginx is a pod behind such a
// Service.
func TestMovingInPieceByPiece(t *testing.T) {
	inPairs(t)
	e := edge{bare(t), t}
	e.install(besideOthers())
	e.Apply(notTheirs)
	e.lingeringPods()
	e.serve("shop", "nginx")
	e.Apply(clusterIPServices("shop"))
	laptop := e.Client("laptop")

	const nginxAddress = "10.77.0.231"
	web, data := e.byMetalLB("web", "web", "10.77.0.230"), e.byMetalLB("data", "web", "10.77.0.232")
	nginx := e.byMetalLB("nginx", "nginx", nginxAddress)
	e.Apply(`
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
` + "---" + ingressFor("first", "ingressClassName: nginx", "", "first.example.com", "shop") + "---" + ingressFor("second", "ingressClassName: nginx", "", "second.example.com", "shop"))
	e.reached(laptop, web.address)
	e.until(laptop, nginxAddress, "http://first.example.com/", "nginx")

	own := e.hostMoves(laptop, nginxAddress)
	e.addressesMove(laptop, web, data)
	for _, s := range []theirs{web, data, nginx} {
		s.untouched()
	}

	// When all hosts have moved, the proxies get the address of ingress-nginx, and what has
	// no class is ours, with the addresses that MetalLB gave.
	e.patchIngress("second", `{"spec":{"ingressClassName":"quayside"}}`)
	e.until(laptop, own, "http://second.example.com/", "shop")
	nginx.leave()
	e.Apply(toUs(nginx, 1))
	values := besideOthers()
	values["loadBalancer"] = lab.Values{"default": true}
	values["proxy"].(lab.Values)["service"] = lab.Values{"loadBalancerIPs": []any{nginxAddress}}
	judge := e.watchMoves(laptop, web.address)
	e.ChangeRelease(e.revision(values))
	judge("what has no class is ours", len(e.Nodes()))
	e.until(laptop, nginxAddress, "http://second.example.com/", "shop")
	e.until(laptop, nginxAddress, "http://first.example.com/", "shop")
	for _, s := range []theirs{web, data} {
		s.adopted()
		e.reached(laptop, s.address)
	}
}

// hostMoves moves a host to us with the class of its Ingress, back, and to us again. The
// other one stays. It returns where hosts are served here.
func (e edge) hostMoves(laptop *lab.Client, theirs string) (own string) {
	e.t.Helper()
	e.patchIngress("first", `{"spec":{"ingressClassName":"quayside"}}`)
	own = e.ingressAddress("first")
	unserved := func(host string) {
		e.t.Helper()
		e.Eventually(settle, func() error {
			resp, err := laptop.Try("http://"+host+"/", lab.Via(own+":80"))
			if err == nil && resp.Status != 404 {
				err = fmt.Errorf("%s of another class is answered with %d", host, resp.Status)
			}
			return err
		})
	}
	e.until(laptop, own, "http://first.example.com/", "shop")
	e.until(laptop, theirs, "http://second.example.com/", "nginx")
	unserved("second.example.com")
	e.patchIngress("first", `{"spec":{"ingressClassName":"nginx"}}`)
	e.until(laptop, theirs, "http://first.example.com/", "nginx")
	unserved("first.example.com")
	e.patchIngress("first", `{"spec":{"ingressClassName":"quayside"}}`)
	e.until(laptop, own, "http://first.example.com/", "shop")
	return own
}

// notices is how long an address may have no answer that another node than MetalLB's gets:
// that node asks the LAN for it again and again, with a quarter of a second in between.
const notices = time.Second

// addressesMove moves two addresses to us, and one of them back and here again. A pool of
// ours that has the address is all that it takes: the node that is to answer for it does
// so beside MetalLB where MetalLB's speaker is on that node, and otherwise waits until
// that is silent. No connection fails, except that whoever is new to the LAN then waits
// for that node to notice.
func (e edge) addressesMove(laptop *lab.Client, same, another theirs) {
	e.t.Helper()
	const theirNode = 1
	judge := e.watchMoves(laptop, same.address)
	e.Apply(toUs(same, theirNode) + toUs(another, theirNode+1))
	e.claimedBy(same.address, e.Node(theirNode))
	same.silence()
	another.movesTo(laptop, e.Node(theirNode+1))
	judgeBack := e.watchMoves(laptop, another.address)
	// Back, MetalLB answers first.
	another.announced()
	if err := e.TryApply(strings.ReplaceAll(toUs(another, theirNode+1), another.address, "10.77.0.239")); err != nil {
		e.t.Fatal(err)
	}
	if holder := e.owner(laptop, another.address); holder.Name() != e.Node(theirNode).Name() {
		e.t.Errorf("%s went back to MetalLB, and %s answers", another.address, holder.Name())
	}
	// Its claim is remembered, so that it answers at once, beside MetalLB.
	if err := e.TryApply(toUs(another, theirNode+1)); err != nil {
		e.t.Fatal(err)
	}
	e.claimedBy(another.address, e.Node(theirNode+1))
	another.silence()
	if holder := e.owner(laptop, another.address); holder.Name() != e.Node(theirNode+1).Name() {
		e.t.Errorf("%s is answered by %s", another.address, holder.Name())
	}
	judge("on the same node", 0)
	judgeBack("back, and to us again", 2)
}

// toUs is a pool of ours with the address of a Service of MetalLB's, which is given to
// nobody else, for the node to answer for it.
func toUs(s theirs, node int) string {
	return fmt.Sprintf(`---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: from-metallb-%[1]s}
spec: {addresses: [%[2]s/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: from-metallb-%[1]s}
spec:
  ipAddressPools: [from-metallb-%[1]s]
  preferredNodeSelectors: [{weight: 1, preference: {matchLabels: {quayside.io/lab-node: '%[3]d'}}}]
`, s.name, s.address, node)
}

// claimedBy waits until the speaker of a node says that it alone answers for address.
func (e edge) claimedBy(address string, node *lab.Node) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		if by := e.claimed()[address]; !strings.HasSuffix(by, " "+node.Name()+" ") || strings.Count(by, " ") != 2 {
			return fmt.Errorf("%s is claimed by %q, want %s", address, by, node.Name())
		}
		return nil
	})
}

// install is `helm install` of today's chart, packed. It goes with the test.
func (e edge) install(values lab.Values) {
	e.t.Helper()
	e.InstallRelease(e.revision(values))
	e.t.Cleanup(func() {
		if err := e.Uninstall(context.Background()); err != nil {
			e.t.Error(err)
		}
	})
}

// revision is today's chart, packed, with these values.
func (e edge) revision(values lab.Values) *chart.Release {
	e.t.Helper()
	archive, err := chart.Pack(e.t.TempDir(), "")
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := chart.NewRelease("quayside", lab.SystemNamespace, archive, values)
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// theirs is a Service that MetalLB serves.
type theirs struct {
	edge
	name, address string
}

// byMetalLB makes a Service with an address that MetalLB has given it.
func (e edge) byMetalLB(name, app, address string) theirs {
	e.t.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  type: LoadBalancer
  selector: {app: %s}
  ports: [{name: http, port: 80, targetPort: http}]
`, name, app))
	s := theirs{e, name, address}
	s.announced()
	return s
}

// announced is what MetalLB does for a Service: its status, and a node that answers for
// the address, which is on none of the interfaces that lead to the LAN. A patch, since
// others may write at the same time.
func (s theirs) announced() {
	s.t.Helper()
	body := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, s.address)
	if _, err := s.Kube().CoreV1().Services(s.Namespace()).Patch(s.t.Context(), s.name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
		s.t.Fatal(err)
	}
	s.Node(1).Exec("ip", "address", "replace", s.address+"/32", "dev", "lo")
	s.t.Cleanup(func() { s.Node(1).Exec("sh", "-c", "ip address delete "+s.address+"/32 dev lo || true") }) // for the next test on these nodes
}

// silence has MetalLB's speakers answer for the Service no more.
func (s theirs) silence() {
	s.t.Helper()
	s.Node(1).Exec("ip", "address", "delete", s.address+"/32", "dev", "lo")
}

// leave takes the Service away from MetalLB, which then answers for it no more.
func (s theirs) leave() {
	s.t.Helper()
	s.patch(`{"spec":{"type":"ClusterIP"}}`)
	s.silence()
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

func (e edge) patchIngress(name, body string) {
	e.t.Helper()
	if _, err := e.Kube().NetworkingV1().Ingresses(e.Namespace()).Patch(e.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// reached waits until an address answers on port 80.
func (e edge) reached(from *lab.Client, address string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		_, err := from.Try("http://"+address, lab.Timeout(time.Second))
		return err
	})
}
