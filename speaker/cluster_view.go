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

// fewServices is of how many Services the endpoints are watched one by one. With more
// of them one watch of all costs the API server less.
const fewServices = 8

// patience is how long all Nodes are watched at least, once a speaker has not told its
// own. Were it told and not told in turns, all speakers would list all Nodes each time.
const patience = 10 * time.Minute

// watched is where a scene comes from: a cluster.Source.
type watched interface {
	Snapshot() *snapshot.Cluster
	Synced() <-chan struct{}
	Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{}
}

// scene is the cluster as the loop sees it. Of the EndpointSlices only those are
// watched about which a plan asks, in most clusters those of one Service or two; and of
// the Nodes, where there are many speakers, only this one, see others. What has come since
// is not shown before what is newly asked for is known: without them it would look
// as if the last endpoint had gone, or a node.
type clusterView struct {
	source   watched
	log      *slog.Logger
	upTo     int                               // see Options.NodesUpTo
	services []snapshot.Key                    // whose endpoints are asked for; one without a name: all
	nodes    []snapshot.Key                    // that are asked for: this one, or, without a name, all; nil: none yet
	coming   map[snapshot.Kind]<-chan struct{} // closed once what was asked for is known
	fellBack time.Time                         // when all Nodes had to be watched after all
	complete bool                              // all has been known
	shown    *snapshot.Cluster
	latest   *snapshot.Cluster // of which the Services have been read
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
		c := s.source.Snapshot() // has what was known before
		if s.refer(c) || s.referNodes(c) {
			continue // which may be answered at once
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

// whole is c with the Nodes of all.
func (s *clusterView) whole(c *snapshot.Cluster) *snapshot.Cluster {
	if s.nodes[0].Name == "" {
		return c
	}
	return s.overlay.onto(c, s.others.nodes)
}

// next is closed when more of what was asked for is known; nil: all is.
func (s *clusterView) next() <-chan struct{} {
	for _, c := range s.coming {
		return c
	}
	return nil
}

// refer asks for the endpoints of the Services in c that need them, and reports whether
// those are others than before.
func (s *clusterView) refer(c *snapshot.Cluster) bool {
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
	s.coming[snapshot.EndpointSlice] = s.source.Refer(snapshot.EndpointSlice, services)
	return true
}

// referNodes asks for this node's Node where the others are told, else for all, and
// reports whether that is something else than before.
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
