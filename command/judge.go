package command

import (
	"context"
	"net/url"
	"time"

	"quayside.io/cluster"
	"quayside.io/command/admin"
	"quayside.io/command/explain"
	"quayside.io/proxy/route"
)

// Where controllers show what they see of the cluster, through the API server. The
// Service has the name of the Lease, whatever the release is called.
const (
	controllerService = leaseName
	adminPort         = "admin"
	viewerAccount     = "quayside-viewer" // may get these pages
)

// askTimeout bounds a question to the controller; looking for oneself takes time, too.
const askTimeout = 5 * time.Second

// judging shows /status and /trace of a cluster as this controller sees it: with the
// flags and the rights of the installation, which whoever asks need not have.
func (p *process) judging(api *cluster.API, f clusterFlags, routes route.Options) {
	scene := func() explain.Scene {
		c := api.Snapshot()
		// Only the leader has what the routes name watched; others look when asked.
		awaitReferences(context.Background(), api.Source, route.Compile(c, nil, routes))
		return compileScene(api.Snapshot(), f, routes)
	}
	p.admin.Status(func() any { return explain.Status(scene()) })
	p.admin.Trace(tracing(scene))
}

// askController asks a controller for one of the pages of judging.
func askController(ctx context.Context, kubeconfig, namespace, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	page := cluster.Page{
		Namespace: namespace, Service: controllerService, Port: adminPort, Path: path, Query: query,
		Account: viewerAccount, Token: admin.ForwardedToken,
	}
	return cluster.Ask(ctx, kubeconfig, "status", page, into)
}
