package command

import (
	"context"

	"github.com/spf13/cobra"

	"quayside.io/command/explain"
)

func (e *env) statusCommand() *cobra.Command {
	var f lookFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "One screen: Services, addresses, who announces them, Ingresses, problems",
		Long: `One screen about the edge of a cluster, or about a running ` + "`quayside up`" + `.
The cluster is that of --kubeconfig, $KUBECONFIG, the pod's own account or
~/.kube/config, whichever is found first. Where there is none, or with --admin,
a process on this machine is asked at its admin address. Controller, speakers
and proxies that run with other flags than the defaults are judged rightly only
if the same flags are given here.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.look(c, f, func(ctx context.Context, kubeconfig string, inCluster bool) (view, error) {
				if !inCluster {
					report := &explain.Report{}
					return report, e.askAdmin(ctx, f.tokenFile, "/state", report)
				}
				scene, err := e.scene(ctx, kubeconfig, f.cluster)
				if err != nil {
					return nil, err
				}
				return explain.Status(scene), nil
			})
		},
	}
	f.add(c.Flags())
	return c
}
