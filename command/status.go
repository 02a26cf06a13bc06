package command

import (
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
~/.kube/config, whichever is found first. Its controller is asked, through the
API server, for whoever is bound to the chart's ClusterRole
` + viewerRole + `
in --namespace, and needs no other right. Where that cannot be,
with --local, and with a flag of the installation, the cluster is judged here, by
what this account may read and by the flags that are given. Where there is no
cluster, or with --admin, a process on this machine is asked at its admin address.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			report := &explain.Report{}
			return e.look(c, f, subject{
				state: "/state", page: "/status", seen: report,
				clear:   func() { *report = explain.Report{} },
				explain: func(s explain.Inputs) { *report = *explain.Status(s) },
			})
		},
	}
	f.add(c.Flags(), "wide, json or yaml; a screen of text by default")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "look again every two seconds until interrupted: a terminal is redrawn, anything else gets what has changed")
	return c
}
