package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/cluster/printable"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/explain"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// lookTimeout bounds the wait for a cluster or an admin endpoint.
const lookTimeout = 15 * time.Second

// lookFlags are the flags of the commands that look and change nothing.
type lookFlags struct {
	output    string
	tokenFile string
	local     bool
	cluster   clusterFlags
}

func (f *lookFlags) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.output, "output", "o", "", "json or yaml; a screen of text by default")
	flags.StringVar(&f.tokenFile, "admin-token-file", "", "file with the bearer token to show at --admin https://HOST:PORT")
	flags.BoolVar(&f.local, "local", false, "do not ask the controller: judge by what this account may read and by the flags given here")
	f.cluster.add(flags)
}

// judges reports whether the cluster is to be judged here. Whoever gives flags of an
// installation asks how it would be with them.
func (f *lookFlags) judges(given *pflag.FlagSet) bool {
	installation := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(clusterFlags).add(installation)
	judges := f.local
	given.Visit(func(g *pflag.Flag) {
		judges = judges || g.Name != "namespace" && installation.Lookup(g.Name) != nil
	})
	return judges
}

// view is something to show: as text, or as JSON.
type view interface{ WriteText(io.Writer) error }

// subject is what a command looks at.
type subject struct {
	state, page string // of the admin endpoint of `up`, and of a controller's
	query       url.Values
	seen        view                // what they answer
	explain     func(explain.Scene) // fills seen with the same
}

// at is the subject's place under a path.
func (s *subject) at(path string) string {
	if len(s.query) > 0 {
		path += "?" + s.query.Encode()
	}
	return path
}

// look shows a subject.
func (e *env) look(c *cobra.Command, f lookFlags, s subject) error {
	if !slices.Contains([]string{"", "json", "yaml"}, f.output) {
		return fmt.Errorf("%w: --output %q: want json or yaml", errBadInput, f.output)
	}
	ctx, cancel := context.WithTimeout(c.Context(), lookTimeout)
	defer cancel()
	if err := e.see(ctx, c.Flags(), f, s); err != nil {
		return err
	}
	return e.print(s.seen, f.output)
}

// see looks at a process on this machine; or at a cluster, through its controller,
// which knows more, or for itself where that does not answer.
func (e *env) see(ctx context.Context, given *pflag.FlagSet, f lookFlags, s subject) error {
	if given.Changed("admin") {
		return e.askAdmin(ctx, f.tokenFile, s.at(s.state), s.seen)
	}
	kubeconfig, inCluster := e.findKubeconfig()
	if !inCluster {
		if err := e.askAdmin(ctx, f.tokenFile, s.at(s.state), s.seen); err != nil {
			return fmt.Errorf("no cluster is configured (--kubeconfig), and %w", err)
		}
		return nil
	}
	if !f.judges(given) {
		err := askController(ctx, kubeconfig, f.cluster.namespace, s.page, s.query, s.seen)
		if err == nil {
			return nil
		}
		fmt.Fprintf(e.stderr, "note: the controller could not be asked, so this is what your account can read, judged by the flags given here%s: %s\n",
			remedy(err, f.cluster.namespace), printable.Line(err.Error()))
	}
	scene, err := e.scene(ctx, kubeconfig, f.cluster)
	scene.ByFlags = true
	if err != nil {
		return err
	}
	s.explain(scene)
	return nil
}

// findKubeconfig returns the file to use, empty for what $KUBECONFIG lists or the
// pod's own account, and false where there is no sign of a cluster.
func (e *env) findKubeconfig() (string, bool) {
	if e.kubeconfig != "" {
		return e.kubeconfig, true
	}
	if os.Getenv("KUBECONFIG") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
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

// scene reads the cluster once and compiles it as the components do.
func (e *env) scene(ctx context.Context, kubeconfig string, f clusterFlags) (explain.Scene, error) {
	routes, err := f.routes()
	if err != nil {
		return explain.Scene{}, err
	}
	log, err := e.log(e.stderr)
	if err != nil {
		return explain.Scene{}, err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: kubeconfig, Kinds: controller.Kinds(), Referenced: []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap},
		Lenient: true, Component: "status", Log: log,
	})
	if err != nil {
		return explain.Scene{}, err
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- api.Run(watching) }()
	defer func() { stop(); <-done }()
	select {
	case <-api.Synced():
	case <-ctx.Done():
		return explain.Scene{}, whyUnseen(api.Snapshot())
	}
	routes.Now = time.Now()
	named := route.Compile(api.Snapshot(), nil, routes)
	awaitReferences(ctx, api.Source, named)
	return compileScene(api.Snapshot(), f, routes, named), nil
}

// awaitReferences waits until the Secrets and ConfigMaps that t names are read, or
// known to be closed to this account. What is not known in time is told as unread.
func awaitReferences(ctx context.Context, source *cluster.Source, t *route.Table) {
	ctx, enough := context.WithTimeout(ctx, lookTimeout/3)
	defer enough()
	for _, seen := range []<-chan struct{}{source.Refer(snapshot.Secret, t.Secrets()), source.Refer(snapshot.ConfigMap, t.ConfigMaps())} {
		select {
		case <-seen:
		case <-ctx.Done():
		}
	}
}

// compileScene works out what controller, speakers and proxies make of c. prev are
// routes that were compiled before, or nil.
func compileScene(c *snapshot.Cluster, f clusterFlags, routes route.Options, prev *route.Table) explain.Scene {
	s := sceneOf(c, f, route.Compile(c, prev, routes))
	s.Problems = problemsOf(s)
	return s
}

// sceneOf is a scene of c whose Problems are not known yet.
func sceneOf(c *snapshot.Cluster, f clusterFlags, routes *route.Table) explain.Scene {
	return explain.Scene{
		Cluster: c, Now: time.Now(), Assign: f.assign(), Announce: f.announce(), Routes: routes, Self: proxyServicesOf(c, f.namespace),
	}
}

// problemsOf are those that the compilers find.
func problemsOf(s explain.Scene) []snapshot.Problem {
	return slices.Concat(
		assign.Compile(s.Cluster, nil, nil, s.Now, s.Assign).Problems,
		announce.Compile(s.Cluster, "", announce.ViewOf(s.Cluster), s.Now, s.Announce).Problems,
		s.Routes.Problems)
}

// proxyServicesOf are the proxies' own Services. The chart labels them, whatever its
// release and they are called; others who install the proxy use its default names, in a
// namespace of its own or beside the rest.
func proxyServicesOf(c *snapshot.Cluster, namespace string) []snapshot.Key {
	name := proxyService().Name
	keys := []snapshot.Key{{Namespace: name, Name: name}, {Namespace: namespace, Name: name}}
	for key, s := range c.Services.All() {
		if s.Labels["app.kubernetes.io/part-of"] == "quayside" && s.Labels["app.kubernetes.io/component"] == "proxy" {
			keys = append(keys, key)
		}
	}
	return keys
}

// whyUnseen says why the cluster could not be read in full.
func whyUnseen(c *snapshot.Cluster) error {
	for _, f := range c.Faults {
		return errors.New(f.Message)
	}
	return fmt.Errorf("the cluster was not seen in full within %s", lookTimeout)
}

func (e *env) print(v view, output string) error {
	var out []byte
	var err error
	switch output {
	case "":
		return v.WriteText(e.stdout)
	case "json":
		out, err = printable.JSON(v)
	case "yaml":
		out, err = printable.YAML(v)
	}
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(out)
	return err
}
