package speaker

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quayside.io/speaker/l2"
	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// inside runs the calling test in a network of its own; see netns.Inside.
func inside(t *testing.T, programs ...string) bool {
	t.Helper()
	return netns.Inside(t, 15*time.Minute, programs...)
}

// fleet is a LAN with nodes and, in this process, a client.
type fleet struct {
	t       *testing.T
	nodes   int
	profile string
	many    bool
	apart   bool // gossip is on a network of its own, the bridge mgmt
	key     string
	hosts   map[string]*host
	local   string        // nodes with endpoints of the Service at objects.VIPLocal
	ask     *l2.Announcer // only its Probe is used
	mu      sync.Mutex
	log     bytes.Buffer
}

// host is a node on the bridge.
type host struct {
	t     *testing.T
	name  string
	index int
	cmd   *exec.Cmd
	in    io.WriteCloser
	mac   string
	ready chan struct{} // closed when the speaker works
	ended chan error    // receives what the process ended with
	said  chan string   // receives what else it says
}

// newFleet makes the LAN; its nodes are started one by one, or all by startAll.
func newFleet(t *testing.T, nodes int) *fleet {
	f := &fleet{t: t, nodes: nodes, profile: "fast", key: filepath.Join(t.TempDir(), "key"), hosts: map[string]*host{}, local: "n1 n2", ask: l2.New(l2.Options{Log: slog.New(slog.DiscardHandler)})}
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
	// With a MAC of its own: a bridge has the lowest of its ports otherwise, and
	// whoever asks while a node comes or goes misses what is sent to the old one.
	netns.Sh(t, "ip link add lan address 02:00:00:00:00:c8 type bridge; ip link set lan up; ip addr add 10.0.0.200/24 dev lan")
	return f
}

// Write collects what the nodes log.
func (f *fleet) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(b)
}

// hasLogged reports whether one line has all words.
func (f *fleet) hasLogged(words ...string) bool { return f.logged(words...) > 0 }

// logged is how many lines have all words.
func (f *fleet) logged(words ...string) (lines int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range strings.Split(f.log.String(), "\n") {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			lines++
		}
	}
	return lines
}

func (f *fleet) startAll() {
	f.t.Helper()
	for i := range f.nodes {
		f.start(i + 1)
	}
}

// start boots a node: the process first, then its cable.
func (f *fleet) start(i int) *host {
	f.t.Helper()
	h := &host{t: f.t, name: fmt.Sprintf("n%d", i), index: i, ready: make(chan struct{}), ended: make(chan error, 1), said: make(chan string, 1)}
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestOneNode$", "-test.timeout=15m")
	h.cmd.Env = append(os.Environ(), nodeEnv+"="+h.name, nodesEnv+"="+strconv.Itoa(f.nodes), keyEnv+"="+f.key, profEnv+"="+f.profile, manyEnv+"="+strconv.FormatBool(f.many))
	h.cmd.SysProcAttr = netns.Own()
	h.cmd.Stderr = f
	in, err := h.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	h.in = in
	if err := h.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch text := lines.Text(); {
			case text == "ready":
				close(h.ready)
			case strings.HasPrefix(text, "{"):
				h.said <- text
			}
		}
		h.ended <- h.cmd.Wait()
	}()
	f.t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	netns.Sh(f.t, fmt.Sprintf("ip link del p%[1]s 2>/dev/null || true; ip link add p%[1]s type veth peer name eth0 netns %[2]d; ip link set p%[1]s master lan up", h.name, h.cmd.Process.Pid))
	on4 := fmt.Sprintf("10.0.0.%d/16", i)
	if f.apart {
		on4 = fmt.Sprintf("10.0.0.%d/24", 20+i)
		netns.Sh(f.t, fmt.Sprintf("ip link add m%[1]s type veth peer name mgmt0 netns %[2]d; ip link set m%[1]s master mgmt up", h.name, h.cmd.Process.Pid))
		h.run(fmt.Sprintf("ip addr add 10.0.0.%d/28 dev mgmt0; ip link set mgmt0 up", i))
	}
	h.run(fmt.Sprintf("ip link set lo up; ip addr add %s dev eth0; ip addr add 2001:db8:0:1::%d/64 dev eth0 nodad; ip link set eth0 up", on4, i))
	h.mac = netns.MAC(f.t, h.enter(), "eth0")
	f.hosts[h.name] = h
	h.tell("local " + f.local)
	return h
}

func (h *host) enter() string { return fmt.Sprintf("nsenter -t %d -n ", h.cmd.Process.Pid) }

func (h *host) run(command string) string {
	h.t.Helper()
	return netns.Sh(h.t, h.enter()+"sh -ec "+strconv.Quote(command))
}

// tell writes to the input of a node; see TestOneNode.
func (h *host) tell(line string) {
	h.t.Helper()
	if _, err := fmt.Fprintln(h.in, line); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) signal(s syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// cable moves the node's end of the cable: "nomaster", "master lan", "up", "down".
func (h *host) cable(state string) {
	h.t.Helper()
	netns.Sh(h.t, "ip link set p"+h.name+" "+state)
}

// answerWithin is how long who waits for an answer.
const answerWithin = 300 * time.Millisecond

// who asks the LAN for an address, and once more at half of that time: the node that
// answers first, the MAC of a stranger, or "". On a busy machine even a kernel
// may take that long.
func (f *fleet) who(address string) string {
	f.t.Helper()
	return f.whoOn(address, "lan")
}

func (f *fleet) whoOn(address, link string) string {
	f.t.Helper()
	a := netip.MustParseAddr(address)
	found, err := f.ask.Probe(f.t.Context(), []l2.Question{{Address: a, Interfaces: []string{link}}}, l2.Timing{Times: 2, Every: answerWithin / 2})
	if err != nil {
		f.t.Logf("%s: nobody could be asked for %s: %v", time.Now().UTC().Format("15:04:05.000"), address, err)
		return ""
	}
	for _, h := range f.hosts {
		if h.mac == found[a].MAC {
			return h.name
		}
	}
	return found[a].MAC
}

// owners asks for every vip until all are answered for by nodes.
func (f *fleet) owners() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	f.eventually("every address is answered for", func() bool {
		for i := range objects.Services {
			a := objects.VIP(i)
			if out[a] = f.who(a); f.hosts[out[a]] == nil {
				return false
			}
		}
		return true
	})
	return out
}

// stillOwned fails the test where an address has another owner than before, or
// none: where nobody answers once, he is asked again.
func (f *fleet) stillOwned(before map[string]string) {
	f.t.Helper()
	for a, owner := range before {
		got := f.who(a)
		if got == "" {
			got = f.who(a)
		}
		if got != owner {
			f.t.Fatalf("%s was answered for by %s, and is by %q", a, owner, got)
		}
	}
}

// owner is the node that answers for address.
func (f *fleet) owner(address string) *host {
	f.t.Helper()
	h := f.hosts[f.who(address)]
	if h == nil {
		f.t.Fatalf("no node answers for %s", address)
	}
	return h
}

// answerers are the nodes that answer to a few broadcast questions.
func (f *fleet) answerers(address string) (names []string) {
	out, _ := exec.Command("sh", "-c", "arping -c 5 -W 0.02 -i lan "+address).CombinedOutput()
	for name, h := range f.hosts {
		if strings.Contains(strings.ToLower(string(out)), h.mac) {
			names = append(names, name)
		}
	}
	return names
}

// exactlyOne asks a hundred times: nobody but the owner may answer. A busy
// machine makes arping miss answers.
func (f *fleet) exactlyOne(t *testing.T, address, owner string) {
	t.Helper()
	out := strings.ToLower(netns.Sh(t, "arping -c 100 -W 0.01 -i lan "+address))
	for name, h := range f.hosts {
		if n := strings.Count(out, h.mac); name == owner && n < 50 || name != owner && n != 0 {
			t.Errorf("%s answered %d of 100 questions, owner is %s", name, n, owner)
		}
	}
}

// oneForEach waits until exactly one node answers for each VIP.
func (f *fleet) oneForEach() {
	f.t.Helper()
	f.eventually("one answers for each address", func() bool {
		var asking sync.WaitGroup
		var alone atomic.Int32
		for i := range objects.Services {
			asking.Go(func() {
				if len(f.answerers(objects.VIP(i))) == 1 {
					alone.Add(1)
				}
			})
		}
		asking.Wait()
		return alone.Load() == objects.Services
	})
}

// meet waits until every node counts every other among the members, by what each has
// logged of it last.
func (f *fleet) meet() {
	f.t.Helper()
	f.eventually("every node knows that every other lives", func() bool {
		time.Sleep(10 * time.Millisecond)
		lives := map[string]bool{}
		for _, line := range strings.Split(f.text(), "\n") {
			if joined := strings.Contains(line, `msg="member lives"`); joined || strings.Contains(line, `msg="member is gone"`) {
				_, who, _ := strings.Cut(line, " me=")
				me, rest, _ := strings.Cut(who, " node=")
				node, _, _ := strings.Cut(rest, " ")
				lives[me+" "+node] = joined
			}
		}
		for me := range f.hosts {
			for node := range f.hosts {
				if !lives[me+" "+node] {
					return false
				}
			}
		}
		return true
	})
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

// witness asks for addresses of both families, over and over.
type witness struct {
	fleet         *fleet
	asked, silent int
}

// look asks once for each address and reports whether anybody answered.
func (w *witness) look() {
	for _, a := range []string{objects.VIP(0), objects.VIP6} {
		w.asked++
		if began := time.Now(); w.fleet.who(a) == "" {
			w.fleet.t.Logf("%s: %s had no answer for %v", began.UTC().Format("15:04:05.000"), a, time.Since(began))
			w.silent++
		}
	}
}

// until looks until done is closed, and no longer than that.
func (w *witness) until(done <-chan struct{}, bound time.Duration) {
	w.fleet.t.Helper()
	for began := time.Now(); time.Since(began) < bound; {
		select {
		case <-done:
			return
		default:
			w.look()
		}
	}
	w.fleet.t.Fatalf("not done within %v", bound)
}

// count is how many addresses each node has.
func count(owners map[string]string) map[string]int {
	out := map[string]int{}
	for _, n := range owners {
		out[n]++
	}
	return out
}
