package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/test/lab"
)

// A node that may not hold an address any more hands it over; when it may
// again, it takes nothing, and gets it back once it is needed.
func TestL2BarredNode(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.advertise(t, "{ipAddressPools: [l2]}")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	laptop, addresses := e.asker("laptop"), e.dual("web", "Cluster", "team: red")
	for row, bar := range map[string]func(here edge, node string, on bool){
		"l2.go: the label that excludes from load balancers": func(here edge, node string, on bool) {
			here.labelNode(node, excludeLabel, map[bool]string{true: "yes"}[on])
		},
		"l2.go: NetworkUnavailable": edge.setNetworkUnavailable,
	} {
		t.Run(row, func(t *testing.T) {
			here := edge{e.With(t), t}
			t.Cleanup(func() {
				for _, n := range here.everyNode() {
					bar(here, n, false)
				}
			})
			for _, address := range addresses {
				first := here.holder(laptop, address, here.everyNode()...)
				bar(here, first, true)
				second := here.holder(laptop, address, here.everyNode(first)...)
				here.announced(address, second, "eth0")
				bar(here, first, false)
				here.stays(laptop, address, second, 500*time.Millisecond)
				for _, n := range here.everyNode(first) {
					bar(here, n, true)
				}
				here.holder(laptop, address, first)
				for _, n := range here.everyNode(first) {
					bar(here, n, false)
				}
				here.stays(laptop, address, first, 500*time.Millisecond)
			}
		})
	}
}

// The SpeakerStatus follows the Service: it names the address while there is
// one, is not written again while nothing changes, and forgets it afterwards.
func TestL2StatusFollowsTheService(t *testing.T) {
	beside(t)
	e := big(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	e.l2World(l2Ranges)
	e.advertise(t, "{ipAddressPools: [l2]}")
	laptop, addresses := e.asker("laptop"), e.dual("web", "Cluster", "team: red")
	holders := map[string]string{}
	for _, address := range addresses {
		holders[address] = e.holder(laptop, address, e.everyNode()...)
		e.announced(address, holders[address], "eth0")
	}
	// Services of tests before this one may still be going.
	e.Eventually(settle, func() error {
		before := e.speakerStatuses()
		time.Sleep(5 * time.Second)
		for node, s := range e.speakerStatuses() {
			if before[node].ResourceVersion != s.ResourceVersion {
				return fmt.Errorf("the SpeakerStatus of %s was written although nothing happened: %+v, then %+v", node, before[node].Status, s.Status)
			}
		}
		return nil
	})
	if err := e.Kube().CoreV1().Services(e.Namespace()).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		e.holder(laptop, address)
		e.announced(address, "")
	}
}

func (e edge) speakerStatuses() map[string]*v1alpha1.SpeakerStatus {
	e.t.Helper()
	all := map[string]*v1alpha1.SpeakerStatus{}
	for _, n := range e.Nodes() {
		s, err := e.speakerStatus(n.Name())
		if err != nil {
			e.t.Fatal(err)
		}
		all[n.Name()] = s
	}
	return all
}

// Services that share addresses are announced by one node, whatever the family.
func TestL2SharedAddresses(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.advertise(t, "{ipAddressPools: [l2]}")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	for i, name := range []string{"one", "two"} {
		e.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata:
  name: %s
  annotations: {quayside.io/allow-shared-ip: key, quayside.io/loadBalancerIPs: "10.77.0.250,fd77::250"}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: %d, targetPort: http}]
`, name, 80+i))
	}
	laptop := e.asker("laptop")
	for _, address := range e.bothAddresses("one") {
		if got := e.bothAddresses("two"); !slices.Contains(got, address) {
			t.Fatalf("two has %v, want it to share %s", got, address)
		}
		holder := e.holder(laptop, address, e.everyNode()...)
		for _, port := range []string{"80", "81"} {
			e.Eventually(settle, func() error {
				_, err := laptop.Try("http://"+net.JoinHostPort(address, port), lab.Timeout(time.Second))
				return err
			})
		}
		e.Eventually(settle, func() error {
			s, err := e.speakerStatus(holder)
			if err != nil {
				return err
			}
			var names []string
			for _, a := range s.Status.Announcing {
				if a.Address == address {
					names = append(names, strings.TrimPrefix(a.Service, e.Namespace()+"/"))
				}
			}
			if !slices.Equal(names, []string{"one", "two"}) {
				return fmt.Errorf("the SpeakerStatus of %s has %s for %v", holder, address, names)
			}
			return nil
		})
	}
}

// One Service with TCP and UDP on each of its addresses.
func TestL2MixedProtocols(t *testing.T) {
	beside(t)
	e := big(t)
	pod := e.Pod(2, "web-2", lab.Labels{"app": "web"})
	echo, err := pod.ListenPacket("udp", ":5353")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := echo.ReadFrom(b)
			if err != nil {
				return // closed
			}
			_, _ = echo.WriteTo(append([]byte("heard "), b[:n]...), from)
		}
	}()
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports:
  - {name: tcp, port: 80, targetPort: http}
  - {name: udp, port: 80, targetPort: 5353, protocol: UDP}
`)
	laptop := e.asker("laptop")
	for _, address := range e.bothAddresses("web") {
		e.holder(laptop, address, e.everyNode()...)
		e.servedAt(laptop.Client, address)
		e.Eventually(settle, func() error { return askUDP(laptop.Client, net.JoinHostPort(address, "80")) })
	}
}

func askUDP(from *lab.Client, addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := from.Dial(ctx, "udp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	b := make([]byte, 100)
	n, err := conn.Read(b)
	if err == nil && string(b[:n]) != "heard hello" {
		err = fmt.Errorf("%s answered %q", addr, b[:n])
	}
	return err
}

// Every question, answer and announcement is counted where it was, in either
// family; one node says that it announces; the leader counts the pool.
func TestL2Metrics(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.advertise(t, "{ipAddressPools: [l2]}")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	laptop := e.asker("laptop")
	for i, address := range e.dual("web", "Cluster", "team: red") {
		family := []string{"ipv4", "ipv6"}[i]
		holder := e.holder(laptop, address, e.everyNode()...)
		e.announced(address, holder, "eth0")
		count := func(node *lab.Node) map[string]float64 {
			text := e.Quayside().Speaker(node).Admin("/metrics")
			out := map[string]float64{"announced": sample(t, text, "quayside_announced", "ip", address, "namespace", e.Namespace(), "service", "web", "protocol", "l2")}
			for _, what := range []string{"requests", "replies", "gratuitous"} {
				out[what] = sample(t, text, "quayside_l2_"+what+"_total", "interface", "eth0", "family", family)
			}
			return out
		}
		for _, n := range e.Nodes() {
			before := count(n)
			e.stays(laptop, address, holder, 200*time.Millisecond) // a hundred questions
			after := count(n)
			want := map[bool]float64{true: 1}[n.Name() == holder]
			if after["announced"] != want {
				t.Errorf("quayside_announced of %s for %s is %v, want %v", n.Name(), address, after["announced"], want)
			}
			if n.Name() != holder {
				continue
			}
			for _, what := range []string{"requests", "replies"} {
				// The laptop's own kernel may ask, too.
				if more := after[what] - before[what]; more < 100 || more > 105 {
					t.Errorf("100 questions for %s made %v %s", address, more, what)
				}
			}
			if after["gratuitous"] < 1 {
				t.Errorf("%s has announced %s and counts %v frames", holder, address, after["gratuitous"])
			}
		}
		e.Eventually(settle, func() error {
			text := e.Quayside().Leader().Admin("/metrics")
			if got := sample(t, text, "quayside_pool_addresses", "pool", "l2", "family", family, "state", "assigned"); got != 1 {
				return fmt.Errorf("quayside_pool_addresses of l2 assigned is %v in %s", got, family)
			}
			return nil
		})
	}
}

// sample reads one value from a page of metrics; 0 where it is not.
func sample(t *testing.T, page, name string, labels ...string) float64 {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		line := lines.Text()
		matches := strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ")
		for i := 0; i < len(labels); i += 2 {
			matches = matches && strings.Contains(line, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
		}
		if !matches {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return 0
}

// A Service of another class is not ours: it gets nothing, and what another
// controller gives it is not announced, although it lies in a pool.
func TestL2Class(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.advertise(t, "{ipAddressPools: [l2]}")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: theirs}
spec:
  type: LoadBalancer
  loadBalancerClass: example.com/other
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`)
	laptop := e.asker("laptop")
	for _, address := range e.dual("ours", "Cluster", "team: red") { // made later, served first
		e.holder(laptop, address, e.everyNode()...)
	}
	theirs, err := e.service("theirs")
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.Status.LoadBalancer.Ingress) > 0 || len(theirs.Status.Conditions) > 0 {
		t.Fatalf("a Service of another class has status %+v", theirs.Status)
	}
	theirs.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.77.0.254"}}
	if _, err := e.Kube().CoreV1().Services(e.Namespace()).UpdateStatus(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, address := range e.dual("later", "Cluster", "team: red") {
		e.holder(laptop, address, e.everyNode()...)
	}
	if got := laptop.often("10.77.0.254", 100); len(got) > 0 {
		t.Errorf("the address that another controller gave is answered by %v", got)
	}
}
