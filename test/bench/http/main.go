// Command http measures the CPU time that one request costs a proxy: Quayside,
// nginx and HAProxy side by side, in one run, before the same backend.
//
// Each proxy gets one core for itself; the backend and wrk share the other. 64
// connections are kept alive on either side and the body has 100 bytes. All
// three add the same forwarding headers. The time is what the kernel has
// charged the proxy's processes. The proxies take turns, round by round; what is
// printed is the median of the rounds with their range, and of the ratios of one
// round each. A peer that is not installed is left out with a note.
//
// -work NAME measures another kind of traffic, and -work each all of them, one after
// the other; works.go has the table.
//
// With -http2 clients speak HTTP/2 over TLS: h2load has 16 connections with 100
// streams each. With -grpc they send unary calls so, and the backend is a server of
// grpc-go without TLS (see grpc.go).
//
// With -churn endpoints and routes change while the requests go on: 1,000 and 10 times
// a second. HAProxy is told through its socket, nginx loads its configuration again once
// a second (see churn.go and haproxy.go). What a change costs is measured after that,
// without requests.
//
// With -rate requests come at random, that many a second: no longer 64 that wait for each
// other, so p99 is what a proxy with time to spare makes somebody wait (see paced.go). It
// can be had beside -churn: p99 is that of the requests that were answered, and those that
// a proxy lost are printed.
//
// With -options Quayside and nginx are measured with each of the cheap options of an
// Ingress, and with all of them at once (see options.go); what one adds is the
// difference to the line "none". -options NAME measures that set alone.
//
//	go run ./test/bench/http
//	go run ./test/bench/http -work connections
//	go run ./test/bench/http -http2
//	go run ./test/bench/http -grpc
//	go run ./test/bench/http -churn
//	go run ./test/bench/http -rate 10000
//	go run ./test/bench/http -options each
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// roleVariable makes the program, run once more, be one of its own servers.
const roleVariable = "QUAYSIDE_BENCH_ROLE"

const (
	backendAddr = "127.0.0.1:18180"
	connections = 64
	bodySize    = 100
)

func main() {
	var err error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch os.Getenv(roleVariable) {
	case "backend":
		err = serveBackend(churningBackends()...)
	case "grpc-backend":
		err = serveCalls(backendAddr)
	case "paced":
		err = servePaced()
	case "quayside":
		err = serveQuayside(ctx, quaysideAddr, backendAddr, os.Getenv(optionsVariable))
	default:
		duration := flag.Duration("duration", 3*time.Second, "how long each proxy is measured")
		rounds := flag.Int("rounds", 5, "how often; the median counts")
		profile := flag.String("cpuprofile", "", "write a CPU profile of Quayside to this file")
		only := flag.String("only", "", "measure this proxy alone")
		http2 := flag.Bool("http2", false, "clients speak HTTP/2 over TLS")
		options := flag.String("options", "", "measure with a set of options, or with each")
		kind := flag.String("work", "keepalive", "the kind of traffic, or each")
		calls := flag.Bool("grpc", false, "clients send unary calls of gRPC over HTTP/2 and TLS")
		churn := flag.Bool("churn", false, "endpoints and routes change meanwhile")
		rate := flag.Int("rate", 0, "requests per second, 0: as many as get answers")
		flag.Parse()
		err = runEach(ctx, *kind, plan{duration: *duration, rounds: *rounds, profile: *profile, only: *only,
			http2: *http2 || *calls, grpc: *calls, churn: *churn, options: *options, rate: *rate})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

// runEach is run for one kind of traffic, or for each.
func runEach(ctx context.Context, kind string, p plan) error {
	chosen, err := worksNamed(kind)
	if err != nil {
		return err
	}
	for _, w := range chosen {
		if p.work = w; len(chosen) > 1 {
			fmt.Printf("\nwork: %s\n", w.name)
		}
		if err := run(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// run measures and prints, once for each set of options.
func run(ctx context.Context, p plan) error {
	names := []string{p.options}
	if p.options == "each" {
		names = names[:0]
		for _, s := range optionSets() {
			names = append(names, s.name)
		}
	}
	for _, name := range names {
		p.options = name
		measured, err := compare(ctx, p)
		if err != nil {
			return err
		}
		if name != "" {
			fmt.Printf("\noptions: %s\n", name)
		}
		print(os.Stdout, measured)
	}
	return nil
}

type plan struct {
	duration time.Duration
	rounds   int
	profile  string
	only     string
	http2    bool
	grpc     bool   // over http2
	churn    bool   // endpoints and routes change; HTTP/1.1 only
	options  string // the name of a set; empty: none
	work     work   // of HTTP/1.1
	rate     int    // requests per second of HTTP/1.1 without TLS; 0: as many as get answers
}

// tools are what makes the load, and what gives it its core.
func (p plan) tools() []string {
	switch {
	case p.http2:
		return []string{"h2load", "taskset"}
	case p.rate > 0:
		return []string{"taskset"}
	}
	return []string{"wrk", "taskset"}
}

// backend is the role of the server behind the proxies.
func (p plan) backend() string {
	if p.grpc {
		return "grpc-backend"
	}
	return "backend"
}

// series is what one proxy did, round by round.
type series struct {
	name   string
	rounds []result
}

// result is one round of one proxy.
type result struct {
	cpu      time.Duration // per request
	rate     float64       // requests per second
	p50, p99 time.Duration // 0: not measured
	changes  changed       // where what it serves changes
	failed   string        // what the load has to say of requests that failed
}

// compare measures every proxy that is there.
func compare(ctx context.Context, p plan) ([]series, error) {
	if runtime.NumCPU() < 2 {
		return nil, errors.New("needs two cores: one for the proxy, one for the load")
	}
	if w := p.work; p.rate > 0 && (p.http2 || p.options != "" || w.tls || w.close || w.bytes > 0) {
		return nil, errors.New("-rate is for plain requests alone: -work keepalive or minimal")
	}
	for _, tool := range p.tools() {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("needs %s: %w", tool, err)
		}
	}
	dir, err := os.MkdirTemp("", "quayside-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	behind := selfAs(p.backend(), "")
	behind.Env = append(behind.Env, sizeVariable+"="+strconv.Itoa(p.work.size()))
	backend, err := start(ctx, loadCore, behind, backendAddr)
	if err != nil {
		return nil, err
	}
	defer backend.stop()

	// The peers take turns, so that a busy minute of the machine hits all.
	var all []series
	for round := range p.rounds {
		list, err := peers(dir, p)
		if err != nil {
			return nil, err
		}
		for i, peer := range list {
			if round == 0 {
				all = append(all, series{name: peer.name})
			}
			if peer.missing != "" || p.only != "" && p.only != peer.name {
				continue
			}
			r, err := measure(ctx, peer, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", peer.name, err)
			}
			all[i].rounds = append(all[i].rounds, r)
		}
		for _, peer := range list {
			if peer.missing != "" && round == 0 {
				fmt.Printf("%s is left out: %s\n", peer.name, peer.missing)
			}
		}
	}
	return slices.DeleteFunc(all, func(s series) bool { return len(s.rounds) == 0 }), nil
}

// print writes a line for each proxy: the median of its rounds, and their range.
func print(out io.Writer, all []series) {
	var ours []result
	for _, s := range all {
		if s.name == "quayside" {
			ours = s.rounds
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "proxy\tCPU per request (range)\tours to it (range)\trequests/s\tp50 (range)\tp99 (range)\tours to it (range)\t")
	for _, s := range all {
		cpu := microseconds(s.rounds, result.perRequest)
		middle := s.rounds[order(cpu)[len(cpu)/2]]
		p99 := microseconds(s.rounds, result.slowest)
		fmt.Fprintf(w, "%s\t%s µs\t%s\t%.0f\t%s\t%s\t%s\t\n", s.name, spread(cpu), spread(ratios(microseconds(ours, result.perRequest), cpu)), middle.rate,
			latency(microseconds(s.rounds, result.usual)), latency(p99), spread(ratios(microseconds(ours, result.slowest), p99)))
	}
	w.Flush()
	printChanges(out, all)
}

func (r result) perRequest() time.Duration { return r.cpu }
func (r result) usual() time.Duration      { return r.p50 }
func (r result) slowest() time.Duration    { return r.p99 }

// microseconds returns what was measured in each round, 0 where it was not.
func microseconds(rounds []result, of func(result) time.Duration) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = float64(of(r).Nanoseconds()) / 1000
	}
	return all
}

// ratios returns those of rounds that ran one after the other, none if one was not measured.
func ratios(ours, theirs []float64) (all []float64) {
	for i := range min(len(ours), len(theirs)) {
		if ours[i] == 0 || theirs[i] == 0 {
			return nil
		}
		all = append(all, ours[i]/theirs[i])
	}
	return all
}

// latency returns the spread of microseconds in milliseconds, if all were measured.
func latency(us []float64) string {
	if slices.Contains(us, 0) {
		return "-"
	}
	ms := make([]float64, len(us))
	for i := range us {
		ms[i] = us[i] / 1000
	}
	return spread(ms) + " ms"
}

// order returns the indices of values from the least to the greatest.
func order(values []float64) []int {
	indices := make([]int, len(values))
	for i := range indices {
		indices[i] = i
	}
	slices.SortFunc(indices, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return indices
}

// spread returns "median (least to greatest)".
func spread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	at := order(values)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", values[at[len(at)/2]], values[at[0]], values[at[len(at)-1]])
}

// measure starts a proxy, warms it up, and loads it.
func measure(ctx context.Context, p peer, how plan) (result, error) {
	options, err := optionsNamed(how.options)
	if err != nil {
		return result{}, err
	}
	d := how.duration
	load := func(ctx context.Context, addr string, d time.Duration) (loaded, error) {
		return options.load(ctx, addr, how.work, d)
	}
	switch {
	case how.grpc:
		load = loadCalls
	case how.http2:
		load = loadHTTP2
	case how.rate > 0:
		load = func(ctx context.Context, addr string, d time.Duration) (loaded, error) {
			return loadPaced(ctx, pace{Addr: addr, Rate: how.rate, Duration: d})
		}
	}
	proc, err := start(ctx, proxyCore, p.command, p.addr)
	if err != nil {
		return result{}, err
	}
	defer proc.stop()
	if _, err := load(ctx, p.addr, time.Second); err != nil {
		return result{}, err
	}
	var l loaded
	var changes int
	defer p.churn.end()
	spent, err := proc.during(func() (err error) {
		changes, err = p.churn.during(ctx, func() (err error) { l, err = load(ctx, p.addr, d); return err })
		return err
	})
	if err != nil {
		return result{}, err
	}
	if l.errors != "" && !p.mayFail {
		return result{}, fmt.Errorf("the load met errors: %s", l.errors)
	}
	if l.requests == 0 {
		return result{}, errors.New("not one request was answered")
	}
	r := result{cpu: spent / time.Duration(l.requests), rate: float64(l.requests) / d.Seconds(), p50: l.p50, p99: l.p99, failed: l.errors}
	r.changes, err = p.churn.alone(ctx, proc, d)
	r.changes.rate = float64(changes) / d.Seconds()
	return r, err
}
