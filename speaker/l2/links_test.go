package l2

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"quayside.io/test/netns"
)

func TestInterfacesAreFollowed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	newLAN(t)
	a := startAnnouncer(t)
	run(t, "ip", "addr", "add", "10.0.0.1/24", "dev", "lan0")
	run(t, "ip", "route", "add", "10.9.0.0/16", "dev", "lan0")
	run(t, "ip", "route", "add", "default", "via", "10.0.0.254")
	run(t, "ip", "route", "add", "10.8.0.0/16", "nexthop", "via", "10.0.0.252", "nexthop", "via", "10.0.0.253")
	run(t, "ip", "route", "add", "10.7.0.0/16", "via", "inet6", "fe80::7", "dev", "lan0")
	run(t, "ip", "link", "add", "veth77", "type", "veth", "peer", "name", "br-port")
	run(t, "ip", "link", "add", "br0", "type", "bridge")
	run(t, "ip", "link", "set", "br-port", "master", "br0")
	eventually(t, "addresses, routes and gateways are known", func() bool {
		i, _ := a.sees("lan0")
		return fmt.Sprint(i.Prefixes, i.Routes, i.Gateways) == "[10.0.0.1/24] [10.9.0.0/16] [10.0.0.252 10.0.0.253 10.0.0.254 fe80::7]"
	})
	eventually(t, "the bridge is one of them, and its port, which was seen before it was one, is not", func() bool {
		_, bridge := a.sees("br0")
		_, port := a.sees("br-port")
		return bridge && !port
	})
	for _, name := range []string{"lo", "veth77"} {
		if i, ok := a.sees(name); ok {
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
	eventually(t, "an interface that went is gone", func() bool { _, ok := a.sees("br0"); return !ok && !a.metrics.has("br0") })
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
