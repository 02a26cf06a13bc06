package command

import (
	"context"
	"log/slog"
	"sync/atomic"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/forward"
)

// forwardLoop keeps the forwarder of `up` in step with Services and endpoints.
type forwardLoop struct {
	files     *cluster.Files
	node      string
	forwarder *forward.Forwarder
	plan      atomic.Pointer[forward.Plan]
}

func newForwardLoop(files *cluster.Files, node string, log *slog.Logger) *forwardLoop {
	return &forwardLoop{files: files, node: node, forwarder: forward.New(log)}
}

func (l *forwardLoop) run(ctx context.Context) error {
	changes := l.files.Watch(snapshot.Service, snapshot.EndpointSlice, snapshot.SpeakerStatus)
	defer changes.Stop()
	return runAll(ctx, running(l.forwarder.Run), running(func(ctx context.Context) error {
		for {
			l.plan.Store(forward.Compile(l.files.Snapshot(), l.plan.Load(), proxyService(), l.node))
			l.forwarder.Set(l.plan.Load())
			select {
			case <-ctx.Done():
				return nil
			case <-changes.C():
			}
		}
	}))
}

func (l *forwardLoop) problems() []snapshot.Problem {
	if p := l.plan.Load(); p != nil {
		return p.Problems
	}
	return nil
}
