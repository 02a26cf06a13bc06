package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// timers are what a router and its neighbours wait for.
type timers struct {
	bfd             bool // 50 ms × 3
	keepalive, hold int  // of BGP, in seconds
}

// outer is the router before the nodes, 10.0.1.2 and 10.0.2.2.
type outer struct {
	name  string
	start func(*host, timers) error
	// knowsBoth returns nil when the router has a path to either node and, if
	// asked, BFD watches over both.
	knowsBoth func(*host, timers) error
}

// outerFRR lets 50 ms go by from the end of a session until it chooses another
// path, and 10 more until the kernel is told: the holds of its work queues, which
// no option changes.
func outerFRR() outer {
	return outer{"FRR the router", startFRR, func(h *host, t timers) error {
		if err := h.vtySays("bgpd", "show bgp ipv4 unicast "+service+"/32 json", `"type":"external"`); err != nil || !t.bfd {
			return err
		}
		return h.vtySays("bfdd", "show bfd peers json", `"status":"up"`)
	}}
}

func startFRR(h *host, t timers) error {
	var config, bfd strings.Builder
	fmt.Fprintf(&config, "router bgp 65001\n bgp router-id 10.0.1.1\n no bgp ebgp-requires-policy\n timers bgp %d %d\n", t.keepalive, t.hold)
	for n := 1; n <= 2; n++ {
		fmt.Fprintf(&config, " neighbor 10.0.%d.2 remote-as %d\n neighbor 10.0.%d.2 timers connect 1\n", n, ourASN, n)
		if t.bfd {
			fmt.Fprintf(&config, " neighbor 10.0.%d.2 bfd\n", n)
			bfd.WriteString(bfdOf(fmt.Sprintf("10.0.%d.2", n)))
		}
	}
	return h.frr(config.String()+bfd.String(), "zebra", "bfdd", "bgpd")
}

func bfdOf(peer string) string {
	return fmt.Sprintf("bfd\n peer %s\n  detect-multiplier 3\n  receive-interval 50\n  transmit-interval 50\n exit\nexit\n", peer)
}

// vtySays returns nil when the answer to a question has a text twice.
func (h *host) vtySays(daemon, question, text string) error {
	v, err := h.vty(daemon)
	if err != nil {
		return err
	}
	defer v.Close()
	answer, err := v.ask(question)
	if err != nil {
		return err
	}
	return twice(daemon, string(answer), text)
}

func twice(who, answer, text string) error {
	if n := strings.Count(answer, text); n != 2 {
		return fmt.Errorf("%s says %d times %s, not twice", who, n, text)
	}
	return nil
}

// outerBIRD chooses another path, and tells the kernel, as soon as a session ends.
func outerBIRD() outer {
	return outer{"BIRD the router", startBIRD, func(h *host, t timers) error {
		routes, err := h.birdc("show", "route", service+"/32")
		if err != nil {
			return err
		}
		if err := twice("BIRD", routes, "[node"); err != nil || !t.bfd {
			return err
		}
		sessions, err := h.birdc("show", "bfd", "sessions")
		return errors.Join(err, twice("BIRD", sessions, " Up "))
	}}
}

func startBIRD(h *host, t timers) error {
	config := `router id 10.0.1.1;
protocol device {}
protocol kernel { ipv4 { import none; export all; }; }
protocol bfd { interface "*" { min rx interval 50 ms; min tx interval 50 ms; multiplier 3; }; }
`
	for n := 1; n <= 2; n++ {
		config += fmt.Sprintf("protocol bgp node%d { local 10.0.%d.1 as 65001; neighbor 10.0.%d.2 as %d; bfd %s; keepalive time %d; hold time %d; "+
			"connect delay time 1; connect retry time 1; error wait time 1, 2; ipv4 { import all; export none; }; }\n",
			n, n, n, ourASN, map[bool]string{true: "on", false: "off"}[t.bfd], t.keepalive, t.hold)
	}
	file := filepath.Join(h.dir, "bird.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	if err := h.begin(h.command("bird", "-f", "-c", file, "-s", filepath.Join(h.dir, "bird.ctl"), "-P", filepath.Join(h.dir, "bird.pid"))); err != nil {
		return err
	}
	return within(20*time.Second, "BIRD", func() error {
		_, err := h.birdc("show", "status")
		return err
	})
}

func (h *host) birdc(question ...string) (string, error) {
	out, err := h.command(append([]string{"birdc", "-s", filepath.Join(h.dir, "bird.ctl")}, question...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("birdc: %w: %s", err, out)
	}
	return string(out), nil
}
