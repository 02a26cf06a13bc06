// Command kube is kube-apiserver, kube-controller-manager and kube-proxy in
// one binary: it looks at its own name, as busybox does, so that the lab
// builds and caches one file.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
	}
	name := filepath.Base(os.Args[0])
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: call this binary as kube-apiserver, kube-controller-manager or kube-proxy\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
