package speaker

import (
	"slices"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// fewServices is of how many Services the endpoints are watched one by one. With more
// of them one watch of all costs the API server less.
const fewServices = 8

// watched is where a scene comes from: a cluster.Source.
type watched interface {
	Snapshot() *snapshot.Cluster
	Synced() <-chan struct{}
	Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{}
}

// scene is the cluster as the loop sees it. Of the EndpointSlices only those are
// watched about which a plan asks, in most clusters those of one Service or two; and
// what has come since is not shown before they are known: without them it would look
// as if the last endpoint had gone.
type scene struct {
	source   watched
	services []snapshot.Key  // whose endpoints are asked for; one without a name: all
	coming   <-chan struct{} // closed once they are known; nil: they are
	complete bool            // all has been known
	shown    *snapshot.Cluster
	latest   *snapshot.Cluster // of which the Services have been read
}

// look returns the newest cluster that can be shown.
func (s *scene) look() *snapshot.Cluster {
	for cluster.IsClosed(s.source.Synced()) {
		known := s.coming == nil || cluster.IsClosed(s.coming)
		c := s.source.Snapshot() // has what was known before
		if s.refer(c) {
			continue // which may be answered at once
		}
		if !known {
			break
		}
		s.coming, s.complete, s.shown = nil, true, c
		return c
	}
	if !s.complete {
		s.shown = s.source.Snapshot()
	}
	return s.shown
}

// refer asks for the endpoints of the Services in c that need them, and reports whether
// those are others than before.
func (s *scene) refer(c *snapshot.Cluster) bool {
	was := s.latest
	s.latest = c
	if was != nil && !announce.AsksForOthers(was, c) {
		return false
	}
	services := announce.Asks(c)
	if len(services) > fewServices {
		services = []snapshot.Key{{}}
	}
	if was != nil && slices.Equal(services, s.services) {
		return false
	}
	s.services = services
	s.coming = s.source.Refer(snapshot.EndpointSlice, services)
	return true
}
