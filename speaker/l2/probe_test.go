package l2

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestProbeFindsWhoAnswers(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l, a := onLAN(t)
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
		if f := found[n]; f.Interface != "lan0" || !strings.Contains(links, f.MAC) || f.MAC == "" || f.Answered != n.Is4() {
			t.Errorf("%s: found %+v, want the MAC in %s, and in IPv4 an answer (in IPv6 all nodes get it)", n, f, links)
		}
	}
	for _, n := range []netip.Addr{vip4, vip6} {
		if f, ok := found[n]; ok {
			t.Errorf("%s: found %+v, but nobody is there", n, f)
		}
	}
}

// Of two that answer, all who talk to one are turned to the other if they hear it.
// The answer to whoever asks for what is held is for him alone, but a first claim
// is a probe, and its answer is for everybody.
func TestAskingForWhatIsHeldTurnsNobody(t *testing.T) {
	if !inNamespace(t, "tcpdump") {
		return
	}
	l, a := onLAN(t)
	run(t, "ip", "addr", "add", "2001:db8::1/64", "dev", "lan0", "nodad")
	l.run("ip", "addr", "add", vip6.String()+"/64", "dev", "eth0", "nodad")
	eventually(t, "the address of lan0 is known", func() bool {
		i, _ := a.sees("lan0")
		return len(i.Prefixes) == 1
	})
	for held, all := range map[bool]bool{true: false, false: true} {
		captured := l.capture("icmp6[0] == 136")
		eventually(t, "somebody answers", func() bool {
			found, err := a.Probe(t.Context(), []Question{{Address: vip6, Held: held}}, Takeover())
			return err == nil && len(found) == 1 && found[vip6].Answered == held
		})
		time.Sleep(100 * time.Millisecond) // until tcpdump has it
		frames := captured()
		if !strings.Contains(frames, "tgt is "+vip6.String()) || strings.Contains(frames, "> ff02::1:") != all {
			t.Errorf("held %v: captured\n%s", held, frames)
		}
	}
}

// A host that boots asks whether anybody has its address (RFC 4862 5.4). A node
// that asks for it at that moment, as a sign of life, must not be taken for
// somebody who wants it, too.
func TestAskingForAHostTakesNothingFromIt(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l, a := onLAN(t)
	run(t, "ip", "addr", "add", "10.0.0.1/24", "dev", "lan0")
	run(t, "ip", "addr", "add", "2001:db8::1/64", "dev", "lan0", "nodad")
	eventually(t, "the addresses of lan0 are known", func() bool {
		i, _ := a.sees("lan0")
		return len(i.Prefixes) == 2
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
	eventually(t, "both answer", func() bool {
		found, err := a.Probe(t.Context(), hosts, Takeover())
		return err == nil && len(found) == len(hosts)
	})
}

// Addresses by DHCPv6 have no subnet of their own, and some of IPv4 have none,
// either: a route says who is on the link, and can be asked for.
func TestAHostIsAskedForWhereOnlyARouteSaysThatItIsThere(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	_, a := onLAN(t)
	for address, subnet := range map[string]string{"10.0.0.1/32": "10.0.0.0/24", "2001:db8::1/128": "2001:db8::/64"} {
		run(t, "ip", "addr", "add", address, "dev", "lan0", "nodad")
		run(t, "ip", "route", "add", subnet, "dev", "lan0")
	}
	hosts := []Question{
		{Address: netip.MustParseAddr("10.0.0.9"), Host: true},
		{Address: netip.MustParseAddr("2001:db8::9"), Host: true},
	}
	eventually(t, "both are heard", func() bool {
		found, err := a.Probe(t.Context(), hosts, Takeover())
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == len(hosts)
	})
	// The route says nothing of oneself, nor of the other family.
	self := Question{Address: netip.MustParseAddr("10.0.0.1"), Host: true}
	if _, err := a.Probe(t.Context(), []Question{self}, Takeover()); err == nil {
		t.Error("it asks for itself")
	}
}
