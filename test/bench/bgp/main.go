// Command bgp measures Quayside as a BGP speaker, with FRR as the router, in
// network namespaces of its own. It needs root, FRR and BIRD.
//
// learn: a speaker process (package speaker/bgp alone, no cluster) starts with
// 10,000 prefixes for four routers; until all have them. Then one prefix after
// the other is added, as one Service is, until all routers have it. rest: 100
// peers, each told 1,000 prefixes, which do nothing but stay; what that costs.
// silent: two nodes announce one address to a router, the better one falls
// silent, and a client behind the router counts the time until the other node
// answers; `quayside up --announce` beside FRR's own bgpd and bfdd on the nodes,
// before FRR and before BIRD as the router.
//
// What is printed is the median of the rounds, with their range.
//
//	go run ./test/bench/bgp
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
)

// roleVariable makes the program, run once more, be one of its own parts.
const roleVariable = "QUAYSIDE_BENCH_ROLE"

func main() {
	roles := map[string]func() error{"bench": bench, "speaker": speak, "peers": serveIdlePeers, "echo": echo, "client": probe, "idle": idle}
	role, err := os.Getenv(roleVariable), error(nil)
	if role != "" {
		err = roles[role]()
	} else {
		err = inside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bgp:", err)
		os.Exit(1)
	}
}

// inside runs the benchmarks in a process with a network of its own.
func inside() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, for network namespaces")
	}
	if _, err := os.Stat(frrDaemons); err != nil {
		return fmt.Errorf("needs FRR: %w", err)
	}
	cmd := selfAs("bench")
	cmd.Args = append(cmd.Args, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = ownNetwork()
	return cmd.Run()
}

// selfAs runs this program in another role.
func selfAs(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func ownNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}

func bench() error {
	rounds := flag.Int("rounds", 5, "how often each is measured; the median counts")
	run := flag.String("run", "", "measure only what this regular expression names: learn, rest, silent")
	flag.Parse()
	chosen, err := regexp.Compile(*run)
	if err != nil {
		return err
	}
	if err := sh("ip link set lo up"); err != nil {
		return err
	}
	for _, b := range []struct {
		name    string
		measure func(rounds int) error
	}{{"learn", learn}, {"rest", rest}, {"silent", silent}} {
		if !chosen.MatchString(b.name) {
			continue
		}
		if err := b.measure(*rounds); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// series is what was measured, round by round.
type series []float64

// print writes the median of the rounds, and their range.
func (s series) print(what, unit string) {
	slices.SortFunc(s, cmp.Compare[float64])
	fmt.Printf("%-74s %8.1f %s (%.1f to %.1f, %d rounds)\n", what, s[len(s)/2], unit, s[0], s[len(s)-1], len(s))
}

// percentile of samples, which it sorts.
func (s series) percentile(p float64) float64 {
	slices.SortFunc(s, cmp.Compare[float64])
	return s[min(len(s)-1, int(p*float64(len(s))))]
}
