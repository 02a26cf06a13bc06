package l2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/test/busy"
)

// The burst as the neighbour captures it: five times both forms of ARP and an
// advertisement, over two and a half seconds, and then nothing until the beat.
func TestTheBurstOnTheWire(t *testing.T) {
	if !inNamespace(t, "tcpdump") {
		return
	}
	l, a := onLAN(t)
	captured := l.capture("arp or icmp6[0] == 136")
	standstill, began := busy.Standstill(t), time.Now()
	a.Set(wantAddresses(vip4, vip6))
	time.Sleep(time.Second)
	a.Set(wantAddresses(vip4, vip6)) // saying it again must not begin the burst again
	eventually(t, "all of it was sent", func() bool {
		return a.metrics.of("lan0", "ipv4").gratuitous.Load() >= uint64(2*len(burst())) && a.metrics.of("lan0", "ipv6").gratuitous.Load() >= uint64(len(burst()))
	})
	time.Sleep(time.Second) // what comes then is too much
	frames, counts := captured(), map[string]int{}
	var last float64
	for _, line := range strings.Split(frames, "\n") {
		var at float64
		if _, err := fmt.Sscan(line, &at); err != nil {
			continue
		}
		for _, form := range []string{"Request who-has " + vip4.String(), "Reply " + vip4.String(), "neighbor advertisement, tgt is " + vip6.String()} {
			if strings.Contains(line, form) {
				counts[form]++
				last = at
			}
		}
	}
	for form, n := range counts {
		if n != len(burst()) {
			t.Errorf("%q was sent %d times", form, n)
		}
	}
	if len(counts) != 3 {
		t.Fatalf("captured\n%s", frames)
	}
	// On a busy machine the first may be late, for want of a socket: the others
	// do not wait for it.
	ends := burst()[len(burst())-1].Seconds()
	if took := last - float64(began.UnixMicro())/1e6; took < ends || took > ends+1.5+standstill().Seconds() {
		t.Errorf("the burst took %.1f s", took)
	}
}

func TestStrangersAreToldAndAnswered(t *testing.T) {
	if !inNamespace(t, "arping") {
		return
	}
	l, a := onLAN(t)
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
	case <-time.After(30 * time.Second):
		t.Fatal("nobody told of the stranger")
	}
	if n := said() - burstIn; n != 2 {
		t.Errorf("the address was defended with %d frames, want one of each form", n)
	}
}
