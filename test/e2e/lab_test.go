package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// byHand is a Service that no load balancer serves: these tests write its
// status and route its address themselves, and so judge kube-proxy and the
// lab, not us.
const byHand = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  loadBalancerClass: example.com/by-hand
  externalTrafficPolicy: %s
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`

const handAddress = "10.77.0.240"

// serveByHand makes pods web-1 to web-3, one per node, and the Service.
func serveByHand(t *testing.T, c *lab.Cluster, policy string) (*corev1.Service, []*lab.Pod) {
	t.Helper()
	var pods []*lab.Pod
	for n := range c.Nodes() {
		pods = append(pods, c.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"}))
	}
	c.Apply(fmt.Sprintf(byHand, policy))
	services := c.Kube().CoreV1().Services(c.Namespace())
	svc, err := services.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: handAddress}}
	if svc, err = services.UpdateStatus(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return svc, pods
}

// answeredBy waits until exactly the wanted pods have answered url.
func answeredBy(t *testing.T, c *lab.Cluster, from lab.Host, url string, want ...string) {
	t.Helper()
	c.Eventually(20*time.Second, func() error {
		seen := map[string]bool{}
		for range 8 * len(want) {
			resp, err := from.Try(url, lab.Timeout(time.Second))
			if err != nil {
				return err
			}
			reply, err := resp.Reply()
			if err != nil {
				return err
			}
			seen[reply.Pod] = true
		}
		for _, pod := range want {
			if !seen[pod] {
				return fmt.Errorf("%v have answered, want %v", seen, want)
			}
		}
		if len(seen) != len(want) {
			return fmt.Errorf("%v have answered, want %v", seen, want)
		}
		return nil
	})
}

func TestLabServices(t *testing.T) {
	beside(t)
	inEachMode(t, func(t *testing.T, c *lab.Cluster) {
		svc, pods := serveByHand(t, c, "Cluster")
		laptop := c.Client("laptop")
		laptop.Exec("ip", "route", "add", handAddress, "via", c.Node(2).IP())
		all := []string{"web-1", "web-2", "web-3"}
		answeredBy(t, c, c.Node(1).Host, "http://"+svc.Spec.ClusterIP, all...)
		answeredBy(t, c, laptop.Host, fmt.Sprintf("http://%s:%d", c.Node(3).IP(), svc.Spec.Ports[0].NodePort), all...)
		answeredBy(t, c, laptop.Host, "http://"+handAddress, all...)
		answeredBy(t, c, pods[0].Host, "http://"+handAddress, all...) // hairpin

		// Readiness goes the real way: status, EndpointSlice, kube-proxy.
		pods[1].SetReady(false)
		answeredBy(t, c, laptop.Host, "http://"+handAddress, "web-1", "web-3")
		pods[2].Delete()
		answeredBy(t, c, laptop.Host, "http://"+handAddress, "web-1")
	})
}

func TestLabLocalPolicyKeepsTheClientAddress(t *testing.T) {
	beside(t)
	inEachMode(t, func(t *testing.T, c *lab.Cluster) {
		serveByHand(t, c, "Local")
		laptop := c.Client("laptop")
		laptop.Exec("ip", "route", "add", handAddress, "via", c.Node(2).IP())
		answeredBy(t, c, laptop.Host, "http://"+handAddress, "web-2")
		if reply := laptop.Reply("http://" + handAddress); remoteIP(t, reply.Remote) != laptop.IP() {
			t.Errorf("the pod saw %s, want the client's own address %s", reply.Remote, laptop.IP())
		}
	})
}

// A client that comes has the address of one that has left. What nodes remember of
// that one's connections, such as those that broke when a pod was killed, is not its past.
func TestLabClientsHaveNoPast(t *testing.T) {
	beside(t)
	c := bare(t)
	svc, pods := serveByHand(t, c, "Local")
	target := fmt.Sprintf("%s:%d", c.Node(1).IP(), svc.Spec.Ports[0].NodePort)
	come := func(c *lab.Cluster) *lab.Client {
		laptop := c.Client("laptop")
		laptop.Exec("sysctl", "-qw", "net.ipv4.ip_local_port_range=40001 40001") // it has no other port
		return laptop
	}
	dial := func(from *lab.Client) (conn net.Conn) {
		c.Eventually(settle, func() (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			conn, err = from.Dial(ctx, "tcp", target)
			return err
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var before string
	t.Run("one leaves", func(t *testing.T) {
		laptop := come(c.With(t))
		before = laptop.IP()
		dial(laptop)
		pods[0].Delete()
		c.Pod(1, "web-4", lab.Labels{"app": "web"})
	})
	t.Run("one comes", func(t *testing.T) {
		laptop := come(c.With(t))
		if laptop.IP() != before {
			t.Fatalf("it has %s, not the address of the one before, %s", laptop.IP(), before)
		}
		dial(laptop)
	})
}

func TestLabTrouble(t *testing.T) {
	beside(t)
	c := bare(t)
	serveByHand(t, c, "Local")
	laptop, node := c.Client("laptop"), c.Node(2)
	laptop.Exec("ip", "route", "add", handAddress, "via", node.IP())
	url := "http://" + handAddress
	answeredBy(t, c, laptop.Host, url, "web-2")
	gone := func(what string) {
		t.Helper()
		if macs := laptop.ARP(node.IP()); len(macs) > 0 {
			t.Errorf("%s: %v still answers ARP", what, macs)
		}
		if _, err := laptop.Try(url, lab.Timeout(300*time.Millisecond)); err == nil {
			t.Errorf("%s: a request was answered", what)
		}
	}
	back := func(what string) {
		t.Helper()
		answeredBy(t, c, laptop.Host, url, "web-2")
		if macs := laptop.ARP(node.IP()); len(macs) != 1 || macs[0] != node.MAC() {
			t.Errorf("%s: ARP is answered by %v, want %s", what, macs, node.MAC())
		}
	}
	probe := laptop.Probe(handAddress+":80", 10*time.Millisecond, 200*time.Millisecond)
	node.Fail()
	gone("Fail")
	node.Heal()
	back("Fail healed")
	if r := probe.Stop(); r.Failed == 0 || r.Gap < 300*time.Millisecond {
		t.Errorf("the prober did not notice: %s", r)
	}
	node.CarrierDown()
	gone("CarrierDown")
	node.Heal()
	back("CarrierDown healed")
	heal := c.Partition(lab.Members(laptop), lab.Members(node, c.Node(3)))
	gone("Partition")
	heal()
	back("Partition healed")
	heal = c.OneWay(lab.Members(node), lab.Members(laptop))
	gone("OneWay")
	heal()
	heal = c.Cut("tcp dport 80")
	if _, err := laptop.Try(url, lab.Timeout(300*time.Millisecond)); err == nil {
		t.Error("Cut: a request was answered")
	}
	if macs := laptop.ARP(node.IP()); len(macs) != 1 {
		t.Errorf("Cut of TCP: ARP is answered by %v, want one", macs)
	}
	heal()
	node.Loss(20)
	c.Eventually(settle, func() error { // of four packets that each needs, one is lost or none
		lost := laptop.Probe(handAddress+":80", 10*time.Millisecond, 300*time.Millisecond)
		time.Sleep(time.Second)
		if r := lost.Stop(); r.Failed == 0 || r.Failed == len(r.Attempts) {
			return fmt.Errorf("a fifth of the packets lost: %s", r)
		}
		return nil
	})
	node.Heal()
	back("Loss healed")
}

func TestLabCapture(t *testing.T) {
	beside(t)
	c := bare(t)
	laptop, node := c.Client("laptop"), c.Node(1)
	capture := c.Capture("arp host " + node.IP())
	laptop.ARP(node.IP())
	// The node has questions of its own; those about it are what counts.
	packets := slices.DeleteFunc(capture.Stop(), func(p string) bool {
		return !strings.Contains(p, "who-has "+node.IP()) && !strings.Contains(p, "Reply "+node.IP())
	})
	if len(packets) != 2 || !strings.Contains(packets[0], "Request who-has "+node.IP()) || !strings.Contains(packets[1], node.MAC()) {
		t.Errorf("captured %q, want one question and one answer", packets)
	}
}

func TestLabRouters(t *testing.T) {
	beside(t)
	c := bare(t)
	one := c.Router("one", `
router bgp 65001
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.77.0.3 remote-as 65002
 neighbor 10.77.0.3 bfd
 address-family ipv4 unicast
  network 192.0.2.0/24
`)
	two := c.Router("two", `
router bgp 65002
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.77.0.1 remote-as 65001
 neighbor 10.77.0.1 bfd
`)
	c.Eventually(30*time.Second, func() error {
		if routes := two.Exec("ip", "route", "show", "192.0.2.0/24"); !strings.Contains(routes, "via "+one.IP()) {
			return fmt.Errorf("no route to 192.0.2.0/24 yet: %q", routes)
		}
		if peers := two.Show("show bfd peers json"); !strings.Contains(peers, `"status":"up"`) {
			return fmt.Errorf("BFD: %s", peers)
		}
		return nil
	})
}

func TestLabAPIServerOutage(t *testing.T) {
	beside(t)
	c := bare(t)
	svc, _ := serveByHand(t, c, "Cluster")
	url := "http://" + svc.Spec.ClusterIP
	answeredBy(t, c, c.Node(1).Host, url, "web-1", "web-2", "web-3")
	c.APIServer().Stop()
	if _, err := c.Kube().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a stopped API server has answered")
	}
	answeredBy(t, c, c.Node(1).Host, url, "web-1", "web-2", "web-3")
	if err := c.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Pod(1, "web-4", lab.Labels{"app": "web"})
	answeredBy(t, c, c.Node(1).Host, url, "web-1", "web-2", "web-3", "web-4")
}

// A lab that closes leaves nothing; one that is killed leaves names only, and
// the next one removes those.
func TestLabLeavesNothing(t *testing.T) {
	beside(t)
	lab.Require(t)
	up := filepath.Join(t.TempDir(), "up")
	build := exec.Command("go", "build", "-o", up, "quayside.io/test/lab/up")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	killed := exec.CommandContext(ctx, up, "-bare", "-nodes", "1")
	input, err := killed.StdinPipe() // never written: the shell waits
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	inLab := fmt.Sprintf("qs-%d-", killed.Process.Pid)
	await(t, 3*time.Minute, "a shell in the lab that is to be killed", func() bool {
		_, err := os.Stat("/run/netns/" + inLab + "you")
		return err == nil
	})
	kill()
	_ = killed.Wait() // "killed"
	await(t, time.Minute, "the end of the processes of a killed lab", func() bool {
		return !strings.Contains(traces(t, killed.Process.Pid), "process")
	})

	closed := exec.Command(up, "-bare", "-nodes", "1")
	closed.Stdin = strings.NewReader("true\n")
	if out, err := closed.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left := traces(t, closed.Process.Pid); left != "" {
		t.Errorf("a closed lab left %s", left)
	}
	if left := traces(t, killed.Process.Pid); left != "" {
		t.Errorf("after the next lab has come up, a killed one has still left %s", left)
	}
}

// traces lists what a lab of that pid has on this machine.
func traces(t *testing.T, pid int) string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/run/netns/qs-%d-*", filepath.Join(os.TempDir(), "qs-%d")} {
		paths, err := filepath.Glob(fmt.Sprintf(pattern, pid))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		if strings.Contains(string(line), fmt.Sprintf("/qs-%d/", pid)) {
			found = append(found, "process "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return strings.Join(found, ", ")
}

func await(t *testing.T, within time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %v", what, within)
		}
	}
}

func TestLabDualStack(t *testing.T) {
	beside(t)
	c := three(t).Cluster
	c.Pod(1, "web-1", lab.Labels{"app": "web"})
	c.Pod(2, "web-2", lab.Labels{"app": "web"})
	c.Apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`)
	svc, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(svc.Spec.ClusterIPs) != 2 {
		t.Fatalf("cluster addresses %v, want two", svc.Spec.ClusterIPs)
	}
	for _, ip := range svc.Spec.ClusterIPs {
		answeredBy(t, c, c.Node(1).Host, "http://"+net.JoinHostPort(ip, "80"), "web-1", "web-2")
	}
	laptop := c.Client("laptop")
	port := fmt.Sprint(svc.Spec.Ports[0].NodePort)
	answeredBy(t, c, laptop.Host, "http://"+net.JoinHostPort(c.Node(1).IP(), port), "web-1", "web-2")
	answeredBy(t, c, laptop.Host, "http://"+net.JoinHostPort(c.Node(2).IPv6(), port), "web-1", "web-2")
}
