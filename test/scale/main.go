// Command scale runs a fleet of thousands of speakers and the controller against a real
// API server on this machine, and prints what events cost: API requests and writes,
// watch traffic, processor time, and the time until nothing moves any more. It needs
// root, for the lab that the API server is of.
//
// What is real: etcd and kube-apiserver; the controller, the product's binary; the loop
// of each speaker with its decisions, its writes and their pauses. What is simulated:
// the LAN, gossip (what one says all others know within 100 ms; memberlist is not run),
// the kubelets (each writes its Node every five minutes), and the node lifecycle
// controller's word that a node is not ready.
//
// Only the first -watching speakers have watches of their own. All others look through
// one more, and write through it; the tables say which figures were multiplied. With
// -speaking only the first so many nodes have a speaker at all; the others are Nodes, and
// members without an interface, which announce nothing, so that the rest does all of it.
//
//	go run ./test/scale -nodes 500 -services 1000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"quayside.io/test/lab"
)

// namespace is that of the controller.
const namespace = "quayside-system"

type options struct {
	nodes, services, local, slices, endpoints     int
	speaking, watching, images, nodesUpTo, rounds int
	fresh                                         bool
	profile                                       string
	rest, outage, patience                        time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 500, "how many nodes there are")
	flag.IntVar(&o.services, "services", 1000, "how many Services there are")
	flag.IntVar(&o.local, "local", 4, "how many of the Services are of policy Local")
	flag.IntVar(&o.slices, "slices", 1, "how many EndpointSlices each Service has")
	flag.IntVar(&o.endpoints, "endpoints", 1, "how many endpoints each of them has, all on one node")
	flag.IntVar(&o.speaking, "speaking", 0, "how many nodes have a speaker that can announce; 0: all")
	flag.IntVar(&o.watching, "watching", 20, "how many speakers have watches of their own")
	flag.IntVar(&o.images, "images", 25, "how many images each Node lists; a kubelet lists up to 50")
	flag.IntVar(&o.nodesUpTo, "nodes-up-to", 100, "the speakers' --watch-nodes-up-to; 0: each watches all Nodes")
	flag.BoolVar(&o.fresh, "fresh", false, "nobody has announced anything before; else the speakers begin with what an earlier life of theirs would have left")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long nothing happens")
	flag.IntVar(&o.rounds, "rounds", 1, "how often a rest is measured, and how many nodes die and return, one after the other")
	flag.DurationVar(&o.outage, "outage", 30*time.Second, "how long the API server is away")
	flag.DurationVar(&o.patience, "patience", 5*time.Minute, "how long an event is waited for that does not settle")
	flag.StringVar(&o.profile, "profile", "", "a file for a profile of the simulator's processor time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := profiled(o.profile, func() error { return run(ctx, o, (*stage).play) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// profiled does something, and writes where its processor time went to a file, if any.
func profiled(file string, do func() error) error {
	if file == "" {
		return do()
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	err = do()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

func (o *options) check() error {
	if o.nodes < 2 || o.nodes > 1<<15 || o.local < 1 || o.services < o.local || o.services > 1<<15 {
		return errors.New("want 2 to 32768 nodes, up to 32768 Services, and at least one of them of policy Local")
	}
	o.slices, o.endpoints = max(1, o.slices), min(max(1, o.endpoints), 200)
	if o.speaking == 0 {
		o.speaking = o.nodes
	}
	o.speaking = max(2, min(o.speaking, o.nodes))
	o.watching = max(1, min(o.watching, o.speaking-1))
	o.rounds = max(1, o.rounds)
	return nil
}

// run sets up a cluster for what play does with it.
func run(ctx context.Context, o options, play func(*stage, context.Context, *sync.WaitGroup) error) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	c, err := lab.Start(ctx, lab.Nodes(1), lab.NodeGrace(24*time.Hour), lab.Log(func(format string, args ...any) { say(format, args...) }))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	began := time.Now()
	if err := furnish(ctx, c, o); err != nil {
		return err
	}
	say("%d Nodes and %d Services made in %v", o.nodes, o.services, time.Since(began).Round(time.Second))
	config := c.Config()
	target, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	r := newRelay(target, transport)
	dir, err := os.MkdirTemp("", "quayside-scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{options: o, lab: c, relay: r, kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := r.kubeconfig(s.kubeconfig); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { // what speaks goes before what it speaks to
		if s.fleet != nil {
			s.fleet.end()
		}
		stop()
		if s.controller != nil {
			_ = s.controller.Wait() // it was asked to end
		}
		running.Wait()
		r.server.CloseClientConnections()
		r.server.Close()
	}()
	if s.controller, err = startController(ctx, dir, s.kubeconfig); err != nil {
		return err
	}
	return play(s, ctx, &running)
}

// startController builds the product and runs its controller.
func startController(ctx context.Context, dir, kubeconfig string) (*exec.Cmd, error) {
	binary := filepath.Join(dir, "quayside")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, text)
	}
	c := exec.CommandContext(ctx, binary, "controller", "--kubeconfig", kubeconfig, "--namespace", namespace, "--admin", "127.0.0.1:0", "--log-level", "error")
	c.Stderr = os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, c.Start()
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
