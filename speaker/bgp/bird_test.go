package bgp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bird starts a BIRD beside whatever else the router runs.
func (r *router) bird(config string) {
	r.t.Helper()
	r.write("bird.conf", "router id 10.0.0.2;\nprotocol device {}\n"+config)
	r.run(exec.Command("nsenter", "-t", r.pid, "-n", "bird", "-f", "-c", filepath.Join(r.dir, "bird.conf"),
		"-s", filepath.Join(r.dir, "bird.ctl"), "-P", filepath.Join(r.dir, "bird.pid")))
	within(r.t, 10*time.Second, "BIRD answers", func() error {
		_, err := r.birdc("show status")
		return err
	})
}

func (r *router) birdc(command string) (string, error) {
	out, err := exec.Command("birdc", "-s", filepath.Join(r.dir, "bird.ctl"), command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// birdKnows waits until BIRD shows a route with all these texts.
func (r *router) birdKnows(prefix string, texts ...string) {
	r.t.Helper()
	within(r.t, 10*time.Second, "BIRD knows "+prefix, func() error {
		out, err := r.birdc("show route all " + prefix)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Errorf("no %q in\n%s", text, out)
			}
		}
		return nil
	})
}

const channels = "ipv4 { import all; export none; }; ipv6 { import all; export none; };"

func TestBIRDLearnsRoutesWithTheirAttributes(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	r.bird(`protocol bgp q { local 10.0.1.2 as 65001; neighbor 10.0.1.1 as 64500; password "secret"; ` + channels + ` }`)
	s := start(t, Options{})
	set := settings(1)
	set.Password, set.Restart = "secret", time.Minute
	rich := &Attributes{Communities: []uint32{65000<<16 | 100}, LargeCommunities: []LargeCommunity{{65000, 1, 2}}, Prepend: 1}
	s.Set(one("r", set, routesOf(rich, "192.0.2.0/24", "2001:db8:f00::/48")))
	s.awaitUp("r")
	r.birdKnows("192.0.2.0/24", "BGP.as_path: 64500 64500", "BGP.next_hop: 10.0.1.1", "BGP.community: (65000,100)", "BGP.large_community: (65000, 1, 2)")
	r.birdKnows("2001:db8:f00::/48", "BGP.as_path: 64500 64500", "BGP.next_hop: 2001:db8:1::1")
	s.Set(one("r", set, routesOf(rich, "2001:db8:f00::/48")))
	r.birdHas(1)
}

// TestBIRDWithoutLongASNumbers puts AS_PATH and AS4_PATH together again.
func TestBIRDWithoutLongASNumbers(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	r.bird(`protocol bgp q { local 10.0.1.2 as 65001; neighbor 10.0.1.1 external; enable as4 off; ` + channels + ` }`)
	s := start(t, Options{})
	set := settings(1)
	set.ASN = 4200000001
	s.Set(one("r", set, routesOf(&Attributes{Prepend: 1}, "192.0.2.0/24")))
	s.awaitUp("r")
	r.birdKnows("192.0.2.0/24", "BGP.as_path: 4200000001 4200000001")
}

// TestTwoPeersAtOneAddress are FRR and BIRD on other ports of one machine.
func TestTwoPeersAtOneAddress(t *testing.T) {
	if !inNamespace(t, "bird", "birdc", "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500", "passive"))
	r.bird(`protocol bgp q { local 10.0.1.2 port 1179 as 65002; neighbor 10.0.1.1 as 64500; passive; ` + channels + ` }`)
	s := start(t, Options{})
	frr, bird := settings(1), settings(1)
	bird.PeerASN = 65002
	bird.Peer = addrPort("10.0.1.2:1179")
	s.Set(&Want{Sessions: []Session{
		{Name: "frr", Settings: frr, Routes: routesOf(&Attributes{}, "192.0.2.1/32")},
		{Name: "bird", Settings: bird, Routes: routesOf(&Attributes{}, "192.0.2.2/32")},
	}})
	s.awaitUp("frr")
	s.awaitUp("bird")
	r.expect("ipv4", "192.0.2.1/32")
	r.birdKnows("192.0.2.2/32", "BGP.as_path: 64500")
}

// TestBIRDOverALinkLocalAddress and dialled by it.
func TestBIRDOverALinkLocalAddress(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	r.bird(`protocol bgp q { local fe80::2 as 65001; neighbor fe80::1%eth0 as 64500; connect delay time 1; connect retry time 1;
		ipv4 { import all; export none; extended next hop; }; ipv6 { import all; export none; }; }`)
	s := start(t, Options{Listen: ":179"})
	set := settings(1)
	set.Peer, set.Passive = addrPort("[fe80::2%r1]:179"), true
	s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.0/24", "2001:db8:f00::/48")))
	s.awaitUp("r")
	r.birdKnows("192.0.2.0/24", "BGP.next_hop: 2001:db8:1::1 fe80::1")
	r.birdKnows("2001:db8:f00::/48", "BGP.next_hop: 2001:db8:1::1 fe80::1")
}

// TestBIRDTakesEveryKindOfSession has one case per setting, as
// TestFRRTakesEveryKindOfSession. Each ends with BIRD knowing both routes, unless
// why says why it cannot.
func TestBIRDTakesEveryKindOfSession(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	const quick = "connect delay time 1; connect retry time 1; error wait time 1,1;"
	for _, c := range []struct {
		name   string
		bird   string // options of the protocol
		as     [2]uint32
		change func(*Settings)
		listen string
		why    string
		knows  string
	}{
		{name: "internal", as: [2]uint32{64500, 64500}, change: func(s *Settings) { s.PeerASN = 64500 }, knows: "BGP.local_pref: 200"},
		{name: "password", bird: `password "secret";`, change: func(s *Settings) { s.Password = "secret" }},
		{name: "no hold timer", bird: "hold time 0;", change: func(s *Settings) { s.Hold = 0 }},
		{name: "hold 3 s", change: func(s *Settings) { s.Hold = 3 * time.Second }},
		{name: "TTL security", bird: "ttl security on;", change: func(s *Settings) { s.TTLSecurity = true }},
		{name: "multihop", bird: "multihop 5;", change: func(s *Settings) { s.MultiHop = true }},
		{name: "long AS numbers", as: [2]uint32{4200000002, 4200000001},
			change: func(s *Settings) { s.ASN, s.PeerASN = 4200000001, 4200000002 }, knows: "BGP.as_path: 4200000001 4200000001"},
		{name: "a passive peer", bird: "passive;", change: func(*Settings) {}},
		{name: "passive", bird: quick, listen: ":179", change: func(s *Settings) { s.Passive = true }},
		{name: "passive with a password", bird: quick + `password "secret";`, listen: ":179",
			change: func(s *Settings) { s.Passive, s.Password = true, "secret" }},
		{name: "passive with TTL security", bird: quick + "ttl security on;", listen: ":179",
			change: func(s *Settings) { s.Passive, s.TTLSecurity = true, true }},
		{name: "both dial", bird: quick, listen: ":179", change: func(*Settings) {}},
		{name: "any external AS", change: func(s *Settings) { s.PeerASN, s.Kinship = 0, External }},
		{name: "any internal AS", as: [2]uint32{64500, 64500}, change: func(s *Settings) { s.PeerASN, s.Kinship = 0, Internal }},
		{name: "not the AS configured", change: func(s *Settings) { s.PeerASN = 65099 }, why: "it says AS 65001, and AS 65099 is configured"},
		{name: "not our AS", as: [2]uint32{65001, 64999}, change: func(*Settings) {}, why: "Bad Peer AS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.as[0] == 0 {
				c.as = [2]uint32{65001, 64500}
			}
			r := newRouter(t, 1)
			r.bird(fmt.Sprintf("protocol bgp q { local 10.0.1.2 as %d; neighbor 10.0.1.1 as %d; %s %s }", c.as[0], c.as[1], c.bird, channels))
			set := settings(1)
			c.change(&set)
			s := start(t, Options{Listen: c.listen, OpenTime: 5 * time.Second})
			s.Set(one("r", set, routesOf(&Attributes{LocalPref: 200, Prepend: 1}, "192.0.2.1/32", "2001:db8:f00::1/128")))
			if c.why != "" {
				s.awaitError("r", c.why)
				return
			}
			s.awaitUp("r")
			r.birdKnows("192.0.2.1/32", "BGP.next_hop: 10.0.1.1", c.knows)
			r.birdKnows("2001:db8:f00::1/128", "BGP.next_hop: 2001:db8:1::1", c.knows)
			s.stop()
		})
	}
}

// TestBIRDSeesADrain: GRACEFUL_SHUTDOWN, then nothing, then the words.
func TestBIRDSeesADrain(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	telling := strings.ReplaceAll(channels, "import all", `import filter { print "heard ", net, " with ", bgp_community; accept; }`)
	r.bird(`log stderr all; protocol bgp q { local 10.0.1.2 as 65001; neighbor 10.0.1.1 as 64500; ` + telling + ` }`)
	s := start(t, Options{Drain: time.Second})
	w := one("r", settings(1), routesOf(&Attributes{Communities: []uint32{65000<<16 | 1}}, "192.0.2.1/32", "2001:db8:f00::1/128"))
	s.Set(w)
	up := s.awaitUp("r")
	r.birdKnows("192.0.2.1/32", "BGP.community: (65000,1)")
	draining := *w
	draining.Draining = true
	s.Set(&draining)
	for _, prefix := range []string{"192.0.2.1/32", "2001:db8:f00::1/128"} { // which have it for a second: who asks may be late
		r.says("heard " + prefix + " with (clist (65000,1) (65535,0))")
	}
	r.birdHas(0)
	s.Set(w) // the node stays after all
	r.birdKnows("192.0.2.1/32", "BGP.community: (65000,1)")
	r.birdHas(2)
	if now := s.awaitUp("r"); !now.Since.Equal(up.Since) {
		t.Error("a drain reset the session")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Leave(ctx, "node reboots", false); err != nil {
		t.Fatal(err)
	}
	r.says(`Received: Administrative shutdown: "node reboots"`)
}

// TestBIRDKeepsRoutesOverARestart: with graceful restart BIRD keeps the routes of
// a speaker that ends, and drops what the next does not announce; without it
// they go.
func TestBIRDKeepsRoutesOverARestart(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	r.bird(`protocol bgp q { local 10.0.1.2 as 65001; neighbor 10.0.1.1 as 64500; ` + channels + ` }`)
	set := settings(1)
	set.Restart = time.Minute
	routes := routesOf(&Attributes{}, "192.0.2.1/32", "192.0.2.2/32")
	first := start(t, Options{})
	first.Set(one("r", set, routes))
	r.birdHas(2)
	first.stop()
	r.birdProtocol("Neighbor graceful restart active")
	r.birdHas(2)
	second := start(t, Options{})
	second.Set(one("r", set, routes[:1]))
	second.awaitUp("r")
	r.birdHas(1)
	r.birdKnows("192.0.2.1/32", "BGP.as_path: 64500")
	set.Restart = 0
	second.Set(one("r", set, routes))
	r.birdHas(2)
	second.stop()
	r.birdHas(0)
}

// birdHas waits until BIRD has so many routes.
func (r *router) birdHas(routes int) {
	r.t.Helper()
	within(r.t, 10*time.Second, fmt.Sprintf("BIRD has %d routes", routes), func() error {
		out, err := r.birdc("show route count")
		if err == nil && !strings.Contains(out, fmt.Sprintf("Total: %d of %d", routes, routes)) {
			err = errors.New(out)
		}
		return err
	})
}

// birdProtocol waits until BIRD says that of the session.
func (r *router) birdProtocol(text string) {
	r.t.Helper()
	within(r.t, 10*time.Second, "BIRD says "+text, func() error {
		out, err := r.birdc("show protocols all q")
		if err == nil && !strings.Contains(out, text) {
			err = errors.New(out)
		}
		return err
	})
}
