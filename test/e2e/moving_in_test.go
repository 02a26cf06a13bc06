package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// besideOthers are the values of docs/from-metallb.md for a cluster whose load balancer
// and Ingress controller are still there.
func besideOthers() lab.Values {
	return lab.Values{
		"loadBalancer": lab.Values{"default": false},
		"controller":   lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":        lab.Values{"gracePeriodSeconds": 10},
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
// address stays. MetalLB is MetalLB itself. ingress-nginx is a pod behind one of its
// Services.
func TestMovingInPieceByPiece(t *testing.T) {
	inPairs(t)
	e := edge{bare(t), t}
	metallb := e.InstallMetalLB()
	e.Apply(itsPool)
	e.lingeringPods()
	e.serve("shop", "nginx")
	e.Apply(clusterIPServices("shop"))
	laptop := e.Client("laptop")

	web, data := e.byMetalLB(laptop, "web", "web"), e.byMetalLB(laptop, "data", "web")
	nginx := e.byMetalLB(laptop, "nginx", "nginx")
	nginxAddress := nginx.address
	e.install(besideOthers())
	e.Apply(notTheirs)
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
	metallb.Delete()
	e.ChangeRelease(e.revision(values))
	judge("MetalLB ends, and what has no class is ours", len(e.Nodes()))
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
// that node asks the LAN for it again and again, with a quarter of a second in between, and
// for 200 ms before it believes that nobody answers any more.
const notices = 700 * time.Millisecond

// addressesMove moves two addresses to us, and one of them back and here again. A pool of
// ours that has the address is all that it takes: the node that is to answer for it does
// so beside MetalLB where MetalLB's speaker is on that node, and otherwise waits until
// that is silent. No connection fails, except that whoever is new to the LAN then waits
// for that node to notice.
func (e edge) addressesMove(laptop *lab.Client, same, another theirs) {
	e.t.Helper()
	judge := e.watchMoves(laptop, same.address)
	to := another.node%len(e.Nodes()) + 1
	e.Apply(toUs(same, same.node) + toUs(another, to))
	e.claimedBy(same.address, e.Node(same.node))
	same.silence()
	another.movesTo(laptop, e.Node(to))
	judgeBack := e.watchMoves(laptop, another.address)
	// Back, MetalLB answers first.
	another.announced(laptop)
	if err := e.TryApply(strings.ReplaceAll(toUs(another, to), another.address, "10.77.0.250")); err != nil {
		e.t.Fatal(err)
	}
	if holder := e.owner(laptop, another.address); holder.Name() != e.Node(another.node).Name() {
		e.t.Errorf("%s went back to MetalLB, and %s answers", another.address, holder.Name())
	}
	// It asks the LAN again, and waits again until MetalLB is silent.
	if err := e.TryApply(toUs(another, to)); err != nil {
		e.t.Fatal(err)
	}
	another.silence()
	e.Eventually(settle, func() error {
		if holder := e.owner(laptop, another.address); holder.Name() != e.Node(to).Name() {
			return fmt.Errorf("%s is answered by %s", another.address, holder.Name())
		}
		return nil
	})
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
