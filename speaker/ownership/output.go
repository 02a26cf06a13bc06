package ownership

import (
	"net/netip"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// Output is what a step asks for. It is immutable, and is to be carried out in this order:
// the questions; layer 2; the members, since a claim silences other nodes; the rest.
type Output struct {
	// Plan is the current decision; Plans is how many were compiled in this step.
	Plan  *announce.Plan
	Plans int
	// Waiting is why nothing is announced, neither on the LAN nor to routers; "": it is.
	Waiting string
	// Leaving says that this node hands its addresses over, or is about to.
	Leaving bool

	Ask     []*Inquiry
	LAN     Announcing
	Members *Declaration // nil: as before
	Changes []Change
	Report  Report
	// Wake is when to take the next step if nothing happens before.
	Wake time.Time
	End  End
}

// Announcing is what layer 2 is to answer for.
type Announcing struct {
	Addresses map[netip.Addr]Announcement
	// Speakers are the MACs of all speakers, this one's included: two interfaces on
	// one LAN hear each other.
	Speakers map[string]struct{}
	// Nearby are other speakers to ask for signs of life, by interface; see listensOn.
	Nearby map[string][]Host
	// Added says that an address is new. It must be answered for before the claim is
	// gossiped: the node that hands it over falls silent then.
	Added bool
}

// Host is another host on a LAN.
type Host struct {
	Address netip.Addr
	MAC     string // "": not known
}

// Announcement is how one address is announced.
type Announcement struct {
	Interfaces []string // to answer on; none: all
	Round      int64    // the address is announced again whenever this changes
}

// Declaration is what this node gossips.
type Declaration struct {
	Self   netip.Addr // address of this node; invalid: not known
	Peers  []Peer     // the other nodes, by name
	Watch  []string   // which of them are to be watched, see announce.L2.Watch
	Facts  announce.Facts
	Claims map[netip.Addr]int64 // epochs
	// Known are all addresses that exist.
	Known map[netip.Addr]struct{}
}

// Peer is another node that should have a speaker.
type Peer struct {
	Name string
	Addr netip.Addr
}

// ChangeKind is the kind of a Change.
type ChangeKind int

// The kinds of changes, with the fields of Change that each sets.
const (
	Taken     ChangeKind = iota // this node owns it now: Take, Outage
	Lost                        // a better claim beats this node's: Address, To
	NotTaken                    // the LAN refuses it: Take, By, Why
	Unasked                     // the LAN could not be asked: Take, Err
	Contested                   // a host outside the cluster answers for it, too: Address, Interface, By
)

// Change is a change to an address, for logs and metrics.
type Change struct {
	Kind ChangeKind
	announce.Take
	To        announce.Claim
	By        announce.Refusal
	Why       string
	Err       error
	Interface string
	Outage    time.Duration // since its dead owner was last seen; 0: not known
}

// Report is what is shown to users.
type Report struct {
	// Events to write, once. There are none about Own, which the component reports.
	Events []Notice
	// Status of this node's SpeakerStatus; nil: unchanged.
	Status *v1alpha1.SpeakerStatusStatus
	// Problems are all problems, Own those that only this node can know.
	Problems, Own []snapshot.Problem
}

// Notice is a Kubernetes Event to write.
type Notice struct {
	About                 snapshot.Ref
	Type, Reason, Message string
}

// End is whether a speaker that was asked to leave may stop.
type End int

// The values of End.
const (
	Stays   End = iota
	Done        // all addresses are handed over, or none was ever announced
	Overdue     // Options.HandOver has passed
)
