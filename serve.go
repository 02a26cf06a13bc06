package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"quayside.io/controller/admin"
	"quayside.io/controller/snapshot"
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

// outfit is what every long-lived command has: a logger, a registry, and the
// admin endpoint that shows it.
type outfit struct {
	log      *slog.Logger
	registry *prometheus.Registry
	admin    *admin.Server
}

func (e *env) outfit() (*outfit, error) {
	log, err := e.log(e.stderr)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quayside_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	registry.MustRegister(build)
	return &outfit{log, registry, admin.New(e.admin, registry, log)}, nil
}

// key parses NAMESPACE/NAME; a name alone is in namespace.
func key(flag, value, namespace string) (snapshot.Key, error) {
	if value == "" {
		return snapshot.Key{}, nil
	}
	ns, name, found := strings.Cut(value, "/")
	if !found {
		ns, name = namespace, value
	}
	if ns == "" || name == "" || strings.Contains(name, "/") {
		return snapshot.Key{}, fmt.Errorf("%w: --%s %q: want NAMESPACE/NAME", errBadInput, flag, value)
	}
	return snapshot.Key{Namespace: ns, Name: name}, nil
}
