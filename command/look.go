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
	watch     bool
	cluster   clusterFlags
}

func (f *lookFlags) add(flags *pflag.FlagSet, outputs string) {
	flags.StringVarP(&f.output, "output", "o", "", outputs)
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

// wideView is a view with more columns, and ages at a time, which may be zero.
type wideView interface {
	WriteWide(w io.Writer, now time.Time) error
}

// subject is what a command looks at.
type subject struct {
	state, page string // of the admin endpoint of `up`, and of a controller's
	query       url.Values
	seen        view                  // what they answer
	clear       func()                // empties seen
	explain     func(explain.Inputs)  // fills seen with the same
	more        func(context.Context) // adds what is found elsewhere; nil: nothing
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
	if err := checkOutput(s.seen, f.output); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), lookTimeout)
	defer cancel()
	again, stop, err := e.see(ctx, c.Flags(), f, s)
	if err != nil {
		return err
	}
	defer stop()
	if s.more != nil {
		s.more(c.Context())
	}
	if f.watch {
		return e.watch(c.Context(), s, f.output, again)
	}
	return e.print(s.seen, f.output)
}

// see looks at a process on this machine; or at a cluster, through its controller,
// which knows more, or for itself where that does not answer. It returns what looks
// again, for as long as stop is not called.
func (e *env) see(ctx context.Context, given *pflag.FlagSet, f lookFlags, s subject) (again func(context.Context) error, stop func(), err error) {
	stop = func() {}
	again = func(ctx context.Context) error {
		s.clear()
		return e.askAdmin(ctx, f.tokenFile, s.at(s.state), s.seen)
	}
	if given.Changed("admin") {
		return again, stop, again(ctx)
	}
	kubeconfig, inCluster := e.findKubeconfig()
	if !inCluster {
		if err := again(ctx); err != nil {
			return nil, nil, fmt.Errorf("no cluster is configured (--kubeconfig), and %w", err)
		}
		return again, stop, nil
	}
	if !f.judges(given) {
		asker := cluster.NewAsker(kubeconfig, "status")
		again = func(ctx context.Context) error {
			s.clear()
			return askController(ctx, asker, f.cluster.namespace, s.page, s.query, s.seen)
		}
		err := again(ctx)
		if err == nil {
			return again, asker.Close, nil
		}
		if errors.Is(err, cluster.ErrNoServer) { // then nothing can be judged here, either
			return nil, nil, err
		}
		fmt.Fprintf(e.stderr, "note: the controller could not be asked, so this is what your account can read, judged by the flags given here%s: %s\n",
			remedy(err, f.cluster.namespace), printable.Line(err.Error()))
	}
	inputs, stop, err := e.openCluster(ctx, kubeconfig, f.cluster)
	if err != nil {
		return nil, nil, err
	}
	again = func(ctx context.Context) error {
		s.explain(inputs(ctx))
		return nil
	}
	return again, stop, again(ctx)
}

// findKubeconfig returns what to use, with no file for what $KUBECONFIG lists or the
// pod's own account, and false where there is no sign of a cluster.
func (e *env) findKubeconfig() (cluster.Kubeconfig, bool) {
	given := e.kubeconfig
	if given != (cluster.Kubeconfig{}) || os.Getenv("KUBECONFIG") != "" || os.Getenv(apiHost) != "" {
		return given, true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return given, false
	}
	given.File = filepath.Join(home, ".kube", "config")
	_, err = os.Stat(given.File)
	return given, err == nil
}

// openCluster reads the cluster, and returns what compiles it as the components do,
// again and again until stop is called.
func (e *env) openCluster(ctx context.Context, kubeconfig cluster.Kubeconfig, f clusterFlags) (inputs func(context.Context) explain.Inputs, stop func(), err error) {
	routes, err := f.routes()
	if err != nil {
		return nil, nil, err
	}
	log, err := e.log(e.stderr)
	if err != nil {
		return nil, nil, err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: kubeconfig, Kinds: controller.Kinds(), Referenced: []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap},
		Lenient: true, Component: "status", Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- api.Run(watching) }()
	stop = func() { end(); <-done }
	select {
	case <-api.Synced():
	case <-ctx.Done():
		stop()
		return nil, nil, whyUnseen(api.Snapshot())
	}
	var table *route.Table
	return func(ctx context.Context) explain.Inputs {
		routes.Now = time.Now()
		before := table
		table = route.Compile(api.Snapshot(), before, routes)
		if !table.SameReferences(before) {
			awaitReferences(ctx, api.Source, table)
		}
		s := compileInputs(api.Snapshot(), f, routes, table)
		s.ByFlags = true
		return s
	}, stop, nil
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

// compileInputs works out what controller, speakers and proxies make of c. prev are
// routes that were compiled before, or nil.
func compileInputs(c *snapshot.Cluster, f clusterFlags, routes route.Options, prev *route.Table) explain.Inputs {
	s := inputsOf(c, f, route.Compile(c, prev, routes))
	s.Problems = problemsOf(s)
	return s
}

// inputsOf returns the Inputs of c, whose Problems are not known yet.
func inputsOf(c *snapshot.Cluster, f clusterFlags, routes *route.Table) explain.Inputs {
	return explain.Inputs{
		Cluster: c, Now: time.Now(), Assign: f.assign(), Announce: f.announce(), Routes: routes, Self: proxyServicesOf(c, f.namespace),
	}
}

// problemsOf are those that the compilers find.
func problemsOf(s explain.Inputs) []snapshot.Problem {
	assigned := assign.Compile(s.Cluster, nil, nil, s.Now, s.Assign).Problems
	announced := announce.Compile(s.Cluster, "", announce.ViewOf(s.Cluster), s.Now, s.Announce).Problems
	return slices.Concat(controller.Told(s.Cluster, assigned, announced), s.Routes.Problems)
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
	switch {
	case len(c.Faults) == 0:
		return fmt.Errorf("the cluster was not seen in full within %s", lookTimeout)
	case c.Faults[0].Reason == cluster.Unreachable: // which consoles who goes on, as we do not
		return fmt.Errorf("the API server did not answer within %s", lookTimeout)
	}
	return errors.New(c.Faults[0].Message)
}

// checkOutput returns an error where v cannot be shown so.
func checkOutput(v view, output string) error {
	_, isWide := v.(wideView)
	switch {
	case slices.Contains([]string{"", "json", "yaml"}, output), isWide && output == "wide":
		return nil
	case isWide:
		return fmt.Errorf("%w: --output %q: want wide, json or yaml", errBadInput, output)
	}
	return fmt.Errorf("%w: --output %q: want json or yaml", errBadInput, output)
}

func (e *env) print(v view, output string) error { return write(e.stdout, v, output, time.Now()) }

// write writes v, whose ages are those at now.
func write(w io.Writer, v view, output string, now time.Time) error {
	var out []byte
	var err error
	switch output {
	case "":
		return v.WriteText(w)
	case "wide":
		if wide, ok := v.(wideView); ok {
			return wide.WriteWide(w, now)
		}
	case "json":
		out, err = printable.JSON(v)
	case "yaml":
		out, err = printable.YAML(v)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}
