package speaker

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

const (
	// fewServices is how many Services' endpoints are watched by name whatever else there is.
	fewServices = 8
	// mostServices is how many are at most: some twenty watches. With more, or if they are most
	// of all Services, one watch of all EndpointSlices costs the API server less.
	mostServices = 1000
)

// patience is how long all Nodes are watched at least, once a speaker has not published its
// own. If that alternated, all speakers would list all Nodes each time.
const patience = 10 * time.Minute

// watched is the part of a cluster.Source that a clusterView uses.
type watched interface {
	Snapshot() *snapshot.Cluster
	Synced() <-chan struct{}
	Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{}
}

// clusterView is the cluster as the loop sees it. Only the EndpointSlices that a plan reads
// are watched, in most clusters those of one Service or two; and, where there are many
// speakers, only this node's Node, see others. When more is asked for, a newer snapshot is
// not shown before that is known: else it would look as if the last endpoint, or a node,
// had gone.
type clusterView struct {
	source   watched
	log      *slog.Logger
	upTo     int                               // see Options.NodesUpTo
	services []snapshot.Key                    // whose endpoints are watched; an empty key: all
	nodes    []snapshot.Key                    // that are watched: this node's, or, by an empty key, all; nil: none yet
	coming   map[snapshot.Kind]<-chan struct{} // closed once what was asked for is known
	fellBack time.Time                         // when all Nodes had to be watched again
	complete bool                              // shown is, or once was, complete
	shown    *snapshot.Cluster
	latest   *snapshot.Cluster // whose Services have been read
	others   others
	overlay  overlay
}

func newClusterView(source watched, node string, nodesUpTo int, log *slog.Logger) clusterView {
	return clusterView{source: source, log: log, upTo: nodesUpTo, coming: map[snapshot.Kind]<-chan struct{}{}, overlay: overlay{me: snapshot.Key{Name: node}}}
}

// look returns the newest cluster that can be shown.
func (s *clusterView) look() *snapshot.Cluster {
	for cluster.IsClosed(s.source.Synced()) {
		maps.DeleteFunc(s.coming, func(_ snapshot.Kind, c <-chan struct{}) bool { return cluster.IsClosed(c) })
		known := len(s.coming) == 0
		c := s.source.Snapshot() // after the channels were looked at, so it has what they announced
		if s.refer(c) || s.referNodes(c) {
			continue // it may be known at once
		}
		if !known {
			break
		}
		s.complete, s.shown = true, s.whole(c)
		return s.shown
	}
	if !s.complete {
		s.shown = s.source.Snapshot()
	}
	return s.shown
}

// whole returns c with the Nodes of all speakers.
func (s *clusterView) whole(c *snapshot.Cluster) *snapshot.Cluster {
	if s.nodes[0].Name == "" {
		return c
	}
	return s.overlay.onto(c, s.others.nodes)
}

// next returns a channel that is closed when more is known; nil: all is.
func (s *clusterView) next() <-chan struct{} {
	for _, c := range s.coming {
		return c
	}
	return nil
}

// refer asks for the endpoints of the Services in c that need them, and reports whether
// these Services have changed.
func (s *clusterView) refer(c *snapshot.Cluster) bool {
	was := s.latest
	s.latest = c
	if was != nil && !announce.AsksForOthers(was, c) {
		return false
	}
	services := announce.Asks(c)
	if s.needsAll(len(services), c.Services.Len()) {
		services = []snapshot.Key{{}}
	}
	if was != nil && slices.Equal(services, s.services) {
		return false
	}
	s.services = services
	s.coming[snapshot.EndpointSlice] = s.source.Refer(snapshot.EndpointSlice, services)
	return true
}

// needsAll reports whether all endpoints are to be watched, if those of so many Services are
// needed of all there are. Where that is at the limit it does not alternate: each time, all
// speakers would list them.
func (s *clusterView) needsAll(needed, services int) bool {
	most := min(mostServices, services/2)
	if slices.Equal(s.services, []snapshot.Key{{}}) {
		most = most * 2 / 3
	}
	return needed > max(fewServices, most)
}

// referNodes asks for this node's Node if all others are published, else for all Nodes, and
// reports whether that has changed.
func (s *clusterView) referNodes(c *snapshot.Cluster) bool {
	s.others.follow(c.SpeakerStatuses)
	nodes := []snapshot.Key{{}}
	if s.others.allPublish(s.upTo) && time.Since(s.fellBack) > patience {
		nodes[0] = s.overlay.me
	}
	if slices.Equal(nodes, s.nodes) {
		return false
	}
	if nodes[0].Name != "" {
		s.log.Info("all speakers tell their Nodes: this one watches its own Node only", "speakers", s.others.nodes.Len())
	} else if s.nodes != nil {
		s.fellBack = time.Now()
		s.log.Info("there are fewer speakers, or one does not tell its Node: all Nodes are watched", "speakers", s.others.nodes.Len(), "silent", s.others.silent)
	}
	s.nodes = nodes
	s.coming[snapshot.Node] = s.source.Refer(snapshot.Node, nodes)
	return true
}
