package ownership

import (
	"net/netip"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// World is how things are at one step. It is read only.
type World struct {
	Cluster *snapshot.Cluster
	Synced  bool // Cluster has been complete
	Members *Members
	Link    Link
	Proxy   KubeProxy
}

// Members are the other speakers, as gossip knows them.
type Members struct {
	Alive map[string]struct{} // this node included
	// Doubted are those of Alive that do not answer this node, which asked more often
	// than all others do. Whoever is asked of the LAN before is as good as dead.
	Doubted map[string]struct{}
	Claims  map[netip.Addr]announce.Claim
	Facts   map[string]announce.Facts
	// Rounds counts, by address, how often a claim of this node has silenced
	// another's; the LAN must then hear of it again.
	Rounds map[netip.Addr]int64
	// LastSeen is when a node last answered this one.
	LastSeen map[string]time.Time
	// Missing says of each peer that is not alive, why.
	Missing map[string]string
	// Settled says that the others have been met, or waited for long enough.
	Settled bool
	// Waiting says why nothing works yet; "" it does.
	Waiting string
}

// Link is what layer 2 says of this machine.
type Link struct {
	// Interfaces are nil before they have been read.
	Interfaces []announce.Interface
	// Mute says why nothing can be announced on any of them; "" it can.
	Mute string
	// Hazards are settings of this machine that spoil what is announced, Failures
	// interfaces that cannot answer, both as sentences.
	Hazards, Failures []string
}

// KubeProxy is the kube-proxy of this node.
type KubeProxy struct {
	Behind bool   // it may not have written its rules
	Late   string // why it has not for longer than a start takes; "" it is not late
	// Unserved is announce.View.Unserved.
	Unserved map[netip.AddrPort]time.Time
}

// Event is something that happened: a *Finding, a Conflict or a Leave. That the
// World is another one needs no event.
type Event interface{ happen(*Machine) }

// Conflict is a strange host that was seen to answer for an address of this node.
type Conflict struct {
	Address   netip.Addr
	Interface string
	MAC       string
}

// Leave asks this node to hand over what it has and to end.
type Leave struct{}

// Inquiry is a batch of questions to the LAN. It is immutable.
type Inquiry struct {
	// Takes are what is asked for, by address.
	Takes map[netip.Addr]announce.Take
	// Questions are about those addresses.
	Questions []Question
	// Nodes are where other nodes are reached. Their kernels answer even when their
	// speakers are dead: if none does, and nobody else whom this machine knows, this
	// node is cut off, and silence proves nothing. Empty: that does not matter.
	Nodes map[string]netip.Addr
	// Losers are those of Nodes that are to lose an address, who are asked whether
	// their speakers run.
	Losers map[string]netip.Addr
	// Nearby are other speakers by interface of this node. If it is not nil, Nodes is
	// empty, and signs of life count on these interfaces only, from whomever.
	Nearby map[string][]Host
	Timing Timing
}

// Question asks who answers for an address on some interfaces; none named means
// every one.
type Question struct {
	Address    netip.Addr
	Interfaces []string
	Held       bool // somebody is thought to have it
}

// Timing says how often a question is put, and how long is listened after each time.
type Timing struct {
	Times int
	Every time.Duration
}

// Window is how long the answer to an Inquiry takes at most.
func (t Timing) Window() time.Duration { return t.Every * time.Duration(t.Times) }

// Finding is what the LAN said to an Inquiry. One that leaves an address alone only
// because a speaker listens may be followed by another, when it does not any more.
type Finding struct {
	*Inquiry
	// Found is who answers for an address, one of those that were asked about or of
	// Nodes.
	Found map[netip.Addr]Found
	// Deaf says that nobody said anything, not even those of Nodes or Nearby.
	Deaf bool
	// Liveness is what was found out about the Losers.
	Liveness map[string]Liveness
	Err      error // the LAN could not be asked
}

// Found is somebody who answers for an address.
type Found struct {
	Interface string
	MAC       string
}

// Liveness is what the kernel of a node says about its speaker.
type Liveness int

// What can be found out.
const (
	Silent    Liveness = iota // the node does not answer, or a firewall does not let it
	Listening                 // a process listens: it lives, however slowly
	Closed                    // the node lives, and no speaker listens there
)

// Slow reports whether an address is left alone only because a speaker listens.
func (f *Finding) Slow() bool {
	for a, t := range f.Takes {
		if _, answered := f.Found[a]; !answered && f.Liveness[t.From] == Listening {
			return true
		}
	}
	return false
}

// livesOn reports whether the speaker of a node may only be slow: it listens, or
// its node answers and does not say that nothing listens.
func (f *Finding) livesOn(node string) bool {
	a, asked := f.Nodes[node]
	_, answered := f.Found[a]
	return f.Liveness[node] == Listening || asked && answered && f.Liveness[node] != Closed
}
