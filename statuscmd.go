package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/controller/cluster"
	"quayside.io/controller/explain"
	"quayside.io/controller/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// statusTimeout bounds the wait for a cluster or an admin endpoint.
const statusTimeout = 15 * time.Second

func (e *env) statusCommand() *cobra.Command {
	var output, ingressClass string
	c := &cobra.Command{
		Use:   "status",
		Short: "One screen: Services, addresses, who announces them, Ingresses, problems",
		Long: `One screen about the edge of a cluster, or about a running ` + "`quayside up`" + `.
The cluster is that of --kubeconfig or $KUBECONFIG; without either, or with
--admin, a process of this machine is asked at its admin address.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, output) {
				return fmt.Errorf("%w: --output %q: want json or yaml", errBadInput, output)
			}
			ctx, cancel := context.WithTimeout(c.Context(), statusTimeout)
			defer cancel()
			report, err := e.report(ctx, c.Flags().Changed("admin"), ingressClass)
			if err != nil {
				return err
			}
			return e.print(report, output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml; a screen of text by default")
	c.Flags().StringVar(&ingressClass, "ingress-class", "quayside", "name of our IngressClass")
	return c
}

// report asks whoever the flags and the environment name.
func (e *env) report(ctx context.Context, admin bool, ingressClass string) (*explain.Report, error) {
	if !admin {
		if config, ok := e.findKubeconfig(); ok {
			return e.clusterReport(ctx, config, ingressClass)
		}
	}
	return e.adminReport(ctx)
}

// findKubeconfig returns the file to use, empty for the pod's own account, and
// false where there is no sign of a cluster.
func (e *env) findKubeconfig() (string, bool) {
	if e.kubeconfig != "" {
		return e.kubeconfig, true
	}
	if list := filepath.SplitList(os.Getenv("KUBECONFIG")); len(list) > 0 {
		return list[0], true
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "", true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", false
	}
	path := filepath.Join(home, ".kube", "config")
	_, err = os.Stat(path)
	return path, err == nil
}

// clusterReport sees the cluster once and compiles it as the halls do.
func (e *env) clusterReport(ctx context.Context, kubeconfig, ingressClass string) (*explain.Report, error) {
	log, err := e.log(e.stderr)
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(controller.Kinds(), func(k snapshot.Kind) bool { return k == snapshot.Secret })
	api, err := cluster.NewAPI(cluster.APIOptions{Kubeconfig: kubeconfig, Kinds: kinds, Lenient: true, Component: "status", Log: log})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- api.Run(watching) }()
	defer func() { stop(); <-done }()
	select {
	case <-api.Synced():
	case <-ctx.Done():
		return nil, unseen(api.Snapshot())
	}
	c := api.Snapshot()
	now := time.Now()
	problems := assign.Compile(c, nil, nil, now, assign.Options{DefaultLoadBalancer: true, IngressClass: ingressClass}).Problems
	problems = append(problems, announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{}).Problems...)
	for _, p := range route.Compile(c, nil, route.Options{IngressClass: ingressClass, Now: now}).Problems {
		if p.Reason != route.MissingSecret { // Secrets are not read here: who looks need not see them
			problems = append(problems, p)
		}
	}
	return explain.Status(c, problems), nil
}

// unseen says why the cluster could not be seen.
func unseen(c *snapshot.Cluster) error {
	for _, f := range c.Faults {
		return errors.New(f.Message)
	}
	return fmt.Errorf("the cluster was not seen in full within %s", statusTimeout)
}

func (e *env) adminReport(ctx context.Context) (*explain.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.admin+"/state", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: --admin: %w", errBadInput, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured (--kubeconfig) and nobody answers at --admin %s: %w", e.admin, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("http://%s/state answers %s", e.admin, resp.Status)
	}
	report := &explain.Report{}
	if err := json.NewDecoder(resp.Body).Decode(report); err != nil {
		return nil, fmt.Errorf("http://%s/state is no state of Quayside: %w", e.admin, err)
	}
	return report, nil
}

func (e *env) print(r *explain.Report, output string) error {
	var out []byte
	var err error
	switch output {
	case "":
		return r.WriteText(e.stdout)
	case "json":
		out, err = json.MarshalIndent(r, "", "  ")
		out = append(out, '\n')
	case "yaml":
		out, err = yaml.Marshal(r)
	}
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(out)
	return err
}
