package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"quayside.io/cluster"
	"quayside.io/command/admin"
	"quayside.io/command/explain"
	"quayside.io/controller"
)

// Where controllers show what they see of the cluster, through the API server. The
// Service has the name of the Lease, whatever the release is called.
const (
	controllerService = leaseName
	adminPort         = "admin"
	viewerAccount     = "quayside-viewer" // may get these pages
	// viewerRole is bound to whoever may ask. It is called after a value of the chart, which
	// whoever may not ask cannot find out.
	viewerRole = "quayside-viewer (or NAME-viewer, if fullnameOverride of the chart is another NAME)"
)

// askTimeout bounds a question to the controller; looking for oneself takes time, too.
const askTimeout = 5 * time.Second

// judging shows /status and /trace of a cluster as this controller sees it: with the
// flags and the rights of the installation, which whoever asks need not have.
func (p *process) judging(control *controller.Controller, f clusterFlags) {
	look := func(ctx context.Context) func() explain.Inputs {
		seen := control.See(ctx)
		return func() explain.Inputs {
			s := inputsOf(seen.Cluster, f, seen.Routes)
			if s.Following = !seen.Leading; seen.Leading {
				s.Problems = seen.Problems
			} else {
				s.Problems = problemsOf(s)
			}
			return s
		}
	}
	p.admin.LedBy(control.Leads)
	p.admin.Status(func(ctx context.Context) func() any {
		inputs := look(ctx)
		return func() any { return explain.Status(inputs()) }
	})
	p.admin.Trace(tracing(look))
}

// remedy says what helps against an error of askController, after a comma; empty: that
// depends.
func remedy(err error, namespace string) string {
	switch {
	case errors.Is(err, cluster.ErrDenied):
		return fmt.Sprintf(", until somebody binds you to the chart's ClusterRole %s in namespace %s", viewerRole, namespace)
	case errors.Is(err, cluster.ErrUnanswered):
		return ", until it can (does it run, and does a NetworkPolicy, such as networkPolicy.metricsFrom of the chart, let the API server to its admin port?)"
	}
	return ""
}

// askController asks the controller that leads for one of the pages of judging: it alone
// knows which writes were refused and what could not be granted. Where none leads, any
// answers.
func askController(ctx context.Context, asker *cluster.Asker, namespace, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	page := cluster.Page{
		Namespace: namespace, Service: controllerService, Port: adminPort, Path: path, Query: query,
		Account: viewerAccount, Token: admin.ForwardedToken, Preferring: admin.ForLeader,
	}
	return asker.Ask(ctx, page, into)
}
