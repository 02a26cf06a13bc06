package command

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quayside.io/cluster"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/demo"
	"quayside.io/command/explain"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// demoPace is how often the demo replaces a pod.
const demoPace = 2 * time.Second

// upFlags are the flags of `up`.
type upFlags struct {
	proxy    proxyFlags
	files    []string
	demo     bool
	once     bool
	announce bool
	loopback demo.Loopback // where the demo is
}

func (e *env) upCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "All of Quayside in one process, from manifest files",
		Long: `All of Quayside in one process, from manifest files that may change while it
runs: it allocates, routes and serves, without a cluster and without root.
LoadBalancer Services with a loopback address are reached there, ports below
1024 at 8000 more: 80 becomes 8080.`,
		Example: "  quayside up --demo\n  quayside up -f manifests/ --once",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.defaults(func(name string) bool { return c.Flags().Changed(name) }, e)
			return e.runUp(c.Context(), f)
		},
	}
	f.proxy.add(c.Flags(), detailFull)
	c.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest file or folder (repeatable)")
	c.Flags().BoolVar(&f.demo, "demo", false, "serve a small built-in cluster whose pods come and go, on loopback")
	c.Flags().BoolVar(&f.once, "once", false, "compile, print and exit: 0, or 2 if there are problems")
	c.Flags().BoolVar(&f.announce, "announce", false, "also announce addresses on the LAN; needs root")
	return c
}

// defaults changes what was not asked for: a demo is on loopback only, and the
// screen of `up` is a table that a log would tear.
func (f *upFlags) defaults(changed func(flag string) bool, e *env) {
	if f.demo && !changed("http") {
		f.proxy.http = "127.0.0.1:8080"
	}
	if f.demo && !changed("https") {
		f.proxy.https = "127.0.0.1:8443"
	}
	if !changed("log-level") {
		e.logLevel = "error"
	}
}

func (e *env) runUp(ctx context.Context, f upFlags) error {
	if len(f.files) == 0 && !f.demo {
		return fmt.Errorf("%w: name manifests with -f FILE or DIR, or try --demo", errBadInput)
	}
	p, err := e.process()
	if err != nil {
		return err
	}
	var embedded []fs.FS
	if f.demo {
		f.loopback = demo.FindLoopback()
		embedded = demo.Manifests(f.loopback)
	}
	files, err := cluster.NewFiles(f.files, embedded, cluster.FilesOptions{
		NodeName: f.proxy.nodeName, IngressClass: f.proxy.ingress.class, Log: p.log,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errBadInput, err)
	}
	if f.once {
		return e.runOnce(ctx, files, f)
	}
	return e.runComponents(ctx, files, f, p)
}

// runOnce compiles until nothing is left to write, prints, and ends.
func (e *env) runOnce(ctx context.Context, files *cluster.Files, f upFlags) error {
	routes, err := f.proxy.ingress.routes(f.proxy.namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- files.Run(ctx) }() // it enters what is written
	var plan *assign.Plan
	for {
		plan = assign.Compile(files.Snapshot(), plan, nil, time.Now(), f.assignOptions(files.Snapshot()))
		if len(plan.Updates) == 0 {
			break
		}
		for _, u := range plan.Updates {
			if err := files.UpdateStatus(ctx, u.Object()); err != nil {
				return err
			}
		}
	}
	c := files.Snapshot()
	routes.Now = time.Now()
	table := route.Compile(c, nil, routes)
	cancel()
	if err := <-done; err != nil {
		return err
	}
	problems := slices.Concat(plan.Problems, table.Problems, advertised(c, f.proxy.namespace, routes.Now))
	report := explain.Status(f.inputs(c, problems, table))
	if err := report.WriteText(e.stdout); err != nil {
		return err
	}
	n := 0
	for _, p := range report.Problems {
		if !manifest.IsNote(p.Reason) {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%w: %d of these problems must be solved", errBadInput, n) // the others are notes
	}
	return nil
}

// advertised are the problems of advertisements, of peers and of what these name, which the
// speakers would find. Which nodes there will be manifests need not say.
func advertised(c *snapshot.Cluster, namespace string, now time.Time) []snapshot.Problem {
	kinds := []string{snapshot.L2Advertisement.String(), snapshot.BGPAdvertisement.String(), snapshot.BGPPeer.String(), snapshot.BFDProfile.String(), snapshot.Community.String()}
	all := announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{Namespace: namespace}).Problems
	return slices.DeleteFunc(all, func(p snapshot.Problem) bool {
		return p.Reason == "NoPeer" || !slices.Contains(kinds, p.Object.Kind)
	})
}
