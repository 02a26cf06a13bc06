package command

import (
	"context"
	"log/slog"
	"sync/atomic"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/forward"
)

// carrier keeps the forwarder of `up` in step with Services and endpoints.
type carrier struct {
	files *cluster.Files
	node  string
	hand  *forward.Forwarder
	plan  atomic.Pointer[forward.Plan]
}

func newCarrier(files *cluster.Files, node string, log *slog.Logger) *carrier {
	return &carrier{files: files, node: node, hand: forward.New(log)}
}

func (c *carrier) run(ctx context.Context) error {
	changes := c.files.Watch(snapshot.Service, snapshot.EndpointSlice, snapshot.SpeakerStatus)
	defer changes.Stop()
	return serveAll(ctx, c.hand.Run, func(ctx context.Context) error {
		for {
			c.plan.Store(forward.Compile(c.files.Snapshot(), c.plan.Load(), proxyService(), c.node))
			c.hand.Set(c.plan.Load())
			select {
			case <-ctx.Done():
				return nil
			case <-changes.C():
			}
		}
	})
}

func (c *carrier) problems() []snapshot.Problem {
	if p := c.plan.Load(); p != nil {
		return p.Problems
	}
	return nil
}
