package l2

import (
	"strings"
	"testing"
)

// A node that takes an address over may remember the dead one's MAC for it. What comes
// for the address and belongs to no connection that kube-proxy knows, such as the end
// of one to the dead node, its kernel sends back to the LAN, and tells the client by a
// redirect where it would have gone: to that MAC (RFC 4861 8.2). The client then forgets
// what the announcement said.
func TestTheKernelSendsNobodyToTheDead(t *testing.T) {
	if !inNamespace(t, "tcpdump", "timeout", "bash") {
		return
	}
	l, a := onLAN(t)
	run(t, "ip", "addr", "add", "2001:db8::1/64", "dev", "lan0", "nodad")
	run(t, "sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1")
	run(t, "ip", "neigh", "replace", vip6.String(), "lladdr", "02:00:00:00:de:ad", "dev", "lan0", "nud", "stale")
	eventually(t, "lan0 may speak for itself", func() bool {
		own := run(t, "ip", "-6", "addr", "show", "dev", "lan0", "scope", "link")
		return strings.Contains(own, "fe80::") && !strings.Contains(own, "tentative")
	})
	a.Set(wantAddresses(vip6))
	eventually(t, "announced for the last time in a while", func() bool {
		return a.metrics.of("lan0", "ipv6").gratuitous.Load() >= uint64(len(burst()))
	})
	captured := l.capture("icmp6[0] == 137")
	_ = l.try("timeout", "0.5", "bash", "-c", "exec 3<>/dev/tcp/"+vip6.String()+"/80") // nothing is behind it
	if redirects := captured(); !strings.Contains(redirects, "redirect") {
		t.Fatalf("the kernel redirected nobody, so this test shows nothing: %q", redirects)
	}
	if known := l.run("ip", "neigh", "show", vip6.String()); !strings.Contains(known, a.mac("lan0")) {
		t.Errorf("the client was told that the address is at %q, want %s", known, a.mac("lan0"))
	}
}
