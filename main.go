// Command quayside is the edge of a bare-metal Kubernetes cluster in one
// binary: addresses for LoadBalancer Services, their announcement, and a proxy
// for Ingresses. See package command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"quayside.io/command"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

func main() {
	// The first signal asks for an orderly end; a second one does not wait.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command.Run(ctx, version, os.Args, os.Stdout, os.Stderr))
}
