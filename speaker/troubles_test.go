package speaker

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// TestTroubles is a LAN on which strangers use our addresses.
func TestTroubles(t *testing.T) {
	t.Parallel() // it waits for the stranger to be forgotten
	if !inside(t, "arping") {
		return
	}
	f := newFleet(t, 3)
	stranger := newStranger(t, objects.VIP(11)) // it was there before we were
	f.startAll()
	f.eventually("all other addresses are answered for", func() bool {
		for i := range objects.Services - 1 {
			if f.hosts[f.who(objects.VIP(i))] == nil {
				return false
			}
		}
		return true
	})
	t.Run("a stranger was there first", func(t *testing.T) {
		f.exactlyOne(t, objects.VIP(11), "the stranger")
		if !f.hasLogged("somebody answers for it", objects.VIP(11), stranger.mac) {
			t.Errorf("nobody told of %s", stranger.mac)
		}
	})
	t.Run("a stranger comes later", func(t *testing.T) {
		owner := f.who(objects.VIP(0))
		stranger.run("ip addr add " + objects.VIP(0) + "/24 dev eth0")
		stranger.run("arping -U -c 1 -w 1 -i eth0 -S " + objects.VIP(0) + " " + objects.VIP(0) + " || true")
		f.eventually("it is told", func() bool { return f.hasLogged("a stranger answers for our address", objects.VIP(0), stranger.mac) })
		stranger.run("ip addr del " + objects.VIP(0) + "/24 dev eth0")
		f.exactlyOne(t, objects.VIP(0), owner)
	})
	t.Run("the first stranger goes", func(t *testing.T) {
		stranger.run("ip link set eth0 down")
		took := f.eventually("its address is ours", func() bool { return f.hosts[f.who(objects.VIP(11))] != nil })
		t.Logf("taken %v later", took.Round(time.Millisecond))
	})
}

// stranger is a host on the LAN that is none of ours.
type stranger struct {
	t   *testing.T
	in  string
	mac string
}

func newStranger(t *testing.T, address string) *stranger {
	t.Helper()
	cmd := exec.Command("sleep", "900")
	cmd.SysProcAttr = netns.Own()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &stranger{t: t, in: fmt.Sprintf("nsenter -t %d -n ", cmd.Process.Pid)}
	netns.Sh(t, fmt.Sprintf("ip link add pstranger type veth peer name eth0 netns %d; ip link set pstranger master lan up", cmd.Process.Pid))
	s.run("ip addr add " + address + "/24 dev eth0")
	s.run("ip link set eth0 up")
	s.mac = netns.MAC(t, s.in, "eth0")
	return s
}

func (s *stranger) run(command string) {
	s.t.Helper()
	netns.Sh(s.t, s.in+command)
}
