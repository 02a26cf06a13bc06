package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"quayside.io/cluster"
	"quayside.io/cluster/printable"
	"quayside.io/command/explain"
	"quayside.io/command/live"
)

func (e *env) traceCommand() *cobra.Command {
	var f lookFlags
	var asks bool
	c := &cobra.Command{
		Use:   "trace TARGET",
		Short: "Explain one path, link by link, from the LAN to the pod",
		Long: `Explain one path, link by link, from the LAN to the pod, and name the first link
that is broken. The path is worked out from the objects of the cluster, as
controller, speakers and proxies do; no packet is sent, save with --live. It is
looked for where ` + "`quayside status`" + ` looks. The exit code is 0 if every
link holds, and 1 if one is broken or could not be looked at.`,
		Example: "  quayside trace https://shop.example.com/cart\n  quayside trace service/default/web\n  quayside trace --live https://shop.example.com/\n  quayside trace 10.0.0.7\n  quayside trace 10.0.0.7:53/udp",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			target, err := explain.ParseTarget(args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errBadInput, err)
			}
			path := &explain.Path{}
			s := subject{
				state: "/trace", page: "/trace", query: url.Values{"target": {args[0]}}, seen: path,
				clear:   func() { *path = explain.Path{} },
				explain: func(s explain.Inputs) { *path = *explain.Trace(s, target) },
			}
			s.more = func(ctx context.Context) {
				if !c.Flags().Changed("admin") { // of which cluster that is, is not known
					e.tracePolicies(ctx, path)
				}
				if asks {
					path.Links = append(path.Links, live.Look(ctx, args[0], path, live.Usual())...)
				}
			}
			if err := e.look(c, f, s); err != nil {
				return err
			}
			if verdict, holds := path.Verdict(); !holds {
				return errors.New(strings.TrimSuffix(verdict, "."))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asks, "live", false, "then ask for it from this machine: DNS, the neighbour on the LAN, TCP, TLS, one GET, without following redirects")
	f.add(c.Flags(), "json or yaml; a screen of text by default")
	return c
}

// tracePolicies adds to a path what NetworkPolicies let through, which this account reads
// itself: the controller has no right to look at pods.
func (e *env) tracePolicies(ctx context.Context, path *explain.Path) {
	kubeconfig, ok := e.findKubeconfig()
	services := path.Services()
	if !ok || len(services) == 0 {
		return
	}
	ctx, enough := context.WithTimeout(ctx, lookTimeout)
	defer enough()
	behind, err := cluster.Behind(ctx, kubeconfig, services)
	if err != nil {
		fmt.Fprintf(e.stderr, "note: NetworkPolicies were not looked at: %s\n", printable.Line(err.Error()))
		return
	}
	path.Links = append(path.Links, explain.Policies(path, behind)...)
}

// tracing answers /trace of a process that has all the inputs.
func tracing(look func(context.Context) func() explain.Inputs) func(ctx context.Context, target string) (func() any, error) {
	return func(ctx context.Context, target string) (func() any, error) {
		to, err := explain.ParseTarget(target)
		if err != nil {
			return nil, err
		}
		inputs := look(ctx)
		return func() any { return explain.Trace(inputs(), to) }, nil
	}
}
