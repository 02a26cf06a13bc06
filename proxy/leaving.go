package proxy

import (
	"context"

	"quayside.io/cluster/snapshot"
)

// watchLeaving follows what the speaker of this node says. While it hands its
// addresses over, each response ends its connection, so that clients that keep
// theirs come again, to the node that has the address by then. Without it they
// would stay until this node is gone, and fail with it.
func (p *Proxy) watchLeaving(ctx context.Context) error {
	changes := p.options.Source.Watch(snapshot.SpeakerStatus)
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
		}
		s, exists := p.options.Source.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: p.options.NodeName})
		leaving := exists && s.Status.Leaving
		if p.leaving.Swap(leaving) != leaving {
			p.options.Log.Info("what the speaker of this node says has changed: responses end their connections while it leaves",
				"node", p.options.NodeName, "leaving", leaving)
		}
		p.server.SetLeaving(leaving)
		p.http2.SetLeaving(leaving || p.draining.Load())
	}
}
