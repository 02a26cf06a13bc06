package e2e

import (
	"context"
	"fmt"
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
		"proxy":        lab.Values{"gracePeriodSeconds": 2},
	}
}

// samePool is MetalLB's own range in a pool of ours, which gives nothing away unasked.
const samePool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: [10.77.0.200-10.77.0.239]
  autoAssign: false
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: ours}
spec:
  addresses: [10.77.0.241-10.77.0.249]
`

// Beside MetalLB and ingress-nginx, one Service and one host moves at a time, and each
// address stays. MetalLB is here what it is on the wire: a status that somebody else
// writes, and a node that answers for the address. ingress-nginx is a pod behind such a
// Service.
func TestMovingInPieceByPiece(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	e.install(besideOthers())
	e.Apply(samePool)
	e.lingeringPods()
	e.serve("shop", "nginx")
	e.Apply(clusterIPServices("shop"))
	laptop := e.Client("laptop")

	const webAddress, nginxAddress = "10.77.0.230", "10.77.0.231"
	web := e.byMetalLB("web", "web", webAddress)
	nginx := e.byMetalLB("nginx", "nginx", nginxAddress)
	e.Apply(`
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
` + "---" + ingressFor("first", "ingressClassName: nginx", "", "first.example.com", "shop") + "---" + ingressFor("second", "ingressClassName: nginx", "", "second.example.com", "shop"))
	e.reached(laptop, webAddress)
	e.until(laptop, nginxAddress, "http://first.example.com/", "nginx")

	// A host moves with the class of its Ingress; the other one stays.
	e.patchIngress("first", `{"spec":{"ingressClassName":"quayside"}}`)
	own := e.ingressAddress("first")
	e.until(laptop, own, "http://first.example.com/", "shop")
	e.until(laptop, nginxAddress, "http://second.example.com/", "nginx")
	e.Eventually(settle, func() error {
		resp, err := laptop.Try("http://second.example.com/", lab.Via(own+":80"))
		if err == nil && resp.Status != 404 {
			err = fmt.Errorf("an Ingress of another class is answered with %d", resp.Status)
		}
		return err
	})
	// Nobody has touched what is MetalLB's.
	for _, s := range []string{"web", "nginx"} {
		if now, err := e.service(s); err != nil || len(now.Status.Conditions) > 0 || len(now.Status.LoadBalancer.Ingress) != 1 {
			t.Errorf("Service %s of MetalLB: %v, %v", s, now.Status, err)
		}
	}

	// A Service moves by its class, which a Service of type LoadBalancer cannot change.
	web.move(webAddress)
	e.reached(laptop, webAddress)
	e.until(laptop, nginxAddress, "http://second.example.com/", "nginx")

	// Both go back the same way, and once more to us.
	web.back()
	e.reached(laptop, webAddress)
	web.move(webAddress)
	e.reached(laptop, webAddress)
	e.patchIngress("first", `{"spec":{"ingressClassName":"nginx"}}`)
	e.until(laptop, nginxAddress, "http://first.example.com/", "nginx")
	e.Eventually(settle, func() error {
		resp, err := laptop.Try("http://first.example.com/", lab.Via(own+":80"))
		if err == nil && resp.Status != 404 {
			err = fmt.Errorf("an Ingress that went back is answered with %d", resp.Status)
		}
		return err
	})
	e.patchIngress("first", `{"spec":{"ingressClassName":"quayside"}}`)

	// When all hosts have moved, the proxies get the address of ingress-nginx.
	e.patchIngress("second", `{"spec":{"ingressClassName":"quayside"}}`)
	e.until(laptop, own, "http://second.example.com/", "shop")
	nginx.leave()
	values := besideOthers()
	values["proxy"].(lab.Values)["service"] = lab.Values{"loadBalancerIPs": []any{nginxAddress}}
	e.ChangeRelease(e.revision(values))
	e.until(laptop, nginxAddress, "http://second.example.com/", "shop")
	e.until(laptop, nginxAddress, "http://first.example.com/", "shop")
	e.reached(laptop, webAddress)
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

// announced is what MetalLB does for a Service: its status, and a node that answers.
// A patch, since our controller may write what it gave up at the same time.
func (s theirs) announced() {
	s.t.Helper()
	body := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, s.address)
	if _, err := s.Kube().CoreV1().Services(s.Namespace()).Patch(s.t.Context(), s.name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
		s.t.Fatal(err)
	}
	s.Node(1).Exec("ip", "address", "add", s.address+"/32", "dev", "eth0")
}

// leave takes the Service away from MetalLB, which then answers for it no more.
func (s theirs) leave() {
	s.t.Helper()
	s.patch(`{"spec":{"type":"ClusterIP"}}`)
	s.Node(1).Exec("ip", "address", "delete", s.address+"/32", "dev", "eth0")
}

// move makes the Service ours, with the address that it has.
func (s theirs) move(address string) {
	s.t.Helper()
	s.leave()
	s.patch(fmt.Sprintf(`{"metadata":{"annotations":{"metallb.io/loadBalancerIPs":%q}},"spec":{"type":"LoadBalancer","loadBalancerClass":"quayside.io/lb"}}`, address))
	if now := s.serviceAddress(s.name); now != address {
		s.t.Errorf("Service %s was at %s and is at %s", s.name, address, now)
	}
}

// back gives the Service to MetalLB again, which answers for it once it is of its type
// and not before.
func (s theirs) back() {
	s.t.Helper()
	s.patch(`{"spec":{"type":"ClusterIP"}}`)
	s.patch(`{"spec":{"type":"LoadBalancer"}}`)
	now, err := s.service(s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	if class := now.Spec.LoadBalancerClass; class != nil {
		s.t.Errorf("Service %s goes back and has class %s still", s.name, *class)
	}
	s.announced()
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
