// Command silent measures what it costs the clients of a proxy that the machine of a pod
// falls silent, as one does that loses its power: Quayside, nginx and HAProxy at the same
// time, before the same three pods, in a network of their own.
//
// Each proxy has 32 clients, which send one GET after another over kept connections. Then
// nothing that is sent to one of the pods, or by it, arrives any more; that it is gone is
// told to nobody, as in the most of a minute that a cluster takes. Printed is the median of
// the rounds, with their range: the longest wait for an answer, how many of the requests
// waited for more than a second, and how many failed. The proxies are configured as their
// Ingress controllers have it: 5 s to connect, 60 s to answer, what failed goes to the next
// pod, and HAProxy asks the pods every two seconds whether they live.
//
// It needs root, nft, and the proxies; one that is not installed is left out.
//
//	go run ./test/bench/silent
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"quayside.io/test/netns"
)

const (
	// roleVariable makes the program, run once more, be one of its own parts.
	roleVariable = "QUAYSIDE_BENCH_ROLE"
	roleInside   = "inside" // of the network
	roleQuayside = "quayside"

	silentPod = "127.0.0.9"
	podPort   = "18180"
)

// pods are their addresses.
func pods() []string { return []string{silentPod, "127.0.0.10", "127.0.0.11"} }

func main() {
	rounds := flag.Int("rounds", 5, "how often; the median counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch os.Getenv(roleVariable) {
	case roleQuayside:
		err = serveQuayside(ctx)
	case roleInside:
		err = measure(ctx, *rounds)
	default:
		err = inNetwork(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "silent:", err)
		os.Exit(1)
	}
}

// inNetwork runs the program once more, in a network of its own.
func inNetwork(ctx context.Context) error {
	if lacks := netns.Lacks("nft"); lacks != "" {
		return errors.New("needs " + lacks)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+roleInside)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, netns.Own()
	return cmd.Run()
}

// shell runs commands that must succeed.
func shell(command string) error {
	out, err := exec.Command("sh", "-ec", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// measure does the rounds and prints what came of them.
func measure(ctx context.Context, rounds int) error {
	if err := shell("ip link set lo up; nft 'add table ip t; add chain ip t in { type filter hook input priority 0; }'"); err != nil {
		return err
	}
	for _, address := range pods() {
		l, err := net.Listen("tcp", net.JoinHostPort(address, podPort))
		if err != nil {
			return err
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(5 * time.Millisecond) // or each client's connection would be free for the next
			fmt.Fprintln(w, address)
		}))
	}
	all := map[string][]outcome{}
	for range rounds {
		if err := round(ctx, all); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "proxy\tlongest wait (range)\twaited more than 1 s\tfailed\t")
	for _, p := range peers("") {
		if list := all[p.name]; len(list) > 0 {
			fmt.Fprintf(w, "%s\t%s s\t%s\t%s\t\n", p.name,
				spread(list, "%.2f", func(o outcome) float64 { return o.longest.Seconds() }),
				spread(list, "%.0f", func(o outcome) float64 { return float64(o.slow) }),
				spread(list, "%.0f", func(o outcome) float64 { return float64(o.failed) }))
		}
	}
	return w.Flush()
}

// spread returns "median (least to greatest)".
func spread(list []outcome, format string, of func(outcome) float64) string {
	values := make([]float64, len(list))
	for i, o := range list {
		values[i] = of(o)
	}
	slices.Sort(values)
	return fmt.Sprintf(strings.ReplaceAll("F (F to F)", "F", format), values[len(values)/2], values[0], values[len(values)-1])
}

// round starts the proxies anew, has their clients ask, and silences a pod.
func round(ctx context.Context, all map[string][]outcome) error {
	dir, err := os.MkdirTemp("", "quayside-silent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	loads := map[string]*load{}
	for _, p := range peers(dir) {
		stop, err := p.start(dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", p.name, err)
			continue
		}
		defer stop()
		loads[p.name] = newLoad(p.addr)
	}
	time.Sleep(warmUp)
	if err := shell("nft 'add rule ip t in ip daddr " + silentPod + " drop; add rule ip t in ip saddr " + silentPod + " drop'"); err != nil {
		return err
	}
	defer shell("nft flush chain ip t in")
	silent := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(asking):
	}
	for name, l := range loads {
		all[name] = append(all[name], l.end(silent))
	}
	return nil
}
