package l2

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"quayside.io/speaker/announce"
	"quayside.io/test/busy"
	"quayside.io/test/netns"
)

// inNamespace runs the calling test in a network of its own; see netns.Inside.
// Tests that have one do not wait for each other.
func inNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	if !netns.IsInside(t) { // goleak inside would find the one that waits
		t.Parallel()
	}
	return netns.Inside(t, time.Minute, programs...)
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
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
	return run(l.t, l.command(argv...)...)
}

func (l *lan) command(argv ...string) []string {
	return append([]string{"nsenter", "-t", l.neighbour, "-n"}, argv...)
}

// try runs a program at the neighbour that may fail.
func (l *lan) try(argv ...string) error {
	argv = l.command(argv...)
	return exec.Command(argv[0], argv[1:]...).Run()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
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

func wantAddresses(addresses ...netip.Addr) *Want {
	w := &Want{Addresses: map[netip.Addr]Announcement{}}
	for _, a := range addresses {
		w.Addresses[a] = Announcement{Interfaces: []string{"lan0"}}
	}
	return w
}

func (a *Announcer) awaitLAN(t *testing.T) {
	t.Helper()
	eventually(t, "lan0 is up", func() bool {
		return slices.ContainsFunc(a.Interfaces(), func(i announce.Interface) bool { return i.Name == "lan0" && i.Up })
	})
}

func (a *Announcer) mac(name string) string {
	for _, i := range a.Interfaces() {
		if i.Name == name {
			return i.MAC
		}
	}
	return ""
}

func TestAnswersOnARealLAN(t *testing.T) {
	if !inNamespace(t, "arping", "ndisc6") {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	l := newLAN(t)
	a := startAnnouncer(t)
	a.awaitLAN(t)
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
		argv := l.command("ndisc6", "-1", "-r", "1", "-w", "300", vip6.String(), "eth0")
		out, _ := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		return strings.Contains(string(out), "02:00:00:00:00:77")
	})
	eventually(t, "the group is joined again, and the address announced again", func() bool {
		return joined() && a.metrics.of("lan0", "ipv6").gratuitous.Load() > before
	})
	a.Set(wantAddresses())
	eventually(t, "the group is left with the address", func() bool { return !joined() })
}

func TestProbeFindsWhoAnswers(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	l := newLAN(t)
	a := startAnnouncer(t)
	a.awaitLAN(t)
	neighbour4, neighbour6 := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("2001:db8::9")
	questions := []Question{{Address: neighbour4}, {Address: neighbour6}, {Address: vip4}, {Address: vip6, Interfaces: []string{"lan0"}}}
	var found map[netip.Addr]Found
	eventually(t, "the neighbour answers in both families, once its kernel is ready", func() bool {
		began := time.Now()
		var err error
		if found, err = a.Probe(t.Context(), questions, Takeover()); err != nil {
			t.Fatal(err)
		}
		t.Logf("probe took %v", time.Since(began).Round(time.Millisecond))
		return len(found) == 2
	})
	links := l.run("ip", "-o", "link", "show", "eth0")
	for _, n := range []netip.Addr{neighbour4, neighbour6} {
		if f := found[n]; f.Interface != "lan0" || !strings.Contains(links, f.MAC) || f.MAC == "" {
			t.Errorf("%s: found %+v, want the MAC in %s", n, f, links)
		}
	}
	for _, n := range []netip.Addr{vip4, vip6} {
		if f, ok := found[n]; ok {
			t.Errorf("%s: found %+v, but nobody is there", n, f)
		}
	}
}

func TestEachInterfaceAnswersForItself(t *testing.T) {
	if !inNamespace(t, "arping") {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	first, second := newCable(t, "lan0"), newCable(t, "lan1")
	a := startAnnouncer(t)
	other := vip4.Next()
	a.Set(&Want{Addresses: map[netip.Addr]Announcement{vip4: {}, other: {Interfaces: []string{"lan1"}}}})
	ask := func(l *lan, address netip.Addr) string {
		argv := l.command("arping", "-r", "-c", "1", "-w", "1", "-i", "eth0", address.String())
		out, _ := exec.Command(argv[0], argv[1:]...).Output() // no answer is an answer
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
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	l := newLAN(t)
	a := startAnnouncer(t)
	a.awaitLAN(t)
	want := &Want{Addresses: map[netip.Addr]Announcement{vip4: {}, vip6: {}}}
	a.Set(want)
	a.Await(want, time.Minute)
	for _, argv := range [][]string{
		l.command("arping", "-r", "-c", "1", "-w", "1", "-i", "eth0", vip4.String()),
		l.command("ndisc6", "-1", "-q", "-r", "1", "-w", "1000", vip6.String(), "eth0"),
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: the first question has no answer: %s", argv, out)
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
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
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
	if l.try("arping", "-c", "2", "-w", "1", "-i", "eth0.7", vip4.String()) == nil {
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

// The burst as the neighbour captures it: five times both forms of ARP and an
// advertisement, over two and a half seconds, and then nothing until the beat.
func TestTheBurstOnTheWire(t *testing.T) {
	if !inNamespace(t, "tcpdump") {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	l := newLAN(t)
	a := startAnnouncer(t)
	a.awaitLAN(t)
	argv := l.command("timeout", "6", "tcpdump", "-i", "eth0", "-nn", "-tt", "-l", "--immediate-mode", "arp or icmp6[0] == 136")
	dump := exec.Command(argv[0], argv[1:]...)
	var out bytes.Buffer
	dump.Stdout = &out
	says, err := dump.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(says); said.Scan() && !strings.Contains(said.Text(), "listening on"); {
	}
	standstill := busy.Standstill(t)
	a.Set(wantAddresses(vip4, vip6))
	time.Sleep(time.Second)
	a.Set(wantAddresses(vip4, vip6)) // saying it again must not begin the burst again
	_ = dump.Wait()                  // timeout ends it
	counts := map[string]int{}
	var times []float64
	for _, line := range strings.Split(out.String(), "\n") {
		var at float64
		if _, err := fmt.Sscan(line, &at); err != nil {
			continue
		}
		for _, form := range []string{"Request who-has " + vip4.String(), "Reply " + vip4.String(), "neighbor advertisement, tgt is " + vip6.String()} {
			if strings.Contains(line, form) {
				counts[form]++
				times = append(times, at)
			}
		}
	}
	for form, n := range counts {
		if n != len(burst()) {
			t.Errorf("%q was sent %d times", form, n)
		}
	}
	if len(counts) != 3 {
		t.Fatalf("captured\n%s", out.String())
	}
	if took := times[len(times)-1] - times[0]; took < 2.3 || took > 4+standstill().Seconds() {
		t.Errorf("the burst took %.1f s", took)
	}
}

func TestStrangersAreToldAndAnswered(t *testing.T) {
	if !inNamespace(t, "arping") {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	l := newLAN(t)
	a := startAnnouncer(t)
	a.Set(wantAddresses(vip4))
	said := func() uint64 { return a.metrics.of("lan0", "ipv4").gratuitous.Load() }
	burstIn := uint64(2 * len(burst())) // both forms
	eventually(t, "announced", func() bool { return said() == burstIn })
	l.run("ip", "addr", "add", vip4.String()+"/24", "dev", "eth0")
	_ = l.try("arping", "-U", "-c", "1", "-w", "1", "-i", "eth0", "-S", vip4.String(), vip4.String())
	select {
	case c := <-a.Conflicts():
		if c.Address != vip4 || c.Interface != "lan0" || !strings.Contains(l.run("ip", "-o", "link", "show", "eth0"), c.MAC) {
			t.Errorf("conflict %+v", c)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("nobody told of the stranger")
	}
	if n := said() - burstIn; n != 2 {
		t.Errorf("the address was defended with %d frames, want one of each form", n)
	}
}

func TestInterfacesAreFollowed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after the announcer has ended
	newLAN(t)
	a := startAnnouncer(t)
	find := func(name string) (announce.Interface, bool) {
		for _, i := range a.Interfaces() {
			if i.Name == name {
				return i, true
			}
		}
		return announce.Interface{}, false
	}
	run(t, "ip", "addr", "add", "10.0.0.1/24", "dev", "lan0")
	run(t, "ip", "route", "add", "10.9.0.0/16", "dev", "lan0")
	run(t, "ip", "route", "add", "default", "via", "10.0.0.254")
	run(t, "ip", "route", "add", "10.8.0.0/16", "nexthop", "via", "10.0.0.252", "nexthop", "via", "10.0.0.253")
	run(t, "ip", "route", "add", "10.7.0.0/16", "via", "inet6", "fe80::7", "dev", "lan0")
	run(t, "ip", "link", "add", "veth77", "type", "veth", "peer", "name", "br-port")
	run(t, "ip", "link", "add", "br0", "type", "bridge")
	run(t, "ip", "link", "set", "br-port", "master", "br0")
	eventually(t, "addresses, routes and gateways are known", func() bool {
		i, _ := find("lan0")
		return fmt.Sprint(i.Prefixes, i.Routes, i.Gateways) == "[10.0.0.1/24] [10.9.0.0/16] [10.0.0.252 10.0.0.253 10.0.0.254 fe80::7]"
	})
	eventually(t, "the bridge is one of them", func() bool { _, ok := find("br0"); return ok })
	for _, name := range []string{"lo", "veth77", "br-port"} {
		if i, ok := find(name); ok {
			t.Errorf("%+v should not carry announcements", i)
		}
	}
	if h := a.Hazards(); len(h) > 0 {
		t.Errorf("hazards %v", h)
	}
	// kube-proxy makes this interface in IPVS mode; a bridge does as well here.
	run(t, "ip", "link", "add", "kube-ipvs0", "type", "bridge")
	eventually(t, "a kernel that answers for everything is told", func() bool {
		h := a.Hazards()
		return len(h) == 2 && strings.Contains(h[0], "strictARP")
	})
	for _, name := range []string{"br0", "br-port", "veth77"} {
		run(t, "ip", "link", "set", name, "up")
	}
	eventually(t, "the bridge is counted", func() bool { return a.metrics.has("br0") })
	run(t, "ip", "link", "del", "br0")
	eventually(t, "an interface that went is gone", func() bool { _, ok := find("br0"); return !ok && !a.metrics.has("br0") })
}

// BenchmarkReadLinks reads five interfaces of a node with five thousand routes,
// as a node with many pods or many peers has.
func BenchmarkReadLinks(b *testing.B) {
	if lacks := netns.Lacks("ip"); lacks != "" {
		b.Skipf("needs %s", lacks)
	}
	runtime.LockOSThread() // and never unlocked: the thread and its network end with this
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		b.Fatal(err)
	}
	var batch strings.Builder
	for i := range 5 {
		fmt.Fprintf(&batch, "link add lan%[1]d up type bridge\naddr add 10.%[1]d.0.1/16 dev lan%[1]d\n", i)
	}
	for i := range 5000 {
		fmt.Fprintf(&batch, "route add 10.100.%d.%d via 10.0.0.%d\n", i/250, i%250, 2+i%250)
	}
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for b.Loop() {
		if links, err := readLinks(); err != nil || len(links) != 5 {
			b.Fatal(len(links), err)
		}
	}
}

// has reports whether an interface has series.
func (m *metrics) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counters[[2]string{name, "ipv4"}] != nil
}

// A host that boots asks whether anybody has its address (RFC 4862 5.4). A node
// that asks for it at that moment, as a sign of life, must not be taken for
// somebody who wants it, too.
func TestAskingForAHostTakesNothingFromIt(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := newLAN(t)
	run(t, "ip", "addr", "add", "10.0.0.1/24", "dev", "lan0")
	run(t, "ip", "addr", "add", "2001:db8::1/64", "dev", "lan0", "nodad")
	a := startAnnouncer(t)
	a.awaitLAN(t)
	eventually(t, "the addresses of lan0 are known", func() bool {
		return slices.ContainsFunc(a.Interfaces(), func(i announce.Interface) bool { return i.Name == "lan0" && len(i.Prefixes) == 2 })
	})
	hosts := []Question{
		{Address: netip.MustParseAddr("2001:db8::77"), Host: true},
		{Address: netip.MustParseAddr("10.0.0.9"), Host: true},
	}
	l.run("ip", "addr", "add", "2001:db8::77/64", "dev", "eth0")
	for began := time.Now(); time.Since(began) < 500*time.Millisecond; {
		if _, err := a.Probe(t.Context(), hosts, Takeover()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the host has made up its mind", func() bool {
		return !strings.Contains(strings.ReplaceAll(l.run("ip", "-6", "addr", "show", "dev", "eth0"), "dadfailed tentative", ""), "tentative")
	})
	if s := l.run("ip", "-6", "addr", "show", "dev", "eth0"); strings.Contains(s, "dadfailed") {
		t.Errorf("the host has given its address up:\n%s", s)
	}
	found, err := a.Probe(t.Context(), hosts, Takeover())
	if err != nil || len(found) != len(hosts) {
		t.Errorf("answers of %v, %v; want both", found, err)
	}
}
