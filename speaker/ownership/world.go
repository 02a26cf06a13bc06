package ownership

import (
	"net/netip"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// World is the input of one step. It is read only.
type World struct {
	Cluster *snapshot.Cluster
	Synced  bool // Cluster is, or once was, complete
	Members *Members
	Link    Link
	Proxy   KubeProxy
}

// Members is the state of gossip: members.View in this package's types.
type Members struct {
	Alive map[string]struct{} // this node included
	// Doubted are those of Alive that this node watches and that do not answer it. They
	// count as dead here, since the LAN is asked before an address moves.
	Doubted map[string]struct{}
	Claims  map[netip.Addr]announce.Claim
	Facts   map[string]announce.Facts
	// Rounds counts, by address, how often a claim of this node has beaten another
	// node's; after each the address must be announced to the LAN again.
	Rounds map[netip.Addr]int64
	// LastSeen is when a node last answered this one.
	LastSeen map[string]time.Time
	// Missing are the peers that are not alive, or have been doubted for a while, each with
	// the reason.
	Missing map[string]string
	// Settled is true once the peers have been met, or waited for long enough.
	Settled bool
	// Waiting is why gossip has not started yet; "": it has.
	Waiting string
}

// Link is what layer 2 reports of this machine.
type Link struct {
	// Interfaces are nil before they have been read.
	Interfaces []announce.Interface
	// Mute is why nothing can be announced on any of them; "": it can.
	Mute string
	// Hazards are settings of this machine that interfere with announcing, Failures are
	// interfaces that cannot answer, both as sentences.
	Hazards, Failures []string
	// Unheard are addresses of other nodes that are not answered for on a LAN of this one.
	Unheard []v1alpha1.UnheardAddress
}

// KubeProxy is the state of this node's kube-proxy.
type KubeProxy struct {
	Behind bool   // it may not have written its rules
	Late   string // why it has not for longer than a start takes; "": it is not late
	// Unserved is announce.View.Unserved.
	Unserved map[netip.AddrPort]time.Time
}

// Event is a *Finding, a Conflict or a Leave. A change of the World needs no event.
type Event interface{ apply(*Machine) }

// Conflict is a host outside the cluster that was seen to answer for an address of this
// node.
type Conflict struct {
	Address   netip.Addr
	Interface string
	MAC       string
}

// Leave asks this node to hand over its addresses and to stop.
type Leave struct{}

// Inquiry is a batch of questions to the LAN. It is immutable.
type Inquiry struct {
	// Takes are the addresses that this node would take.
	Takes map[netip.Addr]announce.Take
	// Questions are about those addresses.
	Questions []Question
	// Nodes are the addresses of other nodes. Their kernels answer even when their speakers
	// are dead: if none does, and no other known neighbour either, this node is cut off,
	// and silence proves nothing. Empty: that is not checked.
	Nodes map[string]netip.Addr
	// Losers are those of Nodes that are to lose an address. They are asked whether their
	// speakers run.
	Losers map[string]netip.Addr
	// Nearby are other speakers by interface of this node. If it is not nil, Nodes is
	// empty, and a sign of life counts only on these interfaces, from any host.
	Nearby map[string][]Host
	Timing Timing
}

// Question asks which host answers for an address on some interfaces; none named: on all.
type Question struct {
	Address    netip.Addr
	Interfaces []string
	Held       bool // another node is believed to have it
}

// Timing is how often a question is sent, and how long answers are awaited after each.
type Timing struct {
	Times int
	Every time.Duration
}

// Window is the longest time that an Inquiry takes.
func (t Timing) Window() time.Duration { return t.Every * time.Duration(t.Times) }

// Finding is the result of an Inquiry. If it refuses an address only because the owner's
// speaker listens, a second Finding follows when that stops.
type Finding struct {
	*Inquiry
	// Found is the host that answers for an address in Questions or Nodes.
	Found map[netip.Addr]Found
	// Deaf says that there was no answer at all, not even from Nodes or Nearby.
	Deaf bool
	// Liveness of the Losers.
	Liveness map[string]Liveness
	Err      error // the LAN could not be asked
}

// Found is a host that answers for an address.
type Found struct {
	Interface string
	MAC       string
	Answered  bool // it has answered this node, and was not only heard to talk
}

// Liveness is the state of a node's speaker as seen from the node's kernel.
type Liveness int

// The values of Liveness.
const (
	Silent    Liveness = iota // the node does not answer, or a firewall drops the answer
	Listening                 // a process listens: it is alive, however slow
	Closed                    // the node is up, and no speaker listens there
)

// Slow reports whether an address is refused only because a speaker listens.
func (f *Finding) Slow() bool {
	for a, t := range f.Takes {
		if _, answered := f.Found[a]; !answered && f.Liveness[t.From] == Listening {
			return true
		}
	}
	return false
}

// livesOn reports whether the speaker of a node may only be slow: it listens, or the node
// answers and does not refuse the connection.
func (f *Finding) livesOn(node string) bool {
	a, asked := f.Nodes[node]
	_, answered := f.Found[a]
	return f.Liveness[node] == Listening || asked && answered && f.Liveness[node] != Closed
}
