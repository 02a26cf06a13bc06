package proxy

import (
	"sync"

	"quayside.io/cluster/snapshot"
)

// nodes sees to it that the Nodes are watched that are read: this proxy's own, whose
// zone counts, and all of them only as long as names lead outside, which must not be to
// a node. Every kubelet writes its Node every few minutes: among thousands that is most
// of what there is to watch.
type nodes struct {
	own   string // may be empty
	watch func(snapshot.Kind, []snapshot.Key) <-chan struct{}

	mu   sync.Mutex
	all  bool
	seen <-chan struct{} // closed once those are known; nil: none is asked for yet
}

// refer asks for all Nodes, or this proxy's alone, and returns what is closed once
// they are known.
func (n *nodes) refer(all bool) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil || n.all != all {
		keys := []snapshot.Key{}
		switch {
		case all:
			keys = append(keys, snapshot.Key{})
		case n.own != "":
			keys = append(keys, snapshot.Key{Name: n.own})
		}
		n.all, n.seen = all, n.watch(snapshot.Node, keys)
	}
	return n.seen
}
