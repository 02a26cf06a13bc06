package bfd

import (
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/speaker/bfd/session"
	"quayside.io/test/netns"
)

const frrDaemons = "/usr/lib/frr"

// inNamespace runs the calling test in a network of its own, beside those of
// other tests; see netns.Inside.
func inNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	if !netns.IsInside(t) {
		t.Parallel()
	}
	return netns.Inside(t, 2*time.Minute, append(programs, "chrt")...)
}

// neighbor is a machine at the other end of a cable, whose end here is lan0 and
// there eth0.
type neighbor struct {
	t   *testing.T
	pid string // of a process in its namespace
	dir string
}

// connect makes a neighbor, and gives both ends addresses.
//
// It and we run before anything else: who is starved for 150 ms is silent, and
// rightly found to be.
func connect(t *testing.T) *neighbor {
	t.Helper()
	netns.Sh(t, "chrt -f -a -p 10 "+strconv.Itoa(os.Getpid()))
	n := newMachine(t)
	netns.Sh(t, "ip link set lo up; ip link add lan0 type veth peer name eth0 netns "+n.pid)
	netns.Sh(t, "ip addr add 10.0.0.1/24 dev lan0; ip addr add 2001:db8::1/64 dev lan0 nodad; ip link set lan0 up")
	n.sh("ip link set lo up; ip addr add 10.0.0.9/24 dev eth0; ip addr add 2001:db8::9/64 dev eth0 nodad; ip link set eth0 up")
	eventually(t, "both have link-local addresses", func() bool {
		return linkLocal(netns.Sh(t, "ip -6 -o addr show dev lan0 -tentative")) != "" && linkLocal(n.sh("ip -6 -o addr show dev eth0 -tentative")) != ""
	})
	return n
}

func newMachine(t *testing.T) *neighbor {
	t.Helper()
	holder := exec.Command("sleep", "300")
	holder.SysProcAttr = netns.Own()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	n := &neighbor{t: t, pid: strconv.Itoa(holder.Process.Pid), dir: t.TempDir()}
	eventually(t, "the namespace is its own", func() bool {
		return netns.Sh(t, "readlink /proc/self/ns/net") != netns.Sh(t, "readlink /proc/"+n.pid+"/ns/net")
	})
	return n
}

func (n *neighbor) sh(command string) string {
	n.t.Helper()
	return netns.Sh(n.t, "nsenter -t "+n.pid+" -n sh -ec '"+command+"'")
}

func linkLocal(addresses string) string {
	for _, word := range strings.Fields(addresses) {
		if a, ok := strings.CutSuffix(word, "/64"); ok && strings.HasPrefix(a, "fe80:") {
			return a
		}
	}
	return ""
}

// daemon runs a program at the neighbor until the test ends.
func (n *neighbor) daemon(argv ...string) {
	n.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"-t", n.pid, "-n", "chrt", "-f", "10"}, argv...)...)
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s:\n%s", argv[0], log.String())
		}
	})
}

// cut drops every packet at the neighbor, silently, until mend.
func (n *neighbor) cut() {
	n.sh("nft \"table inet cut { chain in { type filter hook input priority 0; policy drop; }; chain out { type filter hook output priority 0; policy drop; }; }\"")
}

func (n *neighbor) mend() { n.sh("nft delete table inet cut") }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// lines are the sessions between two machines on one cable, by name.
func (n *neighbor) lines() map[string]Session {
	n.t.Helper()
	s := Session{Transmit: 50 * ms, Receive: 50 * ms}
	with := func(peer, local, link string, multihop bool) Session {
		s := s
		s.Peer, s.Interface, s.Multihop = netip.MustParseAddr(peer), link, multihop
		if local != "" {
			s.Local = netip.MustParseAddr(local)
		}
		return s
	}
	return map[string]Session{
		"ipv4":          with("10.0.0.9", "", "", false),
		"ipv6":          with("2001:db8::9", "", "lan0", false),
		"link-local":    with(linkLocal(n.sh("ip -6 -o addr show dev eth0"))+"%lan0", "", "", false),
		"ipv4 multihop": with("10.0.0.9", "10.0.0.1", "", true),
		"ipv6 multihop": with("2001:db8::9", "2001:db8::1", "", true),
	}
}

// router is a BFD implementation at the neighbor, with the sessions of lines and
// 50 ms times 3 on each.
type router interface {
	// receive changes the interval at which it wants to hear all sessions.
	receive(ms int)
	// down and up are what its administrator does.
	down()
	up()
	// ended reports that a session is as after down.
	ended(st Status) bool
	// told reports that it knows every session as ended by us, and not as failed.
	told() bool
}

func TestFRR(t *testing.T) {
	if !inNamespace(t, "nft", "vtysh", frrDaemons+"/bfdd") {
		return
	}
	n := connect(t)
	withRouter(t, n, n.lines(), newFRR(n))
}

func TestBIRD(t *testing.T) {
	if !inNamespace(t, "nft", "bird", "birdc") {
		return
	}
	n := connect(t)
	lines := n.lines()
	for name, s := range lines {
		if s.Multihop {
			s.MinimumTTL = 64 // BIRD begins with that
			lines[name] = s
		}
	}
	withRouter(t, n, lines, newBIRD(n))
}

// withRouter holds sessions of every kind with a real router, and takes them
// through what happens to sessions.
func withRouter(t *testing.T, n *neighbor, lines map[string]Session, r router) {
	d := start(t)
	d.Set(&Want{lines})
	all := func(what string, ok func(Status) bool) {
		t.Helper()
		d.await(what, func(states map[string]Status) bool {
			for name := range lines {
				if !ok(states[name]) {
					return false
				}
			}
			return true
		})
	}
	is := func(tx, rx, detection time.Duration) func(Status) bool {
		return func(st Status) bool {
			return st.State == session.Up && st.Remote == session.Up && st.Transmit == tx && st.Receive == rx && st.Detection == detection
		}
	}
	all("up at 50 ms times 3", is(50*ms, 50*ms, 150*ms))
	before := d.State()

	// Timings change on both ends, with nothing going down.
	for name, s := range lines {
		s.Transmit, s.Receive, s.Multiplier = 80*ms, 120*ms, 4
		lines[name] = s
	}
	d.Set(&Want{maps.Clone(lines)})
	all("our new timings", is(80*ms, 120*ms, 360*ms))
	r.receive(100)
	all("its new timings", is(100*ms, 120*ms, 360*ms))
	for name, s := range lines {
		s.Transmit, s.Receive, s.Multiplier = 50*ms, 50*ms, 3
		lines[name] = s
	}
	d.Set(&Want{maps.Clone(lines)})
	r.receive(50)
	all("the old timings again", is(50*ms, 50*ms, 150*ms))
	time.Sleep(500 * ms)
	for name, st := range d.State() {
		if !st.Since.Equal(before[name].Since) {
			t.Errorf("%s went down for a change of timings: %+v", name, st)
		}
	}

	// It dies silently.
	asked := time.Now()
	n.cut()
	cut := time.Now()
	all("silence is noticed", func(st Status) bool { return st.State == session.Down && st.Failures > before["ipv4"].Failures })
	for name, st := range d.State() {
		after, atMost := st.Since.Sub(asked), st.Since.Sub(cut)
		t.Logf("%s: silence noticed %v after the cut began, %v after it was done", name, after, atMost)
		if after < 100*ms || atMost > 150*ms+300*ms || st.Diag != session.DiagExpired.String() || st.Failures != 1 {
			t.Errorf("%s: noticed after %v to %v: %+v", name, atMost, after, st)
		}
	}
	n.mend()
	all("up again", is(50*ms, 50*ms, 150*ms))

	// An administrator ends it there, and here.
	r.down()
	all("ended there", r.ended)
	r.up()
	all("up again", is(50*ms, 50*ms, 150*ms))
	d.Set(&Want{})
	eventually(t, "it knows that we took the sessions down", r.told)
	d.Set(&Want{maps.Clone(lines)})
	all("up once more", is(50*ms, 50*ms, 150*ms))
	d.end()
	eventually(t, "it knows that we ended", r.told)
}

// frr is FRR's bfdd.
type frr struct {
	*neighbor
	peers []string // as its configuration names them
}

func newFRR(n *neighbor) *frr {
	n.t.Helper()
	ours := linkLocal(netns.Sh(n.t, "ip -6 -o addr show dev lan0"))
	its := linkLocal(n.sh("ip -6 -o addr show dev eth0"))
	return n.startFRR(
		"peer 10.0.0.1 interface eth0",
		"peer 2001:db8::1 local-address 2001:db8::9 interface eth0",
		"peer "+ours+" local-address "+its+" interface eth0",
		"peer 10.0.0.1 multihop local-address 10.0.0.9",
		"peer 2001:db8::1 multihop local-address 2001:db8::9",
	)
}

func (n *neighbor) startFRR(peers ...string) *frr {
	n.t.Helper()
	config := "bfd\n"
	for _, p := range peers {
		config += " " + p + "\n  receive-interval 50\n  transmit-interval 50\n"
	}
	// The daemons give up root, and then make their sockets.
	account, err := user.Lookup("frr")
	if err != nil {
		n.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	for _, err := range []error{os.WriteFile(filepath.Join(n.dir, "bfdd.conf"), []byte(config), 0o644),
		os.WriteFile(filepath.Join(n.dir, "zebra.conf"), nil, 0o644), os.Chown(n.dir, uid, -1), os.Chmod(filepath.Dir(n.dir), 0o755)} {
		if err != nil {
			n.t.Fatal(err)
		}
	}
	for _, daemon := range []string{"zebra", "bfdd"} {
		argv := []string{filepath.Join(frrDaemons, daemon), "-f", filepath.Join(n.dir, daemon+".conf"), "-i", filepath.Join(n.dir, daemon+".pid"),
			"--vty_socket", n.dir, "-z", filepath.Join(n.dir, "zserv.api"), "-A", "127.0.0.1", "--log", "stdout"}
		if daemon == "bfdd" {
			argv = append(argv, "--bfdctl", filepath.Join(n.dir, "bfdd.sock"))
		}
		n.daemon(argv...)
		eventually(n.t, daemon+" runs", func() bool { _, err := os.Stat(filepath.Join(n.dir, daemon+".vty")); return err == nil })
	}
	return &frr{n, peers}
}

func (f *frr) vtysh(commands ...string) string {
	f.t.Helper()
	argv := []string{"--vty_socket", f.dir}
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	out, err := exec.Command("vtysh", argv...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("vtysh %q: %v\n%s", commands, err, out)
	}
	return string(out)
}

func (f *frr) each(command string) {
	f.t.Helper()
	for _, p := range f.peers {
		f.vtysh("configure terminal", "bfd", p, command)
	}
}

func (f *frr) receive(ms int) { f.each("receive-interval " + strconv.Itoa(ms)) }
func (f *frr) down()          { f.each("shutdown") }
func (f *frr) up()            { f.each("no shutdown") }

func (f *frr) ended(st Status) bool {
	return st.State == session.Down && st.Remote == session.AdminDown && st.Failures == 1
}

func (f *frr) told() bool {
	var peers []struct {
		Status string `json:"status"`
		Remote string `json:"remote-diagnostic"`
	}
	out := f.vtysh("show bfd peers json")
	if err := json.Unmarshal([]byte(out), &peers); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	told := 0
	for _, p := range peers {
		if p.Status == "down" && p.Remote == "administratively down" {
			told++
		}
	}
	return told == len(f.peers)
}

// bird is BIRD's protocol bfd.
type bird struct{ *neighbor }

func newBIRD(n *neighbor) *bird {
	n.t.Helper()
	b := &bird{n}
	b.configure(50)
	n.daemon("bird", "-f", "-c", filepath.Join(n.dir, "bird.conf"), "-s", filepath.Join(n.dir, "bird.ctl"), "-P", filepath.Join(n.dir, "bird.pid"))
	eventually(n.t, "bird runs", func() bool { _, err := os.Stat(filepath.Join(n.dir, "bird.ctl")); return err == nil })
	return b
}

func (b *bird) configure(receive int) {
	b.t.Helper()
	timers := "min rx interval " + strconv.Itoa(receive) + " ms; min tx interval 50 ms; multiplier 3;"
	config := `router id 10.0.0.9;
protocol device {}
protocol bfd bfd1 {
	interface "*" { ` + timers + ` };
	multihop { ` + timers + ` };
	neighbor 10.0.0.1 dev "eth0" local 10.0.0.9;
	neighbor 2001:db8::1 dev "eth0" local 2001:db8::9;
	neighbor ` + linkLocal(netns.Sh(b.t, "ip -6 -o addr show dev lan0")) + ` dev "eth0" local ` + linkLocal(b.sh("ip -6 -o addr show dev eth0")) + `;
	neighbor 10.0.0.1 local 10.0.0.9 multihop yes;
	neighbor 2001:db8::1 local 2001:db8::9 multihop yes;
}
`
	if err := os.WriteFile(filepath.Join(b.dir, "bird.conf"), []byte(config), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bird) ctl(command string) string {
	b.t.Helper()
	return netns.Sh(b.t, "birdc -s "+filepath.Join(b.dir, "bird.ctl")+" "+command)
}

func (b *bird) receive(ms int) { b.configure(ms); b.ctl("configure") }
func (b *bird) down()          { b.ctl("disable bfd1") }
func (b *bird) up()            { b.ctl("enable bfd1") }

// A protocol that is disabled leaves without a word.
func (b *bird) ended(st Status) bool { return st.State == session.Down && st.Failures == 2 }

// BIRD shows no diagnostics: that it was told, and did not miss us, FRR has to say.
func (b *bird) told() bool { return strings.Count(b.ctl("show bfd sessions"), " Down ") == 5 }
