package l2

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/speaker/announce"
	"quayside.io/test/netns"
)

// inNamespace runs the calling test in a network of its own; see netns.Inside.
// Tests that have one do not wait for each other, and leave nothing running.
func inNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	if !netns.IsInside(t) { // goleak inside would find the one that waits
		t.Parallel()
	}
	if !netns.Inside(t, time.Minute, programs...) {
		return false
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // the first of all cleanups, so the last to run
	return true
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	return output(t, exec.Command(argv[0], argv[1:]...))
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// lan is a cable between this namespace (interface lan0, no IPv4 address) and
// a neighbour with a kernel of ordinary habits.
type lan struct {
	t         *testing.T
	neighbour string // a process in whose namespace it lives
}

func newLAN(t *testing.T) *lan { return newCable(t, "lan0") }

// newCable is newLAN with another name for our end.
func newCable(t *testing.T, name string) *lan {
	holder := exec.Command("sleep", "60")
	holder.SysProcAttr = netns.Own()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	l := &lan{t, strconv.Itoa(holder.Process.Pid)}
	run(t, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", l.neighbour)
	run(t, "ip", "link", "set", name, "up")
	l.run("ip", "link", "set", "lo", "up")
	l.run("ip", "addr", "add", "10.0.0.9/24", "dev", "eth0")
	l.run("ip", "addr", "add", "2001:db8::9/64", "dev", "eth0", "nodad")
	l.run("ip", "link", "set", "eth0", "up")
	// The kernel notes a new carrier in its own time, and until then the
	// neighbour has no way for a multicast.
	eventually(t, "the neighbour can ask", func() bool {
		return strings.Contains(l.run("ip", "-6", "route", "show", "table", "local", "dev", "eth0"), "multicast ff00::/8")
	})
	return l
}

// run runs a program at the neighbour.
func (l *lan) run(argv ...string) string {
	l.t.Helper()
	return output(l.t, l.command(argv...))
}

func (l *lan) command(argv ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", l.neighbour, "-n"}, argv...)...)
}

// try runs a program at the neighbour that may fail.
func (l *lan) try(argv ...string) error { return l.command(argv...).Run() }

// capture captures what the neighbour sees, a line each, until it is asked for.
func (l *lan) capture(what string) (captured func() string) {
	l.t.Helper()
	dump := l.command("tcpdump", "-i", "eth0", "-nn", "-tt", "-l", "--immediate-mode", what)
	var out bytes.Buffer
	dump.Stdout = &out
	says, err := dump.StderrPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		l.t.Fatal(err)
	}
	for said := bufio.NewScanner(says); said.Scan() && !strings.Contains(said.Text(), "listening on"); {
	}
	return func() string {
		l.t.Helper()
		if err := dump.Process.Signal(syscall.SIGTERM); err != nil {
			l.t.Fatal(err)
		}
		_ = dump.Wait()
		return out.String()
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func startAnnouncer(t *testing.T) *Announcer {
	t.Helper()
	var log bytes.Buffer
	a := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Registerer: prometheus.NewRegistry(), Beat: time.Minute})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Log(log.String())
		}
	})
	<-a.Ready()
	return a
}

// onLAN begins most tests: an announcer on a cable to a neighbour.
func onLAN(t *testing.T) (*lan, *Announcer) {
	t.Helper()
	l, a := newLAN(t), startAnnouncer(t)
	a.awaitLAN(t)
	return l, a
}

func (a *Announcer) awaitLAN(t *testing.T) {
	t.Helper()
	eventually(t, "lan0 is up", func() bool { i, _ := a.sees("lan0"); return i.Up })
}

// sees is what the announcer says of an interface.
func (a *Announcer) sees(name string) (i announce.Interface, ok bool) {
	for _, i := range a.Interfaces() {
		if i.Name == name {
			return i, true
		}
	}
	return announce.Interface{}, false
}

func (a *Announcer) mac(name string) string { i, _ := a.sees(name); return i.MAC }

// wantAddresses wants them on lan0, wantEverywhere on every interface.
func wantAddresses(addresses ...netip.Addr) *Want { return wantOn([]string{"lan0"}, addresses) }

func wantEverywhere(addresses ...netip.Addr) *Want { return wantOn(nil, addresses) }

func wantOn(interfaces []string, addresses []netip.Addr) *Want {
	w := &Want{Addresses: map[netip.Addr]Announcement{}}
	for _, a := range addresses {
		w.Addresses[a] = Announcement{Interfaces: interfaces}
	}
	return w
}

func TestAnswersOnARealLAN(t *testing.T) {
	if !inNamespace(t, "arping", "ndisc6") {
		return
	}
	l, a := onLAN(t)
	a.Set(wantAddresses(vip4, vip6))
	eventually(t, "announced", func() bool { return a.metrics.of("lan0", "ipv6").gratuitous.Load() > 0 })

	if out := l.run("arping", "-c", "2", "-w", "3", "-i", "eth0", vip4.String()); !strings.Contains(strings.ToLower(out), a.mac("lan0")) {
		t.Errorf("arping:\n%s", out)
	}
	// A probe of duplicate detection must learn that the address is taken.
	if out := l.run("arping", "-0", "-c", "1", "-w", "2", "-i", "eth0", vip4.String()); !strings.Contains(strings.ToLower(out), a.mac("lan0")) {
		t.Errorf("arping -0:\n%s", out)
	}
	if out := l.run("ndisc6", "-1", vip6.String(), "eth0"); !strings.Contains(strings.ToLower(out), a.mac("lan0")) {
		t.Errorf("ndisc6:\n%s", out)
	}
	l.run("ip", "addr", "add", vip6.String()+"/64", "dev", "eth0")
	eventually(t, "the kernel's own detection finds the duplicate", func() bool {
		return strings.Contains(l.run("ip", "addr", "show", "dev", "eth0"), "dadfailed")
	})
	l.run("ip", "addr", "del", vip6.String()+"/64", "dev", "eth0")
	// This cable brings what nobody asked for; a network card brings the groups
	// that were joined.
	joined := func() bool {
		return strings.Contains(run(t, "ip", "-6", "maddr", "show", "dev", "lan0"), "ff02::1:ff00:50")
	}
	if !joined() {
		t.Error("the solicited-node group is not joined")
	}

	a.Set(wantAddresses(vip6))
	eventually(t, "silence about an address that went", func() bool {
		return l.try("arping", "-c", "1", "-w", "1", "-i", "eth0", vip4.String()) != nil
	})

	// A flap, with another MAC afterwards: groups are joined again, and the
	// answer tells the new MAC.
	before := a.metrics.of("lan0", "ipv6").gratuitous.Load()
	run(t, "ip", "link", "set", "lan0", "down")
	run(t, "ip", "link", "set", "lan0", "address", "02:00:00:00:00:77")
	run(t, "ip", "link", "set", "lan0", "up")
	eventually(t, "answers with the new MAC", func() bool {
		out, _ := l.command("ndisc6", "-1", "-r", "1", "-w", "300", vip6.String(), "eth0").CombinedOutput()
		return strings.Contains(string(out), "02:00:00:00:00:77")
	})
	eventually(t, "the group is joined again, and the address announced again", func() bool {
		return joined() && a.metrics.of("lan0", "ipv6").gratuitous.Load() > before
	})
	a.Set(wantAddresses())
	eventually(t, "the group is left with the address", func() bool { return !joined() })
}

func TestEachInterfaceAnswersForItself(t *testing.T) {
	if !inNamespace(t, "arping") {
		return
	}
	first, second := newCable(t, "lan0"), newCable(t, "lan1")
	a := startAnnouncer(t)
	other := vip4.Next()
	want := wantEverywhere(vip4)
	want.Addresses[other] = Announcement{Interfaces: []string{"lan1"}}
	a.Set(want)
	ask := func(l *lan, address netip.Addr) string {
		out, _ := l.command("arping", "-r", "-c", "1", "-w", "1", "-i", "eth0", address.String()).Output() // no answer is an answer
		return strings.ToLower(strings.TrimSpace(string(out)))
	}
	eventually(t, "each cable hears the MAC of its own end", func() bool {
		return ask(first, vip4) == a.mac("lan0") && ask(second, vip4) == a.mac("lan1") && ask(second, other) == a.mac("lan1")
	})
	if got := ask(first, other); got != "" {
		t.Errorf("%s answers on lan0, where it may not", got)
	}
}

// What was awaited is answered at once, also the first address of all, for which
// the kernel must give sockets.
func TestWhatIsAwaitedIsAnswered(t *testing.T) {
	if !inNamespace(t, "arping", "ndisc6") {
		return
	}
	l, a := onLAN(t)
	want := wantEverywhere(vip4, vip6)
	a.Set(want)
	a.Await(want, time.Minute)
	for _, question := range []*exec.Cmd{
		l.command("arping", "-r", "-c", "1", "-W", "5", "-i", "eth0", vip4.String()),
		l.command("ndisc6", "-1", "-q", "-r", "1", "-w", "5000", vip6.String(), "eth0"),
	} {
		if out, err := question.CombinedOutput(); err != nil {
			t.Errorf("%v: the first question has no answer: %s", question.Args, out)
		}
	}
	began := time.Now()
	a.Await(&Want{}, 20*time.Millisecond) // never declared
	if waited := time.Since(began); waited < 20*time.Millisecond {
		t.Errorf("what was not declared is in force after %v", waited)
	}
}

// A VLAN is another LAN: what is asked there is answered by its own interface,
// and a host there that has an address of ours is no stranger to us.
func TestAVLANIsAnotherLAN(t *testing.T) {
	if !inNamespace(t, "arping") {
		return
	}
	l := newLAN(t)
	if out, err := exec.Command("ip", "link", "add", "link", "lan0", "name", "lan0.7", "up", "type", "vlan", "id", "7").CombinedOutput(); err != nil {
		t.Skipf("this kernel has no VLANs: %s", out)
	}
	l.run("ip", "link", "add", "link", "eth0", "name", "eth0.7", "up", "type", "vlan", "id", "7")
	a := startAnnouncer(t)
	a.awaitLAN(t)
	a.Set(wantAddresses(vip4))
	eventually(t, "announced", func() bool { return a.metrics.of("lan0", "ipv4").gratuitous.Load() > 0 })
	l.run("arping", "-c", "1", "-w", "2", "-i", "eth0", vip4.String())
	asked := a.metrics.of("lan0", "ipv4").requests.Load()
	if l.try("arping", "-c", "2", "-w", "1", "-i", "eth0.7", "-S", client.String(), vip4.String()) == nil {
		t.Error("answered in the VLAN")
	}
	if now := a.metrics.of("lan0", "ipv4").requests.Load(); now != asked {
		t.Errorf("lan0 heard %d questions of the VLAN", now-asked)
	}
	_ = l.try("arping", "-U", "-c", "1", "-w", "1", "-i", "eth0.7", "-S", vip4.String(), vip4.String())
	select {
	case c := <-a.Conflicts():
		t.Errorf("a host of the VLAN is told as %+v", c)
	case <-time.After(300 * time.Millisecond):
	}
}
