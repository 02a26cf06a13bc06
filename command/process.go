package command

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"quayside.io/command/admin"
)

// A task is one thing that lives until its context ends: a component, the source
// of its objects, the admin endpoint. A process is a family of tasks.
type task interface {
	// Run returns when ctx ends, or with the error that ends the family.
	Run(ctx context.Context) error
	// Ready returns nil while it does its work, and else says why not.
	Ready() error
}

// running is a task that is ready from the start.
type running func(ctx context.Context) error

func (r running) Run(ctx context.Context) error { return r(ctx) }

func (r running) Ready() error { return nil }

// runAll runs tasks as one family: the first error, or the end of ctx, ends all.
func runAll(ctx context.Context, tasks ...task) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		g.Go(func() error { return t.Run(ctx) })
	}
	return g.Wait()
}

// drained is a task that keeps what it stands on alive until it has returned: a
// proxy that drains still follows its endpoints and answers probes.
type drained struct {
	task
	beneath []task
}

// Run implements task.
func (d drained) Run(ctx context.Context) error {
	below, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	top := running(func(below context.Context) error {
		defer stop()
		top, cancel := context.WithCancel(below)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return d.task.Run(top)
	})
	return runAll(below, append([]task{top}, d.beneath...)...)
}

// process is what every long-lived command has: a logger, a registry, and the
// admin endpoint that shows it.
type process struct {
	log      *slog.Logger
	registry *prometheus.Registry
	admin    *admin.Server
}

func (e *env) process() (*process, error) {
	log, err := e.log(e.stderr)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(buildInfo(e.version))
	return &process{log, registry, admin.New(e.admin, registry, log)}, nil
}

func buildInfo(version string) prometheus.Collector {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quayside_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	return build
}

// component returns the logger of one part of the process.
func (p *process) component(name string) *slog.Logger { return p.log.With("component", name) }

// run lives as component over beneath and the admin endpoint, which shows state
// and is ready while all of them are.
func (p *process) run(ctx context.Context, component task, state func() any, beneath ...task) error {
	for _, t := range append([]task{component}, beneath...) {
		p.admin.Ready(t.Ready)
	}
	p.admin.State(state)
	return drained{component, append(beneath, running(p.admin.Run), settle(component.Ready, settleAfter))}.Run(ctx)
}
