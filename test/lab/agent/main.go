// Command agent is the lab's helper inside its namespaces. It is not for
// people: test/lab builds it and starts every process through it.
//
//	agent init             first process of the lab's PID namespace
//	agent run SPEC         become the process that SPEC (JSON) describes
//	agent pod NAME NODE ADDR [ADDR …]   be the HTTP server of a pod
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"quayside.io/test/lab/podserver"
	"quayside.io/test/lab/sandbox"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "init":
		return reap()
	case len(args) == 2 && args[0] == "run":
		spec, err := sandbox.Decode(args[1])
		if err != nil {
			return err
		}
		return spec.Exec()
	case len(args) >= 4 && args[0] == "pod":
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
		defer stop()
		return podserver.Run(ctx, podserver.Options{Pod: args[1], Node: args[2], Listen: args[3:]})
	}
	return errors.New("usage: agent init | agent run SPEC | agent pod NAME NODE ADDR (one or more)")
}

// reap is all that process 1 does: it buries daemons that lost their parent.
// When it dies, with the lab or killed by it, the kernel ends every process
// of the namespace, also those that changed user or forked away.
func reap() error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	signal.Ignore(unix.SIGINT, unix.SIGHUP) // Ctrl-C in a shell of the lab is not for us
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	for range children {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}
