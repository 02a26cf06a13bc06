package command

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"quayside.io/command/admin"
)

// task is one thing that lives until the context ends.
type task func(ctx context.Context) error

// serveAll runs tasks as one family: the first error, or the end of ctx, ends all.
func serveAll(ctx context.Context, tasks ...task) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		g.Go(func() error { return t(ctx) })
	}
	return g.Wait()
}

// serveUntilDrained runs hall, and keeps what it stands on alive until hall has
// returned: a proxy that drains still follows its endpoints and answers probes.
func serveUntilDrained(ctx context.Context, hall task, beneath ...task) error {
	below, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	tasks := []task{func(below context.Context) error {
		defer stop()
		top, cancel := context.WithCancel(below)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return hall(top)
	}}
	return serveAll(below, append(tasks, beneath...)...)
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
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quayside_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	build.WithLabelValues(e.version).Set(1)
	registry.MustRegister(build)
	return &process{log, registry, admin.New(e.admin, registry, log)}, nil
}

// component returns the logger of one part of the process.
func (p *process) component(name string) *slog.Logger { return p.log.With("component", name) }
