package l2

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Whatever becomes of an interface, the one that is there answers for itself,
// has joined the groups, and nothing is left of those that were.
func TestInterfacesChurn(t *testing.T) {
	if !inNamespace(t, "arping", "ndisc6") {
		return
	}
	l, a := onLAN(t)
	a.Set(wantEverywhere(vip4, vip6))
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	answers := func(name string) bool {
		ask := l.command("sh", "-c", "arping -r -c 1 -w 1 -i eth0 "+vip4.String()+"; ndisc6 -1 -q -r 1 -w 200 "+vip6.String()+" eth0")
		out, _ := ask.Output() // no answer is an answer
		mac := a.mac(name)
		return mac != "" && strings.Count(strings.ToLower(string(out)), mac) == 2 &&
			strings.Contains(run(t, "ip", "-6", "maddr", "show", "dev", name), "ff02::1:ff00:50")
	}
	link := func(words ...string) { t.Helper(); run(t, append([]string{"ip", "link"}, words...)...) }
	eventually(t, "it answers", func() bool { return answers("lan0") })
	before := files()
	for _, c := range []struct {
		what, name string
		churn      func()
	}{
		{"flaps", "lan0", func() {
			for i := range 20 {
				link("set", "lan0", "down")
				time.Sleep(time.Duration(i%7) * 3 * time.Millisecond)
				link("set", "lan0", "up")
				time.Sleep(time.Duration(i%11) * 5 * time.Millisecond)
			}
		}},
		{"another name", "lan9", func() {
			link("set", "lan0", "down")
			link("set", "lan0", "name", "lan9", "up")
		}},
		{"other MACs while it is up", "lan9", func() {
			for _, last := range []string{"11", "12", "13"} {
				link("set", "lan9", "address", "02:00:00:00:00:"+last)
			}
		}},
		{"made anew with its name and MAC", "lan9", func() {
			mac := a.mac("lan9")
			link("del", "lan9")
			link("add", "lan9", "up", "address", mac, "type", "veth", "peer", "name", "eth0", "netns", l.neighbour)
			l.run("sh", "-ec", "ip link set eth0 up; ip addr add 10.0.0.9/24 dev eth0; ip addr add 2001:db8::9/64 dev eth0 nodad")
		}},
		{"the port of a bridge", "br9", func() {
			link("add", "br9", "up", "type", "bridge")
			link("set", "lan9", "master", "br9")
		}},
		{"no port any more", "lan9", func() { link("del", "br9") }},
	} {
		c.churn()
		eventually(t, c.what+": it answers", func() bool { return answers(c.name) })
		eventually(t, c.what+": nothing is left open", func() bool { return files() <= before })
		if failures := a.Failures(); len(failures) > 0 {
			t.Errorf("%s: %q", c.what, failures)
		}
	}
}
