package speaker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/controller/api/v1alpha1"
	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
	"quayside.io/speaker/l2"
)

const (
	nodeEnv = "QUAYSIDE_TEST_NODE"
	keyEnv  = "QUAYSIDE_TEST_KEY"
	profEnv = "QUAYSIDE_TEST_PROFILE"
	manyEnv = "QUAYSIDE_TEST_MANY"
	nsEnv   = "QUAYSIDE_TEST_NETNS"
)

const vip6 = "2001:db8:0:1::50"

// objects are a cluster of n nodes with addresses 10.0.0.50 and up, and one
// Service of policy Local at 10.0.0.40 with endpoints on the nodes named.
func objects(nodes, services int, local []string) []snapshot.Object {
	var out []snapshot.Object
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		out = append(out, n)
	}
	out = append(out, &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"},
		Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.40-10.0.0.199", "10.0.8.0/21", "2001:db8:0:1::40-2001:db8:0:1::ff"}}})
	out = append(out, service("six", vip6))
	for i := range services {
		out = append(out, service(fmt.Sprintf("s%d", i), fmt.Sprintf("10.0.0.%d", 50+i)))
	}
	svc := service("local", "10.0.0.40")
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	return append(out, svc, endpoints(local))
}

func service(name, address string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	return svc
}

func endpoints(nodes []string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "local-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "local"}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, n := range nodes {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{NodeName: &n, Addresses: []string{"10.1.0.1"}})
	}
	return s
}

// TestOneNode is not a test but a node of TestFleet: a process with a network
// of its own that runs a speaker. Lines on its input are nodes with endpoints.
func TestOneNode(t *testing.T) {
	name := os.Getenv(nodeEnv)
	if name == "" {
		t.Skip("runs only as a part of TestFleet")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("me", name)
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	files.Put(objects(3, 12, []string{"n1", "n2"})...)
	if os.Getenv(manyEnv) == "true" {
		for i := range manyServices {
			files.Put(service(fmt.Sprintf("many%d", i), manyAddress(i)))
		}
	}
	go func() { _ = files.Run(context.Background()) }()
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			files.Put(endpoints(strings.Fields(in.Text())))
		}
	}()
	if err := Run(ctx, Options{Source: files.Source, Writer: files, NodeName: name, MembersKeyFile: os.Getenv(keyEnv), Profile: os.Getenv(profEnv), Log: log}); err != nil {
		t.Fatal(err)
	}
}

// host is a node on the bridge.
type host struct {
	t     *testing.T
	name  string
	index int
	cmd   *exec.Cmd
	in    io.WriteCloser
	mac   string
}

// fleet is a LAN with nodes and, in this process, a client.
type fleet struct {
	t       *testing.T
	profile string
	many    bool
	key     string
	hosts   map[string]*host
	ask     *l2.Announcer // only its Probe is used
	mu      sync.Mutex
	log     bytes.Buffer

	strangerPid string
}

// Write collects what the nodes log.
func (f *fleet) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(b)
}

func sh(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, profile: "fast", key: filepath.Join(t.TempDir(), "key"), hosts: map[string]*host{}, ask: l2.New(l2.Options{Log: slog.New(slog.DiscardHandler)})}
	if err := os.WriteFile(f.key, []byte("a secret for the fleet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			f.mu.Lock()
			defer f.mu.Unlock()
			t.Log(f.log.String())
		}
	})
	sh(t, "ip link add lan type bridge; ip link set lan up; ip addr add 10.0.0.200/24 dev lan")
	return f
}

// start boots a node: the process first, then its cable.
func (f *fleet) start(i int) *host {
	f.t.Helper()
	h := &host{t: f.t, name: fmt.Sprintf("n%d", i), index: i}
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestOneNode$", "-test.timeout=5m")
	h.cmd.Env = append(os.Environ(), nodeEnv+"="+h.name, keyEnv+"="+f.key, profEnv+"="+f.profile, manyEnv+"="+strconv.FormatBool(f.many))
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	h.cmd.Stderr = f
	in, err := h.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	h.in = in
	if err := h.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	sh(f.t, fmt.Sprintf("ip link del p%[1]s 2>/dev/null || true; ip link add p%[1]s type veth peer name eth0 netns %[2]d; ip link set p%[1]s master lan up", h.name, h.cmd.Process.Pid))
	h.run(fmt.Sprintf("ip link set lo up; ip addr add 10.0.0.%[1]d/16 dev eth0; ip addr add 2001:db8:0:1::%[1]d/64 dev eth0 nodad; ip link set eth0 up", i))
	h.mac = strings.Fields(strings.SplitAfter(h.run("ip -o link show eth0"), "link/ether ")[1])[0]
	f.hosts[h.name] = h
	return h
}

func (h *host) run(command string) string {
	h.t.Helper()
	return sh(h.t, fmt.Sprintf("nsenter -t %d -n sh -ec %s", h.cmd.Process.Pid, strconv.Quote(command)))
}

// who asks the LAN for an address, and once more after 150 ms: the node that
// answers first, or "". On a busy machine even a kernel may take that long.
func (f *fleet) who(address string) string {
	f.t.Helper()
	return f.whoOn(address, "lan")
}

// owners asks for every address until all answer.
func (f *fleet) owners() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	f.eventually("every address is answered for", func() bool {
		for i := range 12 {
			a := fmt.Sprintf("10.0.0.%d", 50+i)
			if out[a] = f.who(a); out[a] == "" {
				return false
			}
		}
		return true
	})
	return out
}

func (f *fleet) eventually(what string, ok func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	for time.Since(began) < 20*time.Second {
		if ok() {
			return time.Since(began)
		}
	}
	f.t.Fatalf("never: %s", what)
	return 0
}

func needNamespaces(t *testing.T, programs ...string) (inside bool) {
	t.Helper()
	if os.Getenv(nsEnv) == t.Name() {
		return true
	}
	lacks := ""
	if os.Geteuid() != 0 {
		lacks = "root"
	}
	for _, p := range append(programs, "ip", "nsenter") {
		if _, err := exec.LookPath(p); err != nil {
			lacks = p
		}
	}
	if lacks != "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("needs %s", lacks)
		}
		t.Skipf("needs %s", lacks)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=15m")
	cmd.Env = append(os.Environ(), nsEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("in its own namespace:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func TestFleet(t *testing.T) {
	if !needNamespaces(t, "nft", "arping") {
		return
	}
	f := newFleet(t)
	for i := range 3 {
		f.start(i + 1)
	}
	began := time.Now()
	first := f.owners()
	t.Logf("all addresses answered %v after the last node started: %v", time.Since(began).Round(time.Millisecond), count(first))
	if n := len(count(first)); n < 2 {
		t.Errorf("%d nodes own everything", n)
	}
	t.Run("exactly one answers", func(t *testing.T) { f.exactlyOne(t, "10.0.0.50", first["10.0.0.50"]) })
	t.Run("a speaker with nothing to do rests", f.rest)
	t.Run("gossip alone is cut", f.gossipCut)
	t.Run("local policy moves with the endpoints", f.localMoves)
	t.Run("a silent death and the return", func(t *testing.T) { f.silentDeath(t, "10.0.0.50") })
	t.Run("the same over IPv6", func(t *testing.T) { f.silentDeath(t, vip6) })
	t.Run("the speaker is killed", f.killed)
	t.Run("a polite end", f.polite)
}

func count(owners map[string]string) map[string]int {
	out := map[string]int{}
	for _, n := range owners {
		out[n]++
	}
	return out
}

func (f *fleet) exactlyOne(t *testing.T, address, owner string) {
	// A busy machine makes arping miss answers, but nobody else may give one.
	out := strings.ToLower(sh(t, "arping -c 100 -W 0.01 -i lan "+address))
	for name, h := range f.hosts {
		if n := strings.Count(out, h.mac); name == owner && n < 50 || name != owner && n != 0 {
			t.Errorf("%s answered %d of 100 questions, owner is %s", name, n, owner)
		}
	}
}

// rest measures the processor time of every node while nothing happens. A loop
// that wakes itself takes all it gets; probes and gossip a few hundredths.
func (f *fleet) rest(t *testing.T) {
	const lasting = 2 * time.Second
	before := map[string]time.Duration{}
	for name, h := range f.hosts {
		before[name] = h.worked()
	}
	time.Sleep(lasting)
	for name, h := range f.hosts {
		share := float64(h.worked()-before[name]) / float64(lasting)
		t.Logf("%s takes %.1f %% of a core", name, 100*share)
		if share > 0.25 {
			t.Errorf("%s does not rest", name)
		}
	}
}

// worked is the processor time that a node has used.
func (h *host) worked() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	// utime and stime are fields 14 and 15, in hundredths; the name may hold spaces.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, errU := strconv.Atoi(fields[11])
	system, errS := strconv.Atoi(fields[12])
	if errU != nil || errS != nil {
		h.t.Fatalf("no times in %q", b)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// gossipCut cuts the port of gossip on one node; the LAN works, so nothing moves.
func (f *fleet) gossipCut(t *testing.T) {
	before := f.owners()
	h := f.hosts[before["10.0.0.50"]]
	h.run("nft add table inet cut; nft add chain inet cut in '{ type filter hook input priority 0; }'; nft add chain inet cut out '{ type filter hook output priority 0; }'; " +
		"nft add rule inet cut in meta l4proto { tcp, udp } th dport 7946 drop; nft add rule inet cut out meta l4proto { tcp, udp } th dport 7946 drop")
	defer h.run("nft flush ruleset")
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		for a, owner := range before {
			if got := f.who(a); got != owner && got != "" {
				t.Fatalf("%s moved from %s to %q", a, owner, got)
			}
		}
	}
	h.run("nft flush ruleset")
	time.Sleep(1500 * time.Millisecond)
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("owners moved from %v to %v", before, after)
	}
}

// localMoves takes away the endpoint of the owner; the address must be answered
// all the time, at last by the other node, and never by a third.
func (f *fleet) localMoves(t *testing.T) {
	owner := f.who("10.0.0.40")
	other := map[string]string{"n1": "n2", "n2": "n1"}[owner]
	if other == "" {
		t.Fatalf("owned by %q, which has no endpoint", owner)
	}
	for _, h := range f.hosts {
		if _, err := fmt.Fprintln(h.in, other); err != nil {
			t.Fatal(err)
		}
	}
	silent := 0
	took := f.eventually("the other node answers", func() bool {
		got := f.who("10.0.0.40")
		if got == "" {
			silent++
		}
		return got == other
	})
	t.Logf("moved after %v, %d questions unanswered", took.Round(time.Millisecond), silent)
	if silent > 1 {
		t.Errorf("%d questions were not answered while the address moved", silent)
	}
	f.exactlyOne(t, "10.0.0.40", other)
}

// silentDeath unplugs the owner without a loss of carrier, and plugs it in again.
func (f *fleet) silentDeath(t *testing.T, address string) {
	owner := f.who(address)
	sh(t, "ip link set p"+owner+" nomaster")
	took := f.eventually("somebody else answers", func() bool { n := f.who(address); return n != "" && n != owner })
	successor := f.who(address)
	t.Logf("%s took over from %s after %v (profile %s)", successor, owner, took.Round(time.Millisecond), f.profile)
	all := f.owners()
	sh(t, "ip link set p"+owner+" master lan")
	time.Sleep(2 * time.Second)
	for range 20 {
		if n := f.who(address); n != successor && n != "" {
			t.Errorf("after the return %q answers, not %s", n, successor)
		}
	}
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(all) {
		t.Errorf("the return moved addresses: %v, then %v", all, after)
	}
}

func (f *fleet) killed(t *testing.T) {
	owner := f.who("10.0.0.50")
	h := f.hosts[owner]
	_ = h.cmd.Process.Kill()
	took := f.eventually("somebody else answers", func() bool { n := f.who("10.0.0.50"); return n != "" && n != owner })
	t.Logf("%s took over from the killed %s after %v", f.who("10.0.0.50"), owner, took.Round(time.Millisecond))
	_ = h.cmd.Wait()
	f.start(h.index)
	time.Sleep(2500 * time.Millisecond) // it comes back, and takes nothing
	if again := f.who("10.0.0.50"); again == owner {
		t.Errorf("%s took its address back", owner)
	}
}

func (f *fleet) polite(t *testing.T) {
	owner := f.who("10.0.0.50")
	h := f.hosts[owner]
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.cmd.Wait() }()
	asked, silent := 0, 0
	began := time.Now()
	for len(ended) == 0 && time.Since(began) < 10*time.Second {
		asked++
		if f.who("10.0.0.50") == "" {
			silent++
		}
	}
	t.Logf("%s ended after %v; %d of %d questions unanswered", owner, time.Since(began).Round(time.Millisecond), silent, asked)
	if err := <-ended; err != nil {
		t.Errorf("the speaker ended with %v", err)
	}
	if now := f.who("10.0.0.50"); silent > 0 || now == "" || now == owner {
		t.Errorf("answered by %q in the end", now)
	}
}
