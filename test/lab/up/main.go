// Command up is `make lab`: it brings a cluster up, installs Quayside from
// this tree in it, and leaves you in a shell on its LAN. Everything goes when
// the shell ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"quayside.io/test/lab"
)

func main() {
	nodes := flag.Int("nodes", 3, "how many nodes")
	mode := flag.String("kube-proxy", "nftables", "mode of kube-proxy: nftables or iptables")
	ipv6 := flag.Bool("ipv6", false, "a dual-stack cluster")
	bare := flag.Bool("bare", false, "do not install Quayside")
	binary := flag.String("binary", "", "install this file instead of building the tree")
	build := flag.Bool("build", false, "only build what labs need, Kubernetes and MetalLB above all, where one can run")
	flag.Parse()
	logf := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	options := []lab.Option{lab.Nodes(*nodes), lab.KubeProxy(*mode), lab.Log(logf)}
	if *ipv6 {
		options = append(options, lab.IPv6())
	}
	if *binary != "" {
		options = append(options, lab.Binary(*binary))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	do := func() error { return run(ctx, !*bare, options) }
	if *build {
		do = func() error { return lab.Build(ctx, logf) }
	}
	err := do()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, install bool, options []lab.Option) (err error) {
	c, err := lab.Start(ctx, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	path := os.Getenv("PATH")
	if install {
		begin := time.Now()
		if err := c.TryInstall(ctx, nil); err != nil {
			return err
		}
		if err := c.TryApply(pool); err != nil {
			return err
		}
		fmt.Printf("Quayside is installed and ready after %v\n", time.Since(begin).Round(10*time.Millisecond))
		bin := filepath.Dir(c.Quayside().Binary())
		if err := os.Symlink("quayside", filepath.Join(bin, "kubectl-quayside")); err != nil {
			return err
		}
		path = bin + ":" + path
	}
	for n := range c.Nodes() {
		c.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
	if err := c.TryApply(web); err != nil {
		return err
	}
	you := c.Client("you")
	kubeconfig := c.Kubeconfig()
	guide(c, install)
	return shell(ctx, you, []string{"KUBECONFIG=" + kubeconfig, "PATH=" + path, `PS1=lab \w# `, "HISTFILE="})
}

// shell runs a shell on the LAN until it ends.
func shell(ctx context.Context, you *lab.Client, env []string) error {
	// Ctrl-C is for what runs in the shell. (Not ignored, or the shell would
	// inherit that: caught, and dropped.)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	argv := []string{"bash", "--norc"}
	if _, err := exec.LookPath(argv[0]); err != nil {
		argv = []string{"sh"}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := you.Start(cmd); err != nil {
		return fmt.Errorf("start a shell: %w", err)
	}
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil // the status of the last command is no failure of the lab
	}
	return err
}

const pool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: [10.77.0.200-10.77.0.249]}
`

const web = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: quayside
  rules:
  - host: web.example.com
    http:
      paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]
`
